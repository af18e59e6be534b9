//! `fence audit`: which verdicts are faults, and that nothing is written.

mod fence;

use fence::{run, status};
use fence_tests::{Shell, folder};

/// A database made by these statements, audited: the exit status and the verdicts.
fn audit(sql: &str) -> (i32, String) {
    let folder = folder();
    Shell::new().on(folder.path().join("app.db")).run(sql).ok();
    let audited = run(&folder, ["audit", "app.db"]);
    assert_eq!(audited.err, "");
    (status(&audited), audited.out)
}

const CHATS: &str =
    "create table chats (id integer primary key, summary text, summary_fence text not null default '');";

/// [`CHATS`], guarded, and what comes behind that.
fn guarded(then: &str) -> String {
    format!("{CHATS} select fence_guard('chats', 'summary_fence'); {then}")
}

#[test]
fn a_guarded_fence_column_and_a_table_without_one_are_no_faults() {
    for (sql, verdict) in [
        (guarded(""), "\"verdict\":\"guarded\""),
        (
            guarded("insert into chats (id) values (1);"),
            "guarded; rows that have no fence yet: 1",
        ),
        ("create table t (x);".to_owned(), "no fence column"),
        ("create table t (x); drop table t;".to_owned(), "[]"),
    ] {
        let (exit, out) = audit(&sql);
        assert!(out.contains(verdict), "{sql}: {out}");
        assert_eq!(exit, 0, "{sql}: {out}");
    }
}

#[test]
fn a_fence_column_that_lets_a_stale_write_in_is_a_fault() {
    let rebuilt = "create table new (id integer primary key, summary text, summary_fence text not null default '');
                   drop table chats; alter table new rename to chats;";
    // An epoch of the year 2527, and a store that is of today.
    let ahead = "create temp table lease as select fence_acquire('k');
                 insert into chats values (1, 'x', fence_pad(fence_make(17592186044416, 1)));";
    for (sql, verdict) in [
        (CHATS.to_owned(), "not guarded"),
        (guarded(rebuilt), "not guarded"),
        (
            "create table t (id integer primary key, fence integer);".to_owned(),
            "wrong type",
        ),
        (
            format!("{CHATS} insert into chats values (1, 'x', 'no fence');"),
            "rows without a padded fence: 1",
        ),
        (guarded(ahead), "the store is behind this data"),
    ] {
        let (exit, out) = audit(&sql);
        assert!(out.contains(verdict), "{sql}: {out}");
        assert_eq!(exit, 1, "{sql}: {out}");
    }
}

#[test]
fn what_cannot_be_audited_is_trouble_and_nothing_is_made() {
    let folder = folder();
    let none = run(&folder, ["audit", "none.db"]);
    assert_eq!(status(&none), 2);
    assert!(none.err.starts_with("fence: \"none.db\" cannot be opened"), "{none}");
    std::fs::write(
        folder.path().join("text.db"),
        "no database, but long enough to be taken for one ".repeat(20),
    )
    .expect("a new file");
    let text = run(&folder, ["audit", "text.db"]);
    assert_eq!(status(&text), 2);
    assert!(text.err.contains("file is not a database"), "{text}");
    assert!(!folder.path().join("none.db").exists() && !folder.path().join("kv.db").exists());
}
