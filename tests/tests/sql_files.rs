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

/// The migrations that use guards, with what each leaves to see: the schema's triggers and tables, and the fences.
const WITH_THE_EXTENSION: [&str; 3] = [
    "backfill_summary_fence",
    "0005_summary_fence_guard",
    "0006_fence_admitted",
];
const STATE: &str = "select type, name from sqlite_schema order by name; select id, summary_fence from chats;";

/// A shell with the extension on an app.db after 0004, in which fences were stored as plain digits.
fn app_with_fences(folder: &tempfile::TempDir) -> Shell {
    app(folder).run(&read(UP)).ok();
    let shell = Shell::new().on(folder.path().join("app.db"));
    shell
        .run("insert into chats values (43, 'later', '8'), (44, 'early', '7');")
        .ok();
    shell
}

#[test]
fn the_migrations_with_guards_go_up_and_down_twice_and_each_may_run_twice() {
    let folder = folder();
    let app = app_with_fences(&folder);
    let mut states = vec![app.run(STATE).ok()];
    for migration in WITH_THE_EXTENSION {
        app.run(&read(&format!("{migration}.sql"))).ok();
        let state = app.run(STATE).ok();
        assert!(!states.contains(&state), "{migration} does something");
        app.run(&read(&format!("{migration}.sql"))).ok();
        assert_eq!(app.run(STATE).ok(), state, "{migration}, run twice");
        states.push(state);
    }
    for _ in 0..2 {
        for (migration, before) in WITH_THE_EXTENSION.iter().zip(&states).rev() {
            app.run(&read(&format!("{migration}.down.sql"))).ok();
            assert_eq!(app.run(STATE).ok(), *before, "{migration}, undone");
            app.run(&read(&format!("{migration}.down.sql"))).ok();
            assert_eq!(app.run(STATE).ok(), *before, "{migration}, undone twice");
        }
        for (migration, after) in WITH_THE_EXTENSION.iter().zip(states.iter().skip(1)) {
            app.run(&read(&format!("{migration}.sql"))).ok();
            assert_eq!(app.run(STATE).ok(), *after, "{migration}, again");
        }
    }
}

#[test]
fn the_guard_of_the_migration_refuses_a_forgotten_and_a_stale_summary_and_takes_a_good_one() {
    let folder = folder();
    let app = app_with_fences(&folder);
    let too_early = app.run(&read("0005_summary_fence_guard.sql")).error();
    assert!(
        too_early.contains("2 rows of chats have no padded fence in 'summary_fence', such as '7'"),
        "{too_early}"
    );
    app.run(&read("backfill_summary_fence.sql")).ok();
    app.run(&read("0005_summary_fence_guard.sql")).ok();
    for (write, refused) in [
        (
            "update chats set summary = 'forgot' where id = 43;",
            "fence: unfenced: ",
        ),
        (
            "update chats set summary = 'late', summary_fence = fence_pad(7) where id = 43;",
            "fence: stale: ",
        ),
    ] {
        let error = app.run(write).error();
        assert!(error.contains(refused), "{error}");
    }
    let save = std::fs::read_to_string(root().join("sql/save_summary.sql")).expect("the file is there");
    for (fence, changes) in [("9", "1"), ("8", "0")] {
        let parameters =
            format!(".parameter set :id 43\n.parameter set :text \"'good'\"\n.parameter set :fence \"'{fence}'\"\n");
        assert_eq!(
            app.run(&format!("{parameters}{save}\nselect changes();")).ok(),
            changes,
            "{fence}"
        );
    }
    app.run("insert into chats (id) values (45); update chats set id = 46 where id = 45;")
        .ok();
}

#[test]
fn the_guard_goes_down_by_hand_as_well() {
    let folder = folder();
    let app = app_with_fences(&folder);
    app.run(&read("backfill_summary_fence.sql")).ok();
    let before = app.run(STATE).ok();
    app.run(&read("0005_summary_fence_guard.sql")).ok();
    let text =
        std::fs::read_to_string(root().join("sql/0005_summary_fence_guard.down.sql")).expect("the file is there");
    let indented = text.lines().filter_map(|line| line.strip_prefix("--              "));
    let by_hand: String = indented.flat_map(|line| [line, "\n"]).collect();
    assert_eq!(by_hand.matches("drop trigger").count(), 3);
    Shell::plain().on(folder.path().join("app.db")).run(&by_hand).ok();
    assert_eq!(app.run(STATE).ok(), before);
}

#[test]
fn a_backfill_stops_at_what_is_no_fence_and_changes_nothing() {
    let folder = folder();
    let app = app_with_fences(&folder);
    app.run("insert into chats values (45, 'lost', '7e3');").ok();
    let before = app.run(STATE).ok();
    let error = app.run(&read("backfill_summary_fence.sql")).error();
    assert!(error.contains("'7e3'"), "{error}");
    assert_eq!(app.run(STATE).ok(), before);
}

fn said_in(file: &str, sentence: &str) -> bool {
    std::fs::read_to_string(root().join("sql").join(file))
        .expect("the file is there")
        .contains(sentence)
}
