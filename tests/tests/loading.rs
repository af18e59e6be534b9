//! Loading: all of it or a part, twice, on many threads; refused with a message where it cannot work; and what then is there.

use fence_tests::surface::{Class, FUNCTIONS};
use fence_tests::{Python, Shell, doctored, faulty_library, folder, library};
use rusqlite::{Connection, ffi};

/// A query for all of our functions that a host lists: name, number of arguments, flags, encoding, type.
const LISTED: &str = "select name || ' ' || narg || ' ' || flags || ' ' || enc || ' ' || type
     from pragma_function_list where not builtin and (name glob 'fence_*' or name glob 'semaphore_*') order by 1";

/// A connection of the SQLite in this process, which is the host here.
fn connection() -> Connection {
    Connection::open_in_memory().expect("a database in memory")
}

fn lives(db: &Connection) {
    assert_eq!(db.query_row("select 1", (), |row| row.get(0)), Ok(1));
}

/// The lines of [`LISTED`] for these functions.
fn lines(only: impl Fn(Class) -> bool) -> Vec<String> {
    let mut lines = Vec::new();
    for function in FUNCTIONS.iter().filter(|function| only(function.class)) {
        for arguments in function.arguments {
            lines.push(format!(
                "{} {arguments} {} utf8 s",
                function.name,
                function.class.flags()
            ));
        }
    }
    lines.sort();
    lines
}

#[test]
fn the_entry_points_can_be_named_and_the_pure_one_gives_the_pure_functions_alone() {
    let load = |entry: &str| format!(".load \"{}\" {entry}\n{LISTED};", library().display());
    for entry in ["sqlite3_fence_init", "sqlite3_extension_init"] {
        let listed = Shell::plain().run(&load(entry)).ok();
        assert_eq!(listed.lines().collect::<Vec<_>>(), lines(|_| true), "{entry}");
    }
    let pure = lines(|class| class == Class::Pure);
    let listed = Shell::plain().run(&load("sqlite3_fencepure_init")).ok();
    assert_eq!(listed.lines().collect::<Vec<_>>(), pure);
    let modules = "select count(*) from pragma_module_list where name glob 'fence_*';";
    let script = format!(".load \"{}\" sqlite3_fencepure_init\n{modules}", library().display());
    assert_eq!(Shell::plain().run(&script).ok(), "0");

    // All of it can be had later.
    let both = format!("{}\n{}", load("sqlite3_fencepure_init"), load("sqlite3_fence_init"));
    let listed = Shell::plain().run(&both).ok();
    assert_eq!(listed.lines().skip(pure.len()).collect::<Vec<_>>(), lines(|_| true));
}

#[test]
fn loading_twice_changes_nothing_even_while_statements_run() {
    let load = format!(".load \"{}\"", library().display());
    let sql = format!("select load_extension('{}')", library().display());
    let mut shell = Shell::new().start();
    for again in [load.as_str(), &sql, &load] {
        assert_eq!(shell.ask(again), "");
        assert_eq!(shell.ask("select fence_ok(1, 2)"), "1");
    }
    let script = r#"
db = connect()
running = db.execute("with n(i) as (select 1 union all select i + 1 from n limit 9) select fence_pad(i) from n")
next(running)
db.enable_load_extension(True)
db.load_extension(extension)
print(len(running.fetchall()), one(db, "select fence_ok(1, 2)"))
"#;
    assert_eq!(Python::new(script).run().ok(), "8 1");
}

#[test]
fn a_second_load_takes_neither_its_store_nor_its_leases_from_a_connection() {
    let folder = folder();
    let mut shell = Shell::new()
        .on(folder.path().join("app.db"))
        .within(folder.path())
        .start();
    let chosen = shell.ask("select fence_open('other.kv')");
    let fence = shell.ask("select fence_acquire('job')");
    assert_eq!(shell.ask(&format!(".load \"{}\"", library().display())), "");
    assert_eq!(shell.ask("select fence_open()"), chosen);
    assert_eq!(shell.ask(&format!("select fence_release('job', '{fence}')")), "1");
}

#[test]
fn a_host_that_is_too_old_gets_a_message_with_both_versions_and_lives() {
    unsafe extern "C" fn just_too_old() -> i32 {
        3_034_000
    }
    unsafe extern "C" fn old() -> i32 {
        3_008_011
    }
    unsafe extern "C" fn ancient() -> i32 {
        3_003_008
    }
    let db = connection();
    let versions: [(unsafe extern "C" fn() -> i32, &str); 3] =
        [(just_too_old, "3.34.0"), (old, "3.8.11"), (ancient, "3.3.8")];
    for (libversion_number, version) in versions {
        // Nothing else of such a host may be called: most of it was not there yet.
        let mut api = doctored::Api::nothing();
        *api.slot("malloc") = *doctored::api().clone().slot("malloc");
        *api.slot("libversion_number") = libversion_number as usize;
        let api = doctored::host(api);
        for entry in ["sqlite3_fence_init", "sqlite3_extension_init", "sqlite3_fencepure_init"] {
            let message = format!(
                "fence: the SQLite of this program is {version}, and fence needs 3.34.1 or newer: \
                 update the program or the SQLite library that it uses"
            );
            assert_eq!(
                doctored::load(library(), entry, &db, api),
                Err((ffi::SQLITE_ERROR, message))
            );
        }
    }
    lives(&db);
}

#[test]
fn a_host_that_passes_no_functions_is_refused_in_silence() {
    let db = connection();
    let refused = doctored::load(library(), "sqlite3_fence_init", &db, None);
    assert_eq!(refused, Err((ffi::SQLITE_ERROR, String::new())));
    // Nor can a host without memory be told.
    let mut api = *doctored::api();
    *api.slot("malloc") = 0;
    let refused = doctored::load(library(), "sqlite3_fence_init", &db, doctored::host(api));
    assert_eq!(refused, Err((ffi::SQLITE_ERROR, String::new())));
    lives(&db);
}

#[test]
fn a_host_without_threads_is_refused() {
    unsafe extern "C" fn no_threads() -> i32 {
        0
    }
    let db = connection();
    let mut api = *doctored::api();
    *api.slot("xthreadsafe") = no_threads as *const () as usize;
    let refused = doctored::load(library(), "sqlite3_fence_init", &db, doctored::host(api));
    let (_, message) = refused.expect_err("it has no threads");
    assert!(message.contains("SQLITE_THREADSAFE=0"), "{message}");
    lives(&db);
}

#[test]
fn a_second_sqlite_in_the_process_is_refused_and_the_first_goes_on() {
    let db = connection();
    let permanently = Ok(ffi::SQLITE_OK_LOAD_PERMANENTLY);
    assert_eq!(
        doctored::load(library(), "sqlite3_fence_init", &db, doctored::api()),
        permanently
    );
    let other = connection();
    let api = doctored::host(*doctored::api());
    for entry in ["sqlite3_fence_init", "sqlite3_fencepure_init"] {
        let (code, message) = doctored::load(library(), entry, &other, api).expect_err("a second library");
        assert_eq!(code, ffi::SQLITE_ERROR);
        assert!(
            message.starts_with("fence: this process has two SQLite libraries, "),
            "{message}"
        );
    }
    lives(&other);
    assert_eq!(db.query_row("select fence_ok(1, 2)", (), |row| row.get(0)), Ok(1));
    assert_eq!(
        doctored::load(library(), "sqlite3_fence_init", &other, doctored::api()),
        permanently
    );
}

#[test]
fn two_hundred_threads_one_after_another_and_a_clean_end() {
    let script = r#"
import threading
given = []
def work():
    db = connect()
    given.append(one(db, "select fence_ok(1, 2)"))
    try:
        one(db, "select fence_ok('x', 2)")
    except sqlite3.Error:
        pass
    db.close()
for _ in range(200):
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
print(sum(given))
"#;
    assert_eq!(Python::new(script).run().ok(), "200");
}

#[test]
fn loading_and_closing_twenty_thousand_times_leaves_nothing_behind() {
    let script = r#"
import os, resource
def rounds(n):
    for _ in range(n):
        db = connect()
        for sql in ("select fence_pad(1)", "select fence_pad('x')", "select fence_require(2, 1)"):
            try:
                one(db, sql)
            except sqlite3.Error:
                pass
        db.close()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(os.listdir("/dev/fd"))
memory, files = rounds(2000)
more_memory, more_files = rounds(20000)
# Each byte left behind by a connection would be 20,000.
print((more_memory - memory) // 256, more_files - files)
"#;
    assert_eq!(Python::new(script).run().ok(), "0 0");
}

#[test]
fn a_panic_becomes_an_error_of_the_statement_and_the_host_lives() {
    let mut shell = Shell::new().with_library(faulty_library()).start();
    for (sql, place) in [
        ("select fault_pure()", "fault_pure"),
        ("select fault_store()", "fault_store"),
        ("select * from fault_rows", "fault_rows"),
    ] {
        let answer = shell.ask(sql);
        // (2) is SQLITE_INTERNAL. Before it comes what Rust itself prints about a panic.
        let error = format!(
            "fence: a fault of fence itself in {place}: the test asked for it: \
             please report it; the program can go on (2)"
        );
        assert!(answer.ends_with(&error), "{answer}");
        assert_eq!(shell.ask("select fence_ok(1, 2)"), "1");
    }
    shell.ask("create table t (x)");
    let answer = shell.ask("insert into t select fault_pure() from (select 1)");
    assert!(answer.contains("fault_pure"), "{answer}");
    assert_eq!(shell.ask("select count(*) from t"), "0");
}

#[test]
fn an_error_keeps_its_message_and_its_result_code() {
    let mut shell = Shell::new().with_library(faulty_library()).start();
    for code in [
        ffi::SQLITE_BUSY,
        ffi::SQLITE_FULL,
        ffi::SQLITE_READONLY,
        ffi::SQLITE_CANTOPEN,
        ffi::SQLITE_CONSTRAINT,
    ] {
        let answer = shell.ask(&format!("select fault_store({code})"));
        let error = format!("fence: the test asked for code {code}: expect it ({code})");
        assert!(answer.ends_with(&error), "{answer}");
    }
}

#[test]
fn a_function_or_table_with_an_effect_is_refused_in_the_schema() {
    let mut shell = Shell::new().with_library(faulty_library()).start();
    shell.ask("create table t (x)");
    shell.ask("create view of_function as select fault_store(5)");
    shell.ask("create view of_table as select * from fault_rows");
    shell.ask("create trigger by_function after insert on t begin select fault_store(5); end");
    for (sql, what) in [
        ("select * from of_function", "unsafe use of fault_store()"),
        ("select * from of_table", "unsafe use of virtual table \"fault_rows\""),
        ("insert into t values (1)", "unsafe use of fault_store()"),
    ] {
        for trusted in ["on", "off"] {
            shell.ask(&format!("pragma trusted_schema = {trusted}"));
            let answer = shell.ask(sql);
            assert!(answer.contains(what), "{sql}: {answer}");
        }
    }
}

#[test]
fn the_readers_of_arguments_name_what_they_refuse() {
    let mut shell = Shell::new().with_library(faulty_library()).start();
    for (sql, said) in [
        ("-1", "out of range: fault_store(code) is -1"),
        ("2147483648", "out of range: fault_store(code) is 2147483648"),
        (
            "9223372036854775807",
            "out of range: fault_store(code) is 9223372036854775807",
        ),
        ("'5'", "not an INTEGER: fault_store(code) is '5'"),
        ("5.0", "not an INTEGER: fault_store(code) is 5.0"),
        ("NULL", "not an INTEGER: fault_store(code) is NULL"),
        ("x'05'", "not an INTEGER: fault_store(code) is x'05'"),
    ] {
        let answer = shell.ask(&format!("select fault_store({sql})"));
        let error = format!("fence: {said}: give an INTEGER from 0 to 2147483647");
        assert!(answer.ends_with(&error), "{answer}");
    }
}
