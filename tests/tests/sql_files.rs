//! The files of sql/, run as they stand.

use fence_tests::{Shell, folder, root};

/// A shell on a new app.db as the migrations before 0004 left it.
fn app(folder: &tempfile::TempDir) -> Shell {
    let shell = Shell::plain().on(folder.path().join("app.db"));
    shell.run(&read("demo.sql")).ok();
    shell
}

/// The shell's command that runs a file of sql/.
fn read(file: &str) -> String {
    format!(".bail on\n.read \"{}\"\n", root().join("sql").join(file).display())
}

const UP: &str = "0004_summary_fence.sql";
const DOWN: &str = "0004_summary_fence.down.sql";
const SCHEMA: &str = "select sql from sqlite_schema where name = 'chats';";

#[test]
fn the_migration_gives_every_row_the_empty_fence_and_leaves_the_rest() {
    let folder = folder();
    let app = app(&folder);
    app.run(&read(UP)).ok();
    assert_eq!(
        app.run("select *, typeof(summary_fence) from chats;").ok(),
        "42|nobody wrote yet||text"
    );
}

#[test]
fn the_migration_goes_up_and_down_twice_and_back_to_the_same_schema() {
    let folder = folder();
    let app = app(&folder);
    let before = app.run(&format!("{SCHEMA} select * from chats;")).ok();
    for _ in 0..2 {
        app.run(&read(UP)).ok();
        app.run("update chats set summary_fence = '1';").ok();
        app.run(&read(DOWN)).ok();
        assert_eq!(app.run(&format!("{SCHEMA} select * from chats;")).ok(), before);
    }
}

#[test]
fn run_twice_the_migration_fails_as_it_says_and_changes_nothing() {
    let folder = folder();
    let app = app(&folder);
    for (file, complaint) in [(UP, "duplicate column name"), (DOWN, "no such column")] {
        app.run(&read(file)).ok();
        let once = app.run(SCHEMA).ok();
        let error = app.run(&read(file)).error();
        assert!(error.contains(complaint) && said_in(file, complaint), "{error}");
        assert_eq!(app.run(SCHEMA).ok(), once);
    }
}

#[test]
fn the_way_down_for_an_older_sqlite_comes_to_the_same() {
    let folder = folder();
    let app = app(&folder);
    let before = app.run("select * from chats; pragma table_info(chats);").ok();
    app.run(&read(UP)).ok();
    let text = std::fs::read_to_string(root().join("sql").join(DOWN)).expect("the file is there");
    let indented = text.lines().filter_map(|line| line.strip_prefix("--              "));
    let by_hand: String = indented.flat_map(|line| [line, "\n"]).collect();
    assert!(
        by_hand.starts_with("begin immediate;") && by_hand.ends_with("commit;\n"),
        "{by_hand}"
    );
    app.run(&by_hand).ok();
    assert_eq!(app.run("select * from chats; pragma table_info(chats);").ok(), before);
}

fn said_in(file: &str, sentence: &str) -> bool {
    std::fs::read_to_string(root().join("sql").join(file))
        .expect("the file is there")
        .contains(sentence)
}
