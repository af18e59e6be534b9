//! How often a statement acquires: the forms that do it once, and those that do not.
//!
//! SQLite may call a scalar function more often than it is written, or not at all; a table it reads once for each time
//! that it scans it. What stands here is what SQLite 3.40.1 does; the documentation shows the safe forms.

use fence_tests::{Session, folder, quick_folder, shell_in};

/// A form, in which `A` stands for the call of the function and `T` for the table. The table `t` has three rows.
struct Form(&'static str, Times);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Times {
    Never = 0,
    Once = 1,
    Twice = 2,
    /// Once for each row of `t`.
    EachRow = 3,
}
use Times::{EachRow, Never, Once, Twice};

/// The forms to use.
const SAFE: &[Form] = &[
    Form("select A", Once),
    Form("select A, 1 as one", Once),
    Form("insert into got values (A)", Once),
    Form("insert into got select A", Once),
    Form("create table made as select A as p", Once),
    Form("update t set x = A where x = 1", Once),
    Form("select (select A) from t", Once),
    Form(
        "with g as materialized (select A as p) select p, p from g where p is not null",
        Once,
    ),
    Form("select permit from T", Once),
    Form("select permit, permit from T where permit is not null", Once),
    Form("select p from (select permit as p from T) where p is not null", Once),
    Form(
        "with g as (select permit as p from T) select p, p from g where p is not null",
        Once,
    ),
    Form(
        "with g as (select permit as p from T) select a.p, b.p from g as a, g as b",
        Once,
    ),
    Form("insert into got select permit from T", Once),
    Form("select exists (select permit from T)", Once),
    Form("select count(*) from T", Once),
    Form("select (select permit from T) from t", Once),
    Form("update t set x = permit from T", Once),
];

/// The forms that call more or less often than they seem to.
const UNSAFE: &[Form] = &[
    Form("select p from (select A as p) where p is not null", Twice),
    Form("with g as (select A as p) select p from g where p is not null", Twice),
    Form("select A as p where p is not null", Twice),
    Form("select exists (select A)", Never),
    Form("select permit from T limit 0", Never),
    Form("select A from t", EachRow),
    Form("select * from t where A is not null", EachRow),
    Form("update t set x = A", EachRow),
    Form("select permit from t cross join T", EachRow),
    Form("select permit from t left join T", EachRow),
];

fn shell(folder: &tempfile::TempDir) -> Session {
    let mut shell = shell_in(folder);
    shell.ask("create table t (x)");
    shell.ask("create table got (p)");
    shell.ask("insert into t values (1), (2), (3)");
    shell
}

/// How many permits the form acquires.
#[track_caller]
fn grants(shell: &mut Session, form: &str, key: usize) -> usize {
    let call = format!("semaphore_acquire('{key}', 100)");
    let sql = form.replace(['A', 'T'], &call);
    let answer = shell.ask(&sql);
    assert!(!answer.contains("rror"), "{sql}: {answer}");
    shell.ask("drop table if exists made");
    let count = shell.ask(&format!("select count(*) from fence_leases where key = '{key}'"));
    count.parse().expect("a number")
}

#[test]
fn the_safe_forms_acquire_once_and_the_unsafe_ones_as_often_as_is_written_here() {
    let folder = quick_folder();
    let mut shell = shell(&folder);
    assert!(SAFE.iter().all(|Form(_, times)| *times == Once));
    for (n, Form(form, times)) in SAFE.iter().chain(UNSAFE).enumerate() {
        assert_eq!(grants(&mut shell, form, n), *times as usize, "{form}");
    }
}

#[test]
fn an_unsafe_form_holds_the_key_and_tells_nobody_the_fence() {
    let folder = folder();
    let mut shell = shell(&folder);
    let unknown = "select f from (select fence_acquire('k') as f) where f is not null";
    assert_eq!(shell.ask(unknown), "", "the second call found the key held");
    assert_eq!(shell.ask("select count(*) from fence_leases"), "1");

    let known = shell.ask("select fence from fence_acquire('j') where fence is not null");
    assert_eq!(shell.ask(&format!("select fence_release('j', '{known}')")), "1");
}

#[test]
fn a_table_has_one_row_with_the_functions_answer() {
    let folder = folder();
    let mut shell = shell(&folder);
    for (table, column) in [
        ("fence_acquire('k', 60000, 0, '{\"delay_ms\": 7}')", "fence"),
        ("fence_acquire_all('[1, 2]', 60000, 0, '{\"delay_ms\": 7}')", "fence"),
        ("semaphore_acquire('k', 1, 60000, 0, '{}')", "permit"),
    ] {
        let select = format!("select count(*), typeof({column}) from {table}");
        assert_eq!(shell.ask(&select), "1|text", "{table}");
        assert_eq!(shell.ask(&select), "1|null", "{table}: NULL is an answer, too");
    }
    assert_eq!(shell.ask("select count(*) from fence_leases where delay_ms = 7"), "3");
    // The arguments may be columns, of another table or of the statement's parameters, and may be named.
    assert_eq!(
        shell.ask("select x, fence is not null from t, fence_acquire('key ' || x) order by x"),
        "1|1\n2|1\n3|1"
    );
    assert_eq!(
        shell.ask("select fence is not null from fence_acquire where key = 'named' and ttl_ms = 1000"),
        "1"
    );
}

#[test]
fn wrong_arguments_of_a_table_are_errors_as_those_of_the_function() {
    let folder = folder();
    let mut shell = shell(&folder);
    for (sql, complaint) in [
        (
            "select * from fence_acquire",
            "fence: fence_acquire as a table was given no argument",
        ),
        (
            "select * from fence_acquire()",
            "fence: fence_acquire as a table was given no argument",
        ),
        (
            "select * from fence_acquire('')",
            "fence: not a key: fence_acquire(key) is ''",
        ),
        ("select * from fence_acquire('k', 0)", "fence_acquire(ttl_ms) is 0"),
        (
            "select * from fence_acquire('k', 1, -1)",
            "fence_acquire(wait_ms) is -1",
        ),
        (
            "select * from fence_acquire('k', 1, 0, '')",
            "fence_acquire(options) is ''",
        ),
        (
            "select * from fence_acquire('k', 1, 0, '{}', 1)",
            "too many arguments on fence_acquire()",
        ),
        (
            "select * from fence_acquire where ttl_ms = 1",
            "argument 2 without those before it",
        ),
        (
            "select * from semaphore_acquire('k')",
            "semaphore_acquire(limit) is NULL",
        ),
        (
            "select * from fence_acquire_all('{}')",
            "fence_acquire_all(keys) is '{}'",
        ),
    ] {
        let answer = shell.ask(sql);
        assert!(answer.contains(complaint), "{sql}: {answer}");
    }
    assert_eq!(shell.ask("select count(*) from fence_leases"), "0");
}

#[test]
fn no_table_is_read_from_a_view_or_a_trigger() {
    let folder = folder();
    let mut shell = shell(&folder);
    let tables = [
        "fence_acquire('k')",
        "fence_acquire_all('[1]')",
        "semaphore_acquire('k', 1)",
        "fence_leases",
    ];
    for (n, table) in tables.iter().enumerate() {
        shell.ask(&format!("create view v{n} as select * from {table}"));
        let answer = shell.ask(&format!("select * from v{n}"));
        assert!(answer.contains("unsafe use of virtual table"), "{table}: {answer}");
        shell.ask(&format!("drop view v{n}"));
        shell.ask(&format!(
            "create trigger r{n} after insert on t begin insert into got select 1 from {table}; end"
        ));
        let answer = shell.ask("insert into t values (4)");
        assert!(answer.contains("unsafe use of virtual table"), "{table}: {answer}");
        shell.ask(&format!("drop trigger r{n}"));
    }
    assert_eq!(shell.ask("select count(*) from fence_leases"), "0");
}
