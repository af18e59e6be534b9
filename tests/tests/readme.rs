//! Every example of README.md and docs/ is run and prints what stands there. `document` has the rules.
//!
//! `make docs` writes what they print into the documents: into those of docs/reference.md as into all others. It is this
//! test with `FENCE_WRITE_DOCS=1`.

use std::path::PathBuf;

use fence_tests::{document, root};

/// The blocks that are not run, by document, with the reasons that stand above them.
const NOT_RUN: [(&str, &[&str]); 4] = [
    ("README.md", &["Rust; tests/tests/hold.rs runs it"]),
    ("docs/holds.md", &["Rust; tests/tests/hold.rs runs it"]),
    ("docs/hosts.md", &["hosts_recipes.rs runs it"; 17]),
    ("docs/orms.md", &["hosts_orms.rs runs it"; 28]),
];

#[test]
fn every_example_of_the_documents_prints_what_stands_there() {
    for path in documents() {
        let text = std::fs::read_to_string(&path).expect("a document");
        let name = path
            .strip_prefix(root())
            .expect("a document of ours")
            .to_str()
            .expect("a name in UTF-8");
        let mut report = document::run(&text);
        if std::env::var_os("FENCE_WRITE_DOCS").is_some() && report.written != text {
            std::fs::write(&path, &report.written).expect("a document");
            report = document::run(&report.written);
        }
        assert!(report.wrong.is_empty(), "{name}, {}", report.wrong.join("\n"));
        let marked = NOT_RUN
            .iter()
            .find(|(document, _)| *document == name)
            .map_or(&[][..], |(_, reasons)| reasons);
        assert_eq!(report.not_run, marked, "blocks of {name} that are not run");
        println!(
            "{name}: {} blocks ran, {} are marked as not run",
            report.run,
            report.not_run.len()
        );
    }
}

#[test]
fn a_document_that_says_something_else_is_noticed() {
    let wrong = |text: &str| document::run(text).wrong.len();
    assert_eq!(wrong("```console\n$ echo 1\n1\n$ echo 2; echo 3\n2\n3\n```"), 0);
    assert_eq!(wrong("```console\n$ echo 1\n2\n```"), 1);
    assert_eq!(wrong("```console\n$ echo 1\n```"), 1);
    assert_eq!(wrong("```console\n$ true\n1\n```"), 1);
    assert_eq!(wrong("```console\n$ false\n```"), 1);
    assert_eq!(wrong("```console\n1\n```"), 1);
    assert_eq!(wrong("```sh\nfalse\n```"), 1);
    assert_eq!(wrong("```ruby\nputs 1\n```"), 1);
    assert_eq!(wrong("```console\nsqlite> select 1;\n1\n```"), 1);
    assert_eq!(
        wrong("```console\n$ sqlite3 a.db\nsqlite> select 1,\n   ...> 2;\n1|2\n```"),
        0
    );
    assert_eq!(
        wrong("```console\n$ sqlite3 a.db\nsqlite> select abs();\nanother error\n```"),
        1
    );
    assert_eq!(wrong("```sql\nselect 1; -- one\n--> 1\nselect 2;\n--> 2\n```"), 0);
    assert_eq!(wrong("```sql\nselect 1;\n```"), 1);
}

#[test]
fn a_document_is_written_anew_with_what_was_printed_and_nothing_else_is_touched() {
    let text = "Before.\n\n```console\n$ echo 1; echo 2\n1\n$ true\nnothing\n$ sqlite3 a.db\nsqlite> select 1,\n   ...> 2;\n\
                $ false\nas it was\n```\nBetween.\n```sql\nselect 1;\n--> 9\nselect 2; select 3;\n```\n\
                ```sql\nselect 1;\n--> 1\n--> 2\n```\nAfter.\n";
    let written = "Before.\n\n```console\n$ echo 1; echo 2\n1\n2\n$ true\n$ sqlite3 a.db\nsqlite> select 1,\n   ...> 2;\n1|2\n\
                   $ false\nas it was\n```\nBetween.\n```sql\nselect 1;\n--> 1\nselect 2; select 3;\n--> 2\n--> 3\n```\n\
                   ```sql\nselect 1;\n--> 1\n```\nAfter.\n";
    let report = document::run(text);
    assert_eq!(report.written, written);
    assert_eq!(report.wrong.len(), 6, "{}", report.wrong.join("\n"));
    let again = document::run(written);
    assert_eq!(
        (again.written.as_str(), again.wrong.len()),
        (written, 1),
        "the command that fails"
    );
}

#[test]
fn the_fences_of_a_document_that_is_written_anew_stay_and_new_ones_come_as_they_were_printed() {
    // Both lines are wrong by a word; the fences in them are those of the run, which are other ones.
    let give = "$ expr 10000000000000000000000000 + $$ > given; echo right $(cat given) $(cat given)";
    let text = format!(
        "```console\n{give}\nwrong 33132838977483490749893836800001\n\
         $ echo 33132838977483490749893836800001 | cmp - given && echo same\nother\n```"
    );
    let written = format!(
        "```console\n{give}\nright 33132838977483490749893836800001 33132838977483490749893836800001\n\
         $ echo 33132838977483490749893836800001 | cmp - given && echo same\nsame\n```"
    );
    assert_eq!(document::run(&text).written, written);
    assert_eq!(document::run(&written).wrong, Vec::<String>::new());
    let shown = document::run("```console\n$ echo 33132838977483490749893836800001\n```").written;
    assert_eq!(
        shown,
        "```console\n$ echo 33132838977483490749893836800001\n33132838977483490749893836800001\n```"
    );
}

#[test]
fn fences_of_a_document_are_paired_with_those_of_the_run() {
    let wrong = |text: &str| document::run(text).wrong.len();
    // What 'gives' a fence here prints another number at each run of the document.
    let give = "$ expr 10000000000000000000000000 + $$\n";
    let document = |below: &str| format!("```console\n{give}33132838977483490749893836800001\n{below}\n```");
    assert_eq!(
        wrong(&document(
            "$ echo 33132838977483490749893836800001\n33132838977483490749893836800001"
        )),
        0
    );
    let padded = "0000000033132838977483490749893836800001";
    assert_eq!(
        wrong(&document(&format!(
            "$ printf '%040s' 33132838977483490749893836800001\n{padded}"
        ))),
        1
    );
    assert_eq!(wrong(&document(&format!("$ echo {padded}\n{padded}"))), 0);
    assert_eq!(
        wrong(&document(
            "$ echo 33132838977483490749893836800001\n33132838977483490749893836800002"
        )),
        1
    );
    assert_eq!(wrong(&document("$ echo 7\n33132838977483490749893836800001")), 1);
    // And so are permits, of which this prints two, one of them twice.
    let give = "$ printf 'permit-%032x\\n' $$ 7 $$";
    let permit = |n: u32| format!("permit-{n:032x}");
    let printed = |first: u32, second: u32, third: u32| {
        let [first, second, third] = [first, second, third].map(permit);
        wrong(&format!("```console\n{give}\n{first}\n{second}\n{third}\n```"))
    };
    assert_eq!(printed(1, 2, 1), 0);
    assert_eq!(printed(1, 2, 2), 1);
    assert_eq!(printed(1, 2, 3), 1);
}

#[test]
fn the_first_minute_can_be_lived_with_the_program_alone() {
    let readme = std::fs::read_to_string(root().join("README.md")).expect("a document");
    let (_, from) = readme.split_once("## The first minute").expect("the section");
    let (minute, _) = from.split_once("\n## ").expect("a section after it");
    let with_the_program = minute
        .replace("$ sqlite3 app.db\n", "$ fence sql app.db\n")
        .replace("sqlite> .load ./dist/fence\n", "")
        .replace("sqlite> ", "fence> ")
        .replace("Runtime error: fence: ", "fence: ");
    assert!(!with_the_program.contains("```console\n$ sqlite3"));
    let report = document::run(&with_the_program);
    assert!(report.wrong.is_empty(), "{}", report.wrong.join("\n"));
    assert!(report.run >= 5, "{report:?}");
}

#[test]
fn a_script_of_a_document_can_be_run() {
    let script = "```sh greet\n#!/bin/sh\necho \"hello $1\"\n```\n```console\n$ ./greet you\nhello you\n```";
    assert_eq!(document::run(script).wrong, Vec::<String>::new());
}

#[test]
fn a_block_is_left_out_only_with_a_reason() {
    let secret = "<!-- not run: it shows a secret -->\n```sh\nfalse\n```\n\n```mermaid\nx\n```";
    let report = document::run(secret);
    assert_eq!(
        report,
        document::Report {
            not_run: vec!["it shows a secret".into()],
            written: secret.into(),
            ..Default::default()
        }
    );
}

/// README.md and docs/*.md.
fn documents() -> Vec<PathBuf> {
    let mut documents = vec![root().join("README.md")];
    if let Ok(entries) = root().join("docs").read_dir() {
        documents.extend(entries.filter_map(|entry| entry.ok().map(|entry| entry.path())));
    }
    documents.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    documents.sort();
    documents
}
