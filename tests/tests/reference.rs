//! docs/reference.md has an entry for everything that SQL gets. What the entries print is compared by readme.rs.

use fence_tests::{root, surface};

/// An entry: its signature, its sentence, its examples with what they printed.
struct Entry<'a> {
    signature: &'a str,
    sentence: &'a str,
    examples: &'a str,
}

#[test]
fn every_function_has_an_entry_with_its_arguments() {
    let text = reference();
    for function in surface::FUNCTIONS {
        let start = format!("{}(", function.name);
        let entry = entries(&text)
            .into_iter()
            .find(|entry| entry.signature.starts_with(&start));
        let entry = entry.unwrap_or_else(|| panic!("docs/reference.md has no entry for {}", function.name));
        let (named, optional) = arguments(entry.signature);
        let accepted: Vec<_> = (named - optional..=named).collect();
        assert_eq!(accepted, function.arguments, "{}", entry.signature);
    }
}

#[test]
fn every_table_has_an_entry() {
    let text = reference();
    for table in surface::TABLES {
        let from = format!("from {}", table.name);
        let is_of_it = |entry: &Entry| {
            entry
                .signature
                .split_once(&from)
                .is_some_and(|(_, rest)| rest.is_empty() || rest.starts_with('('))
        };
        assert!(
            entries(&text).iter().any(is_of_it),
            "docs/reference.md has no entry for the table {}",
            table.name
        );
    }
}

#[test]
fn every_entry_has_its_rule_for_null_examples_and_an_error() {
    for entry in entries(&reference()) {
        let signature = entry.signature;
        assert!(entry.examples.contains("sqlite> "), "{signature} has no example");
        // What takes nothing cannot go wrong.
        if !signature.ends_with("()") {
            assert!(entry.examples.contains(" error: "), "{signature} has no error");
            let again = entry.sentence.starts_with("The same ");
            assert!(
                again || entry.sentence.contains("NULL"),
                "{signature} has no rule for NULL"
            );
        }
    }
}

fn reference() -> String {
    std::fs::read_to_string(root().join("docs/reference.md")).expect("the page")
}

fn entries(text: &str) -> Vec<Entry<'_>> {
    let parts = text.split("\n### `").skip(1);
    let entry = |part| -> Option<Entry<'_>> {
        let (signature, rest) = str::split_once(part, "`\n\n")?;
        let (sentence, rest) = rest.split_once("\n```console\n")?;
        let (examples, _) = rest.split_once("\n```")?;
        Some(Entry {
            signature,
            sentence,
            examples,
        })
    };
    parts
        .map(|part| entry(part).unwrap_or_else(|| panic!("no entry: {part}")))
        .collect()
}

/// How many arguments the signature names, and how many of them may be left out.
fn arguments(signature: &str) -> (usize, usize) {
    let (_, inside) = signature.trim_end_matches(')').split_once('(').expect("arguments");
    let named = if inside.is_empty() {
        0
    } else {
        inside.matches(',').count() + 1
    };
    (named, inside.matches('[').count())
}
