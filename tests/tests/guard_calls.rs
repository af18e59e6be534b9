//! `fence_guard` and `fence_unguard`: what they refuse and why, and what they leave of the caller's work.

use fence_tests::{Python, Session, Shell, folder};

const CHATS: &str = "create table chats (id integer primary key, slug text unique, summary text,
  summary_fence text not null default '')";
const TRIGGERS: &str =
    "select group_concat(name, ' ') from (select name from sqlite_schema where type = 'trigger' order by name)";

fn shell() -> Session {
    let mut shell = Shell::new().start();
    assert_eq!(shell.ask(CHATS), "");
    shell
}

/// A column that is declared so, and what becomes of a guard on it.
const DECLARED: &[(&str, &str)] = &[
    ("text", "1"),
    ("text collate nocase not null", "1"),
    ("varchar(40)", "1"),
    ("char(40) default ''", "1"),
    ("clob default null", "1"),
    ("blob", "1"),
    ("", "1"),
    ("text default '0000000000000000000000000000000000000007'", "1"),
    ("bigint", "has INTEGER affinity (its type is 'bigint')"),
    ("integer", "has INTEGER affinity"),
    ("string", "has NUMERIC affinity (its type is 'string')"),
    ("numeric", "has NUMERIC affinity"),
    ("decimal(40, 0)", "has NUMERIC affinity (its type is 'decimal(40, 0)')"),
    ("any", "has NUMERIC affinity"),
    ("fence", "has NUMERIC affinity (its type is 'fence')"),
    ("double precision", "has REAL affinity"),
    (
        "text default 0",
        "has the default 0, which is no fence: declare it DEFAULT ''",
    ),
    ("default 0", "has the default 0, which is no fence"),
    ("text default 'none'", "has the default 'none', which is no fence"),
    ("text as (lower(id))", "is generated, so no write can set it"),
];

#[test]
fn a_column_that_eats_digits_or_cannot_hold_a_fence_is_refused_with_the_reason() {
    for (declared, expected) in DECLARED {
        let mut shell = Shell::new().start();
        shell.ask(&format!("create table t (id text, f {declared})"));
        let answer = shell.ask("select fence_guard('t', 'f')");
        if *expected == "1" {
            assert_eq!(answer, "1", "{declared}");
        } else {
            assert!(
                answer.contains(&format!("fence: column 'f' of t {expected}")),
                "{declared}: {answer}"
            );
            assert_eq!(
                shell.ask("select count(*) from sqlite_schema where type = 'trigger'"),
                "0"
            );
        }
    }
}

#[test]
fn a_strict_table_keeps_digits_in_text_and_any_but_not_in_blob() {
    for (declared, expected) in [
        ("text", "1"),
        ("any", "1"),
        ("blob", "is BLOB in a STRICT table, which takes no text"),
    ] {
        let mut shell = Shell::new().start();
        shell.ask(&format!("create table t (f {declared}, g text) strict"));
        let answer = shell.ask("select fence_guard('t', 'f')");
        assert!(answer.contains(expected), "{declared}: {answer}");
    }
}

/// A schema, the arguments of a call, and what the refusal says.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "",
        "'t', 'f'",
        "fence: no table is called 't': name one of main as 'table', one of another database as 'schema.table'",
    ),
    ("", "'other.t', 'f'", "no table is called 'other.t'"),
    ("", "'sqlite_schema', 'sql'", "no table is called 'sqlite_schema'"),
    (
        "create table t (id, f text)",
        "'t', 'g'",
        "fence: t has no column 'g': it has id, f",
    ),
    ("create table t (id, f text)", "'t', 'rowid'", "t has no column 'rowid'"),
    (
        "create view v as select 1 as f",
        "'v', 'f'",
        "v is a view, which stores nothing: guard the tables",
    ),
    (
        "create virtual table v using fts5(f)",
        "'v', 'f'",
        "v is a virtual table, which takes no triggers",
    ),
    (
        "create virtual table v using fts5(f)",
        "'v_content', 'c0'",
        "v_content belongs to a virtual table",
    ),
    // Rows that hold something else.
    (
        "create table t (id, f text); insert into t values (1, ''), (2, null), (3, '7'), (4, 'it''s')",
        "'t', 'f'",
        "fence: 2 rows of t have no padded fence in 'f', such as '7': set it to fence_pad() of what it holds",
    ),
    (
        "create table t (f); insert into t values (7)",
        "'t', 'f'",
        "1 row of t has no padded fence in 'f', such as 7",
    ),
    (
        "create table t (f); insert into t values (zeroblob(1000))",
        "'t', 'f'",
        "such as X'000000000000",
    ),
    // Unique indexes that say more of a row than can be said again of a new one.
    (
        "create table t (id integer primary key, a, f text); create unique index i on t (a = 1)",
        "'t', 'f'",
        "fence: cannot look through the unique index 'i' of t: its expression 'a = 1' compares values",
    ),
    (
        "create table t (id integer primary key, a, f text); create unique index i on t (a) where id > 5",
        "'t', 'f'",
        "cannot look through the unique index 'i' of t: it uses the row's id, which is not known before an insert",
    ),
    (
        "create table t (a, f text); create unique index i on t (a) where rowid > 5",
        "'t', 'f'",
        "it uses the row's id",
    ),
    (
        "create table t (id integer primary key, a as (id % 10), f text); create unique index i on t (a)",
        "'t', 'f'",
        "a generated column uses the row's id",
    ),
    (
        "create table t (a, \"like\", f text); create unique index i on t (a || like)",
        "'t', 'f'",
        "'like' is both a column and a keyword in it",
    ),
    // The other arguments.
    (
        CHATS,
        "'chats', 'summary_fence', 'strict'",
        "fence_guard(mode) is 'strict': give 'holder', 'write', 'holder+remember'",
    ),
    (CHATS, "'chats', 'summary_fence', null", "fence_guard(mode) is NULL"),
    (
        CHATS,
        "'chats', 'summary_fence', 'write', 'summary'",
        "is 'summary': give a JSON array of names, such as '[\"summary\"",
    ),
    (
        CHATS,
        "'chats', 'summary_fence', 'write', '[]'",
        "give a JSON array of names",
    ),
    (
        CHATS,
        "'chats', 'summary_fence', 'write', '[1]'",
        "give a JSON array of names",
    ),
    (
        CHATS,
        "'chats', 'summary_fence', 'write', null",
        "fence_guard(columns) is NULL",
    ),
    (
        CHATS,
        "'chats', 'summary_fence', 'write', '[\"text\"]'",
        "chats has no column 'text': it has id, slug, summary",
    ),
    (
        CHATS,
        "'chats', 'summary_fence', 'write', '[\"summary_fence\"]'",
        "'summary_fence' is the fence column itself",
    ),
    (
        CHATS,
        "'chats', 'summary_fence', 'holder', '[\"summary\"]'",
        "leave them out, or choose mode 'write'",
    ),
    (
        "create table t (a, b as (a + 1), f text)",
        "'t', 'f', 'write', '[\"b\"]'",
        "column 'b' of t is generated, so no write sets it",
    ),
    (
        "create table t (a, f text)",
        "'t', 'f', 'holder+remember'",
        "t has no primary key and no unique index",
    ),
    (
        "create table t (a, f text, unique (a, f))",
        "'t', 'f', 'holder+remember'",
        "'f' is part of a unique index of t",
    ),
    (
        "create table t (a unique, f text); create table t_f_deleted (x)",
        "'t', 'f', 'holder+remember'",
        "the table 't_f_deleted' is to remember the fences of rows deleted from t, and has no column 'f'",
    ),
];

#[test]
fn a_table_that_cannot_be_guarded_is_refused_with_the_reason_and_left_as_it_was() {
    for (schema, arguments, reason) in REFUSED {
        let mut shell = Shell::new().start();
        shell.ask(schema);
        let before = shell.ask("select * from sqlite_schema");
        let answer = shell.ask(&format!("select fence_guard({arguments})"));
        assert!(
            answer.contains("fence: ") && answer.contains(reason),
            "{schema}: {arguments}: {answer}"
        );
        assert_eq!(shell.ask("select * from sqlite_schema"), before);
    }
}

#[test]
fn a_table_whose_guard_this_connection_could_not_run_is_refused_with_the_reason() {
    let folder = folder();
    let app = folder.path().join("app.db");
    let script = "
db = connect(args[0])
db.create_collation('german', lambda a, b: (a > b) - (a < b))
db.execute('create table t (name text unique collate german, fence text)')
";
    assert_eq!(Python::new(script).arg(&app).run().ok(), "");
    let mut shell = Shell::new().on(&app).start();
    let answer = shell.ask("select fence_guard('t', 'fence')");
    assert!(
        answer.contains(
            "fence: cannot guard t: this SQLite does not take the triggers: no such collation sequence: german"
        ),
        "{answer}"
    );
    assert_eq!(shell.ask(TRIGGERS), "");
}

#[test]
fn a_name_means_the_table_that_is_called_so() {
    let mut shell = Shell::new().start();
    shell.ask("attach ':memory:' as other");
    for table in [
        "\"other.t\"",
        "other.t",
        "\"it's \"\"it\"\"\"",
        "\"日本\"",
        "\"select\"",
        "MiXeD",
    ] {
        shell.ask(&format!("create table {table} (f text)"));
    }
    for (named, on) in [
        ("'other.t'", "other.t"), // Of main: a name of main is named as it is.
        ("'other.\"t\"'", "t"),
        ("'main.other.t'", "other.t"),
        ("'it''s \"it\"'", "it's \"it\""),
        ("'[it''s \"it\"]'", "it's \"it\""),
        ("'main.\"日本\"'", "日本"),
        ("'select'", "select"),
        ("'mixed'", "MiXeD"),
    ] {
        assert_eq!(shell.ask(&format!("select fence_guard({named}, 'F')")), "1", "{named}");
        let guarded =
            "select distinct tbl_name from (select * from sqlite_schema union all select * from other.sqlite_schema)
                       where type = 'trigger'";
        assert_eq!(shell.ask(guarded), on, "{named}");
        assert_eq!(shell.ask(&format!("select fence_unguard({named})")), "1", "{named}");
    }
}

#[test]
fn a_refusal_takes_back_what_it_did_and_nothing_of_the_callers_transaction() {
    let folder = folder();
    let mut shell = Shell::new().on(folder.path().join("app.db")).start();
    shell.ask(CHATS);
    shell.ask("begin");
    shell.ask("insert into chats (id) values (1)");
    shell.ask("savepoint mine");
    shell.ask("insert into chats (id, summary_fence) values (2, 'x')");
    let refused = shell.ask("select fence_guard('chats', 'summary_fence', 'write+remember')");
    assert!(refused.contains("1 row of chats has no padded fence"), "{refused}");
    shell.ask("rollback to mine");
    assert_eq!(shell.ask("select fence_guard('chats', 'summary_fence')"), "1");
    assert_eq!(shell.ask("commit"), "");
    assert_eq!(shell.ask("select id from chats"), "1");
    assert_eq!(
        shell.ask("select name from sqlite_schema where name like '%deleted%'"),
        ""
    );

    // A rollback of the caller's takes the guard back.
    shell.ask("begin");
    shell.ask("select fence_unguard('chats')");
    shell.ask("rollback");
    assert!(
        shell
            .ask("update chats set summary_fence = 'x'")
            .contains("not a fence")
    );
}

#[test]
fn a_call_that_cannot_have_a_savepoint_says_so() {
    let mut shell = shell();
    let answer = shell.ask("insert into chats (id, summary) select 1, fence_guard('chats', 'summary_fence')");
    assert!(
        answer.contains("fence: cannot open a savepoint: call this in a SELECT of its own"),
        "{answer}"
    );
    assert_eq!(shell.ask(TRIGGERS), "");
}

#[test]
fn running_it_again_changes_nothing_and_another_mode_replaces_the_guard() {
    let mut shell = shell();
    let guard = "select fence_guard('chats', 'summary_fence', 'write', '[\"summary\", \"slug\"]')";
    assert_eq!(shell.ask(guard), "1");
    let once = shell.ask("pragma schema_version");
    assert_eq!(shell.ask(guard), "1");
    assert_eq!(
        shell.ask("select fence_guard('CHATS', 'Summary_Fence', 'write', '[\"slug\",\"SUMMARY\",\"slug\"]')"),
        "1"
    );
    assert_eq!(shell.ask("pragma schema_version"), once, "nothing was written");
    let three = "chats_summary_fence_guard_insert chats_summary_fence_guard_update chats_summary_fence_guard_write";
    assert_eq!(shell.ask(TRIGGERS), three);

    assert_eq!(shell.ask("select fence_guard('chats', 'summary_fence')"), "1");
    assert_eq!(
        shell.ask("insert into chats (id, summary) values (1, 'without a fence')"),
        ""
    );
    assert_eq!(shell.ask("select mode from fence_audit"), "holder");
    assert_eq!(
        shell.ask("select fence_guard('chats', 'summary_fence', 'holder+remember')"),
        "1"
    );
    assert_eq!(
        shell.ask("select mode from fence_audit where \"table\" = 'chats'"),
        "holder+remember"
    );
    assert_eq!(
        shell.ask("select fence_unguard('chats'), fence_unguard('chats')"),
        "1|0"
    );
    assert_eq!(shell.ask(TRIGGERS), "");
}

#[test]
fn a_table_may_have_a_guard_for_each_of_two_fence_columns() {
    let mut shell = Shell::new().start();
    shell.ask("create table t (id integer primary key, a text, a_fence text, b text, b_fence text)");
    shell.ask("insert into t values (1, '', printf('%040d', 8), '', printf('%040d', 3))");
    assert_eq!(shell.ask("select fence_guard('t', 'a_fence', 'write', '[\"a\"]')"), "1");
    assert_eq!(shell.ask("select fence_guard('t', 'b_fence', 'write', '[\"b\"]')"), "1");
    assert!(
        shell
            .ask("update t set a = 'x', b_fence = printf('%040d', 9)")
            .contains("unfenced")
    );
    assert_eq!(shell.ask("update t set b = 'x', b_fence = printf('%040d', 4)"), "");
    assert!(
        shell
            .ask("update t set a = 'x', a_fence = printf('%040d', 7)")
            .contains("stale")
    );
    assert_eq!(
        shell.ask("select fence_unguard('t', 'a_fence'), fence_unguard('t', 'a')"),
        "1|0"
    );
    assert_eq!(
        shell.ask("select fence_column, guard from fence_audit"),
        "b_fence|whole\na_fence|none"
    );
    assert_eq!(shell.ask("select fence_unguard('t')"), "1");
}

#[test]
fn a_guard_survives_every_rename_and_a_new_table_of_the_old_name_gets_its_own() {
    let mut shell = shell();
    assert_eq!(
        shell.ask("select fence_guard('chats', 'summary_fence', 'write+remember', '[\"summary\"]')"),
        "1"
    );
    for sql in [
        "alter table chats rename to \"old chats\"",
        "alter table \"old chats\" rename column summary_fence to \"fence of it\"",
        "alter table \"old chats\" rename column summary to text",
        "alter table chats_summary_fence_deleted rename to gone",
        "insert into \"old chats\" (id, \"fence of it\") values (42, fence_pad(8)), (43, fence_pad(8))",
        "delete from \"old chats\" where id = 42",
        "delete from \"old chats\" where id = 43",
        CHATS,
    ] {
        assert_eq!(shell.ask(sql), "", "{sql}");
    }
    assert_eq!(shell.ask("select count(*) from gone"), "2");
    let late = "insert into \"old chats\" (id, \"fence of it\") values (43, fence_pad(7))";
    assert!(shell.ask(late).contains("fence: stale: "));
    let audited = "select \"table\", guard, mode, columns from fence_audit where guard <> 'none' order by 1";
    assert_eq!(shell.ask(audited), "old chats|whole|write+remember|[\"text\"]");
    let version = shell.ask("pragma schema_version");
    assert_eq!(
        shell.ask("select fence_guard('old chats', 'fence of it', 'write+remember', '[\"text\"]')"),
        "1"
    );
    assert_eq!(shell.ask("pragma schema_version"), version, "it is the same guard");

    assert_eq!(shell.ask("select fence_guard('chats', 'summary_fence')"), "1");
    assert_eq!(
        shell.ask(audited),
        "chats|whole|holder|\nold chats|whole|write+remember|[\"text\"]"
    );
    for table in ["'chats'", "'old chats'"] {
        assert_eq!(shell.ask(&format!("select fence_unguard({table})")), "1");
    }
    assert_eq!(shell.ask(TRIGGERS), "");
}

#[test]
fn a_table_whose_rows_nothing_can_name_is_guarded_for_updates() {
    let mut shell = Shell::new().start();
    shell.ask("create table t (rowid text, oid text, _rowid_ text, f text)");
    assert_eq!(shell.ask("select fence_guard('t', 'f')"), "1");
    assert_eq!(shell.ask("insert into t (f) values (fence_pad(8)), (fence_pad(7))"), "");
    assert!(shell.ask("update t set f = fence_pad(7)").contains("fence: stale: "));
    assert!(
        shell
            .ask("insert into t (f) values ('7')")
            .contains("fence: not a fence: ")
    );
}

#[test]
fn what_remembers_takes_no_index_of_another_table_away() {
    let mut shell = shell();
    shell.ask("create table mine (x)");
    shell.ask("create index chats_summary_fence_deleted_1 on mine (x)");
    let answer = shell.ask("select fence_guard('chats', 'summary_fence', 'holder+remember')");
    assert!(
        answer.contains("index chats_summary_fence_deleted_1 already exists"),
        "{answer}"
    );
    let indexes = "select count(*) from pragma_index_list('mine')";
    assert_eq!(shell.ask(indexes), "1");
}

#[test]
fn every_table_of_a_database_is_guarded_by_one_select() {
    let mut shell = shell();
    shell.ask("create table notes (id text primary key, fence text)");
    shell.ask("create table other (id)");
    let all = "select fence_guard(\"table\", fence_column) from fence_audit where guard = 'none' and fence_column is not null";
    assert_eq!(shell.ask(all), "1\n1");
    assert_eq!(
        shell.ask("select \"table\", verdict from fence_audit where guard = 'whole'"),
        "chats|guarded\nnotes|guarded"
    );
}

#[test]
fn what_is_remembered_outlives_the_guard_and_the_table() {
    let mut shell = shell();
    let guard = "select fence_guard('chats', 'summary_fence', 'holder+remember')";
    assert_eq!(shell.ask(guard), "1");
    shell.ask("insert into chats (id, slug, summary_fence) values (42, 'a', printf('%040d', 8))");
    shell.ask("delete from chats");
    // As a migration tool does it.
    shell.ask(
        "create table new_chats (id integer primary key, slug text unique, email text unique, summary_fence text)",
    );
    shell.ask("insert into new_chats (id) select id from chats");
    shell.ask("drop table chats");
    shell.ask("alter table new_chats rename to chats");
    let late = "insert into chats (slug, summary_fence) values ('a', printf('%040d', 7))";
    assert_eq!(shell.ask(late), "", "the guard is gone with the table");
    shell.ask("delete from chats");
    assert_eq!(shell.ask(guard), "1");
    assert!(shell.ask(late).contains("fence: stale: "));
    // A key that came later is remembered from now on.
    shell.ask("insert into chats (email, summary_fence) values ('ann@x', printf('%040d', 9))");
    shell.ask("delete from chats");
    assert!(
        shell
            .ask("insert into chats (email, summary_fence) values ('ann@x', printf('%040d', 8))")
            .contains("stale")
    );
    // The table that remembers is a table like any other: whoever knows that no old holder is left may empty it.
    shell.ask("delete from chats_summary_fence_deleted");
    assert_eq!(shell.ask(late), "");
}
