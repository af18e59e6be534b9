//! What holds for every function, whatever it does: it is listed as pinned, it has an example, and whatever is passed to
//! it gets an answer or an error, and never ends the host.

use std::path::Path;

use fence_tests::surface::{FUNCTIONS, TABLES, examples};
use fence_tests::{Session, Shell, quick_folder};

/// What people pass: good, bad, and of every type.
const VALUES: &[&str] = &[
    "NULL",
    "''",
    "' '",
    "'7'",
    "7",
    "0",
    "'abc'",
    "char(0)",
    "'job' || char(0) || 'A'",
    "cast(x'6aff' as text)",
    "x''",
    "zeroblob(0)",
    "x'6a6f62'",
    "zeroblob(16)",
    "1e300",
    "-0.0",
    "1.5",
    "9e999",
    "-1",
    "9223372036854775807",
    "-9223372036854775808",
    "'[]'",
    "'{}'",
    "'[[[[[[[['",
];

/// What is far too long to be anything.
const BIG: &[&str] = &[
    "zeroblob(10000000)",
    "hex(zeroblob(5000000))",
    "'x' || hex(zeroblob(5000000))",
    "'[\"' || hex(zeroblob(5000000)) || '\"]'",
];

/// A shell on a database of this encoding, in a folder of its own below this one.
fn shell(folder: &Path, encoding: &str) -> Session {
    let folder = folder.join(encoding);
    std::fs::create_dir(&folder).expect("a new folder");
    let mut shell = Shell::new().on(folder.join("app.db")).within(folder).start();
    shell.ask(&format!("pragma encoding = '{encoding}'"));
    shell.ask("create table t (x)");
    assert_eq!(shell.ask("pragma encoding"), encoding);
    shell
}

#[test]
fn the_functions_and_tables_that_a_host_sees_are_these() {
    let mut expected = Vec::new();
    for function in FUNCTIONS {
        for arguments in function.arguments {
            expected.push(format!(
                "{} {arguments} {} utf8 s",
                function.name,
                function.class.flags()
            ));
        }
    }
    let mut shell = Shell::new().start();
    let listed = shell.ask(
        "select name || ' ' || narg || ' ' || flags || ' ' || enc || ' ' || type from pragma_function_list
         where name glob 'fence_*' or name glob 'semaphore_*' order by name, narg",
    );
    assert_eq!(listed.lines().collect::<Vec<_>>(), expected);
    let modules = shell
        .ask("select name from pragma_module_list where name glob 'fence_*' or name glob 'semaphore_*' order by name");
    let tables: Vec<_> = TABLES.iter().map(|table| table.name).collect();
    assert_eq!(modules.lines().collect::<Vec<_>>(), tables);
}

#[test]
fn every_example_gives_what_it_says() {
    let folder = quick_folder();
    for encoding in ["UTF-8", "UTF-16le", "UTF-16be"] {
        let mut shell = shell(folder.path(), encoding);
        for (example, gives) in examples() {
            assert_eq!(shell.ask(example), gives, "{encoding}: {example}");
        }
    }
}

#[test]
fn a_wrong_number_of_arguments_is_an_error() {
    let mut shell = Shell::new().start();
    for function in FUNCTIONS {
        for count in (0..8).filter(|count| !function.arguments.contains(count)) {
            let answer = shell.ask(&format!("select {}({})", function.name, vec!["1"; count].join(", ")));
            let complaint = format!("wrong number of arguments to function {}()", function.name);
            assert!(answer.contains(&complaint), "{count} arguments: {answer}");
        }
    }
    assert_eq!(shell.ask("select 1"), "1");
}

#[test]
fn whatever_is_passed_gets_an_answer_or_a_short_error_of_ours_and_the_host_lives() {
    let folder = quick_folder();
    for encoding in ["UTF-8", "UTF-16le"] {
        let mut shell = shell(folder.path(), encoding);
        for function in FUNCTIONS {
            for &count in function.arguments {
                for place in 0..count {
                    for value in VALUES {
                        for other in ["'7'", "7", value] {
                            try_with(&mut shell, function.name, count, place, value, other);
                        }
                    }
                }
            }
        }
        assert_eq!(shell.ask("select 1"), "1");
    }
}

#[test]
fn ten_megabytes_get_an_answer_or_a_short_error_of_ours_and_the_host_lives() {
    let folder = quick_folder();
    let mut shell = shell(folder.path(), "UTF-8");
    for function in FUNCTIONS {
        let most = *function.arguments.last().expect("it is registered");
        for place in 0..most {
            for value in BIG {
                try_with(&mut shell, function.name, most, place, value, "7");
            }
        }
    }
    assert_eq!(shell.ask("select 1"), "1");
}

/// Calls the function with this value at this place and the other value everywhere else.
#[track_caller]
fn try_with(shell: &mut Session, function: &str, count: usize, place: usize, value: &str, other: &str) {
    let mut values = vec![other; count];
    values[place] = value;
    let call = format!("{function}({})", values.join(", "));
    let answer = shell.ask(&format!("select length({call})"));
    if let Some((_, error)) = answer.split_once("rror near line ") {
        let (_, error) = error.split_once(": ").expect("the shell says where");
        assert!(error.starts_with("fence: ") && error.len() < 500, "{call}: {error}");
    }
}
