//! The table `fence_audit`: every table that a holder can write, and whether it turns a stale write away.

use std::path::Path;

use fence_tests::{Session, Shell, folder};

const EPOCH: u128 = 1 << 64;

fn audit(shell: &mut Session, columns: &str, table: &str) -> String {
    shell.ask(&format!(
        "select {columns} from fence_audit where \"table\" = '{table}'"
    ))
}

/// A table, what is done to it, and its row: column, affinity, guard, mode, rows without, rows with something else, largest
/// count, whether it is ok, verdict.
const VERDICTS: &[(&str, &str, &str)] = &[
    (
        "(id, body text)",
        "",
        "||none||||||no fence column: nothing here can turn a stale write away",
    ),
    (
        "(id, fence text)",
        "",
        "fence|TEXT|none||0|0||0|not guarded: select fence_guard('t', 'fence')",
    ),
    (
        "(id, summary_fence)",
        "",
        "summary_fence|BLOB|none||0|0||0|not guarded: select fence_guard('t', 'summary_fence')",
    ),
    (
        "(id, summaryFence text)",
        "",
        "summaryFence|TEXT|none||0|0||0|not guarded: select fence_guard('t', 'summaryFence')",
    ),
    (
        "(id, fence bigint)",
        "insert into t values (1, 7)",
        "fence|INTEGER|none||0|1||0|wrong type: INTEGER affinity eats a fence's digits: declare fence TEXT, then \
         select fence_guard('t', 'fence')",
    ),
    (
        "(id, fence text)",
        "insert into t values (1, '7'), (2, ''), (3, null), (4, fence_pad(9)), (5, fence_pad(10))",
        "fence|TEXT|none||2|1|10|0|rows without a padded fence: 1: set them to fence_pad() or '', then \
         select fence_guard('t', 'fence')",
    ),
    (
        "(id, fence text)",
        "select fence_guard('t', 'fence')",
        "fence|TEXT|whole|holder|0|0||1|guarded",
    ),
    (
        "(id, fence text)",
        "insert into t values (1, ''), (2, fence_pad(9)); select fence_guard('t', 'fence')",
        "fence|TEXT|whole|holder|1|0|9|1|guarded; rows that have no fence yet: 1",
    ),
    (
        "(id, body, fence text)",
        "select fence_guard('t', 'fence', 'write', '[\"body\"]')",
        "fence|TEXT|whole|write|0|0||1|guarded",
    ),
    // Guarded under a name that says nothing.
    (
        "(id, version text)",
        "select fence_guard('t', 'version')",
        "version|TEXT|whole|holder|0|0||1|guarded",
    ),
    // A guard that something happened to.
    (
        "(id, fence text)",
        "select fence_guard('t', 'fence'); drop trigger t_fence_guard_insert",
        "fence|TEXT|broken|holder|0|0||0|the guard is not whole: select fence_guard('t', 'fence')",
    ),
    (
        "(id, body, fence text)",
        "select fence_guard('t', 'fence', 'write', '[\"body\"]'); create unique index i on t (id)",
        "fence|TEXT|broken|write|0|0||0|the guard is not whole: select fence_guard('t', 'fence', 'write', '[\"body\"]')",
    ),
    (
        "(id integer primary key, fence text)",
        "select fence_guard('t', 'fence', 'holder+remember'); drop table t_fence_deleted",
        "fence|TEXT|broken|holder+remember|0|0||0|the guard is not whole: \
         select fence_guard('t', 'fence', 'holder+remember')",
    ),
    (
        "(id integer primary key, fence text)",
        "select fence_guard('t', 'fence'); create unique index i on t (id = 1)",
        "fence|TEXT|broken|holder|0|0||0|the guard is not whole: select fence_guard('t', 'fence')",
    ),
    // As a migration tool rebuilds it: without its guard.
    (
        "(id integer primary key, fence text)",
        "select fence_guard('t', 'fence'); create table n (id integer primary key, note, fence text);
         insert into n (id, fence) select * from t; drop table t; alter table n rename to t",
        "fence|TEXT|none||0|0||0|not guarded: select fence_guard('t', 'fence')",
    ),
    (
        "(id integer primary key, a, fence text)",
        "create unique index i on t (a = 1)",
        "fence|TEXT|none||0|0||0|cannot be guarded: cannot look through the unique index 'i' of t: its expression 'a = 1' \
         compares values, which comes out differently in a trigger: a write could replace a row by it unseen; make it \
         an index on columns, or guard a table without it",
    ),
];

#[test]
fn every_table_has_its_verdict() {
    for (columns, done, expected) in VERDICTS {
        let mut shell = Shell::new().start();
        assert_eq!(shell.ask(&format!("create table t {columns}")), "");
        shell.ask(done);
        let row = audit(
            &mut shell,
            "fence_column, affinity, guard, mode, without_fence, not_a_fence, cast(largest as integer), ok, verdict",
            "t",
        );
        assert_eq!(row, *expected, "{columns}; {done}");
    }
}

#[test]
fn what_the_verdict_asks_for_mends_it() {
    for (columns, done, _) in VERDICTS {
        let mut shell = Shell::new().start();
        shell.ask(&format!("create table t {columns}"));
        shell.ask(done);
        let verdict = audit(&mut shell, "verdict", "t");
        let (what, Some(call)) = (
            &verdict,
            verdict.find("select fence_guard").and_then(|at| verdict.get(at..)),
        ) else {
            continue;
        };
        if what.starts_with("wrong type") || done.contains("(id = 1)") {
            continue;
        }
        shell.ask("update t set fence = fence_pad(fence)");
        assert_eq!(shell.ask(call), "1", "{columns}; {done}");
        assert!(
            audit(&mut shell, "verdict", "t").starts_with("guarded"),
            "{columns}; {done}"
        );
    }
}

#[test]
fn it_lists_every_table_of_every_database_once_and_no_view() {
    let mut shell = Shell::new().start();
    for sql in [
        "attach ':memory:' as other",
        "attach ':memory:' as \"my.db\"",
        "create table a (x)",
        "create view v as select * from a",
        "create virtual table f using fts5(x)",
        "create temp table a (fence text)",
        "create table other.a (id primary key, fence text) without rowid",
        "create table \"my.db\".\"it's\" (a_fence text, b_fence text)",
        "select fence_admit('k', 7)",
        "select fence_guard('other.a', 'fence', 'holder+remember')",
    ] {
        shell.ask(sql);
    }
    let listed = shell.ask("select schema, \"table\", fence_column, guard, ok from fence_audit");
    assert_eq!(
        listed,
        "main|a||none|\nmain|f||none|\nmain|f_config||none|\nmain|f_content||none|\nmain|f_data||none|\n\
         main|f_docsize||none|\nmain|f_idx||none|\nmain|fence_admitted|fence|none|1\ntemp|a|fence|none|0\n\
         other|a|fence|whole|1\nother|a_fence_deleted|fence|none|1\nmy.db|it's|a_fence|none|0\nmy.db|it's|b_fence|none|0"
    );
    for (table, verdict) in [
        (
            "f",
            "cannot be guarded: a virtual table takes no triggers: compare with fence_admit() before each write",
        ),
        ("f_idx", "belongs to a virtual table"),
        (
            "fence_admitted",
            "keeps the largest fence that fence_admit() saw for each key",
        ),
        ("a_fence_deleted", "remembers the fences of rows deleted from other.a"),
    ] {
        assert_eq!(audit(&mut shell, "verdict", table), verdict);
    }
    let calls = shell.ask("select substr(verdict, 14) from fence_audit where verdict like 'not guarded%'");
    for call in calls.lines() {
        assert_eq!(shell.ask(call), "1", "{call}");
    }
    assert_eq!(calls.lines().count(), 3);
}

#[test]
fn a_store_that_is_behind_the_data_is_told() {
    let folder = folder();
    let mut shell = Shell::new()
        .on(folder.path().join("app.db"))
        .within(folder.path())
        .start();
    shell.ask("create table t (id integer primary key, fence text)");
    shell.ask("select fence_guard('t', 'fence')");
    let far = 5_000_000_000_000 * EPOCH + 3;
    shell.ask(&format!("insert into t values (1, fence_pad('{far}'))"));

    // Without a store there is nothing to compare with, and an audit makes none.
    assert_eq!(audit(&mut shell, "ahead is null, verdict", "t"), "1|guarded");
    assert!(!folder.path().join("kv.db").exists());

    assert_ne!(shell.ask("select fence_acquire('k')"), "");
    let advance = format!("select fence_advance('{far}')");
    assert_eq!(
        audit(&mut shell, "ahead, ok, verdict", "t"),
        format!("1|0|the store is behind this data: {advance}")
    );
    // Another process, which has not opened the store, sees the same and opens none.
    let mut other = Shell::new().on(folder.path().join("app.db")).start();
    let before = snapshot(folder.path());
    assert_eq!(audit(&mut other, "ahead", "t"), "1");
    assert_eq!(snapshot(folder.path()), before);
    shell.ask(&advance);
    assert_eq!(audit(&mut shell, "ahead, ok, verdict", "t"), "0|1|guarded");
    assert_eq!(audit(&mut other, "ahead", "t"), "0");
}

/// The store's files with their lengths.
fn snapshot(folder: &Path) -> Vec<(String, u64)> {
    let entries = folder.read_dir().expect("a folder").filter_map(Result::ok);
    let mut files: Vec<_> = entries
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("kv.db"))
        .filter_map(|entry| {
            Some((
                entry.file_name().to_string_lossy().into_owned(),
                entry.metadata().ok()?.len(),
            ))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn it_is_filtered_and_joined_like_any_table() {
    let mut shell = Shell::new().start();
    shell.ask("create table a (fence text)");
    shell.ask("create table b (fence text)");
    shell.ask("insert into b values ('x')");
    assert_eq!(
        shell.ask("select \"table\" from fence_audit where \"table\" < 'b' and verdict <> ''"),
        "a"
    );
    assert_eq!(
        shell.ask("select count(*), group_concat(guard) from fence_audit"),
        "2|none,none"
    );
    assert_eq!(shell.ask("select count(*) from fence_audit x, fence_audit y"), "4");
}

#[test]
fn a_million_rows_are_counted_in_a_bounded_memory() {
    let mut shell = Shell::new().start();
    shell.ask("create table t (id integer primary key, fence text)");
    shell.ask(
        "insert into t (fence) with recursive n(i) as (values (1) union all select i + 1 from n where i < 1000000)
         select case when i % 4 then fence_pad(i) else '' end from n",
    );
    let used = |shell: &mut Session| -> u64 {
        let stats = shell.ask(".stats");
        let line = stats
            .lines()
            .find(|line| line.starts_with("Memory Used:"))
            .expect("the shell tells");
        line.split_whitespace()
            .nth(2)
            .and_then(|used| used.parse().ok())
            .expect("a number")
    };
    shell.ask(".stats off");
    let before = used(&mut shell);
    assert_eq!(
        audit(&mut shell, "without_fence, not_a_fence, cast(largest as integer)", "t"),
        "250000|0|999999"
    );
    let grown = used(&mut shell).saturating_sub(before);
    assert!(grown < 1_000_000, "{grown} bytes");
}

#[test]
fn it_may_not_be_read_by_a_schema() {
    let mut shell = Shell::new().start();
    shell.ask("create view v as select * from fence_audit");
    assert!(shell.ask("select * from v").contains("unsafe use of virtual table"));
}
