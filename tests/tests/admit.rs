//! `fence_admit(key, fence)` and its plain-SQL form: for what has no row of its own.

use fence_tests::{Session, Shell, folder, root};

const TABLE: &str = "select key, cast(fence as integer) from fence_admitted order by key";

fn admit(shell: &mut Session, key: &str, fence: &str) -> String {
    shell.ask(&format!("select fence_admit({key}, {fence})"))
}

#[test]
fn the_largest_fence_of_each_key_is_kept_and_a_lower_one_changes_nothing() {
    let mut shell = Shell::new().start();
    for (key, fence, admitted) in [
        ("'a'", "7", "1"),
        ("'a'", "'7'", "1"),
        ("'a'", "6", "0"),
        ("'a'", "'0009'", "1"),
        ("'a'", "8", "0"),
        ("'A'", "1", "1"),
        ("'a '", "2", "1"),
        ("1", "3", "1"),
        ("'1'", "2", "0"),
        ("'a'", "fence_blob('10')", "1"),
    ] {
        assert_eq!(admit(&mut shell, key, fence), admitted, "{key} {fence}");
    }
    assert_eq!(shell.ask(TABLE), "1|3\nA|1\na|10\na |2");
}

#[test]
fn check_02_no_fence_is_never_admitted_and_leaves_no_trace() {
    let mut shell = Shell::new().start();
    assert_eq!(admit(&mut shell, "'a'", "null"), "0");
    assert_eq!(admit(&mut shell, "'a'", "''"), "0");
    assert_eq!(shell.ask("select count(*) from sqlite_schema"), "0");
}

#[test]
fn check_03_what_is_no_fence_or_no_key_is_an_error() {
    let mut shell = Shell::new().start();
    for (key, fence, error) in [
        ("'a'", "7.0", "fence: not a fence: fence_admit(fence) is 7.0"),
        ("'a'", "' 7'", "fence: not a fence: fence_admit(fence) is ' 7'"),
        ("'a'", "-1", "fence: not a fence: fence_admit(fence) is -1"),
        ("null", "7", "fence: not a key: fence_admit(key) is NULL"),
        ("''", "7", "fence: not a key: fence_admit(key) is ''"),
        ("x'61'", "7", "fence: not a key: fence_admit(key) is x'61'"),
    ] {
        let answer = admit(&mut shell, key, fence);
        assert!(answer.contains(error), "{answer}");
    }
    assert_eq!(shell.ask("select count(*) from sqlite_schema"), "0");
}

#[test]
fn a_rollback_takes_the_admission_back_together_with_the_write() {
    let mut shell = Shell::new().start();
    shell.ask("create table work (what)");
    shell.ask("begin");
    assert_eq!(admit(&mut shell, "'page'", "8"), "1");
    shell.ask("insert into work values ('by 8')");
    shell.ask("rollback");
    assert_eq!(
        shell.ask("select count(*) from sqlite_schema where name = 'fence_admitted'"),
        "0"
    );
    assert_eq!(admit(&mut shell, "'page'", "7"), "1");
    shell.ask("begin");
    assert_eq!(admit(&mut shell, "'page'", "9"), "1");
    shell.ask("savepoint s");
    assert_eq!(admit(&mut shell, "'page'", "10"), "1");
    shell.ask("rollback to s");
    shell.ask("commit");
    assert_eq!(shell.ask(TABLE), "page|9");
}

#[test]
fn it_works_inside_of_the_write_that_it_admits() {
    let mut shell = Shell::new().start();
    shell.ask("create table pages (id integer primary key, body text)");
    shell.ask("insert into pages values (1, 'old'), (2, 'old')");
    let write =
        |fence: u8| format!("update pages set body = 'by {fence}' where id = 1 and fence_admit('page:1', {fence})");
    for (fence, changes, body) in [(8, "1", "by 8"), (7, "0", "by 8"), (8, "1", "by 8"), (9, "1", "by 9")] {
        assert_eq!(shell.ask(&write(fence)), "");
        assert_eq!(shell.ask("select changes()"), changes);
        assert_eq!(shell.ask("select body from pages"), format!("{body}\nold"));
    }
    // A statement that fails takes the admission back as well.
    shell.ask("update pages set id = 2 where id = 1 and fence_admit('page:1', 10)");
    assert_eq!(shell.ask(TABLE), "page:1|9");
    assert_eq!(shell.ask("select last_insert_rowid()"), "2");
}

#[test]
fn the_table_is_the_one_of_main_and_a_strange_one_is_an_error() {
    let mut shell = Shell::new().start();
    shell.ask("create temp table fence_admitted (key, fence)");
    assert_eq!(admit(&mut shell, "'a'", "7"), "1");
    assert_eq!(shell.ask("select count(*) from temp.fence_admitted"), "0");
    assert_eq!(shell.ask("select count(*) from main.fence_admitted"), "1");
    shell.ask("drop table main.fence_admitted");
    shell.ask("create table main.fence_admitted (what)");
    let answer = admit(&mut shell, "'a'", "7");
    assert!(
        answer.contains("fence: cannot write to the table fence_admitted of the main database: "),
        "{answer}"
    );
}

#[test]
fn a_busy_or_read_only_database_is_an_error_with_its_own_code() {
    let folder = folder();
    let app = folder.path().join("app.db");
    let mut other = Shell::plain().on(&app).start();
    other.ask("create table t (x)");
    other.ask("begin immediate");
    let mut shell = Shell::new().on(&app).start();
    let answer = admit(&mut shell, "'a'", "7");
    assert!(answer.contains("database is locked (5)"), "{answer}");
    other.ask("commit");
    shell.ask("pragma query_only = on");
    let answer = admit(&mut shell, "'a'", "7");
    assert!(answer.contains("attempt to write a readonly database (8)"), "{answer}");
}

/// sql/admit.sql with these values in place of its parameters, and whether it admitted.
fn admit_in_plain_sql(shell: &mut Session, key: &str, fence: u128) -> String {
    let statement = std::fs::read_to_string(root().join("sql/admit.sql")).expect("the file is there");
    let code: Vec<_> = statement.lines().filter(|line| !line.starts_with("--")).collect();
    let filled = code
        .join(" ")
        .replace(":key", &format!("'{key}'"))
        .replace(":fence", &format!("'{fence:040}'"));
    assert_eq!(shell.ask(filled.trim()), "");
    shell.ask("select changes()")
}

#[test]
fn the_plain_form_admits_what_the_function_admits_in_the_same_table() {
    let folder = folder();
    let app = folder.path().join("app.db");
    let mut plain = Shell::plain().on(&app).start();
    plain.ask(&format!(
        ".read \"{}\"",
        root().join("sql/0006_fence_admitted.sql").display()
    ));
    let mut with = Shell::new().on(&app).start();
    for (fence, admitted) in [(8, "1"), (7, "0"), (8, "1"), (12, "1"), (9, "0")] {
        assert_eq!(admit_in_plain_sql(&mut plain, "plain", fence), admitted, "{fence}");
        assert_eq!(admit(&mut with, "'function'", &fence.to_string()), admitted, "{fence}");
    }
    assert_eq!(admit(&mut with, "'plain'", "11"), "0");
    assert_eq!(plain.ask(TABLE), "function|12\nplain|12");
    assert!(
        plain
            .ask("insert into fence_admitted values ('x', '7')")
            .contains("CHECK"),
        "only padded fences compare"
    );
}
