//! Loading: all of it or a part, twice, on many threads; and what becomes of errors and panics.

use std::sync::mpsc;

use fence_tests::surface::{Class, FUNCTIONS};
use fence_tests::{DEADLINE, Python, Shell, faulty_library, folder, library, wait_until};
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, ffi};

/// A query for all of our functions that a host lists: name, number of arguments, flags, encoding, type.
const LISTED: &str = "select name || ' ' || narg || ' ' || flags || ' ' || enc || ' ' || type
     from pragma_function_list where not builtin and (name glob 'fence_*' or name glob 'semaphore_*') order by 1";

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
fn a_wait_ends_when_the_host_interrupts_it_where_the_host_can_tell() {
    // The SQLite in this process can: it is newer than 3.41.
    let folder = folder();
    let app = folder.path().join("app.db");
    let load = || {
        let db = Connection::open(&app).expect("a database");
        // SAFETY: the library is ours.
        unsafe {
            db.load_extension_enable().expect("it may");
            db.load_extension(library(), None::<&str>).expect("it loads");
        }
        db
    };
    let (holder, waiter) = (load(), load());
    let fence: String = holder
        .query_row("select fence_acquire('job')", (), |row| row.get(0))
        .expect("a lease");
    let handle = waiter.get_interrupt_handle();
    let (send, begun) = mpsc::channel();
    waiter
        .create_scalar_function("begun", 0, FunctionFlags::SQLITE_UTF8, move |_| {
            Ok(send.send(()).is_ok())
        })
        .expect("a function of the test");
    let waiting = std::thread::spawn(move || {
        waiter.query_row("select begun(), fence_acquire('job', 30000, 3600000)", (), |row| {
            row.get::<_, Option<String>>(1)
        })
    });
    // From here to the call of fence_acquire SQLite itself looks for no interrupt.
    begun.recv_timeout(DEADLINE).expect("the statement runs");
    handle.interrupt();
    wait_until("the wait ends", || waiting.is_finished());
    let answer = waiting.join().expect("no panic").expect_err("it was interrupted");
    assert_eq!(
        answer.sqlite_error_code(),
        Some(rusqlite::ErrorCode::OperationInterrupted)
    );
    let released = holder.query_row("select fence_release('job', ?1)", [fence], |row| row.get(0));
    assert_eq!(released, Ok(1));
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
        one(db, "select fence_pad(1)")
        # A function that holds what belongs to the connection, without opening a store.
        one(db, "select fence_release('job', NULL)")
        for sql in ("select fence_pad('x')", "select fence_require(2, 1)", "select fence_release('job', 'x')"):
            try:
                one(db, sql)
                raise SystemExit("no error")
            except sqlite3.Error as e:
                assert str(e).startswith("fence: "), e
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
