//! Waiting: in line, in order of arrival, holding nothing meanwhile, and not for the dead.
//!
//! The stated bounds: a waiter that was killed is noticed at the next question, one that stands still after 2 s. A wait
//! that is interrupted ends within 100 ms. Where a test has a limit of time it is the tests' own, far above these.

use std::cell::Cell;
use std::time::{Duration, Instant};

use fence_core::{AcquireOptions, Error, Limit, Store, Wait};
use fence_tests::{LONG, Line, Process, Python, Session, folder, library, shell_in};
use rusqlite::Connection;
use rusqlite::functions::FunctionFlags;

/// How long a stopped waiter may hold others up.
const STALLED: Duration = Duration::from_secs(2);

fn is_fence(answer: &str) -> bool {
    answer.len() > 20 && answer.bytes().all(|byte| byte.is_ascii_digit())
}

/// Tells the shell to wait for the key; it stands in line when this returns.
fn wait_in_line(shell: &mut Session, line: &mut Line, key: &str) {
    let length = line.length();
    shell.tell(&format!("select fence_acquire('{key}', {LONG}, {LONG})"));
    line.becomes(length + 1);
}

#[track_caller]
fn answer_fence(shell: &mut Session) -> String {
    let answer = shell.answer();
    assert!(is_fence(&answer), "{answer}");
    answer
}

#[test]
fn lock_07_waiters_of_several_processes_are_served_in_order_of_arrival() {
    let folder = folder();
    let mut holder = shell_in(&folder);
    let mut held = holder.ask(&format!("select fence_acquire('k', {LONG})"));
    let mut line = Line::of(&folder);
    let mut waiters: Vec<_> = (0..6).map(|_| shell_in(&folder)).collect();
    for waiter in &mut waiters {
        wait_in_line(waiter, &mut line, "k");
    }
    for (n, mut waiter) in waiters.into_iter().enumerate() {
        // Free for a moment, but not for who does not stand in line.
        let released = holder.ask(&format!(
            "select fence_release('k', '{held}'), fence_acquire('k', {LONG})"
        ));
        assert_eq!(released, "1|NULL", "a newcomer jumped the queue before waiter {n}");
        let next = answer_fence(&mut waiter);
        assert!(next.parse::<u128>().ok() > held.parse::<u128>().ok());
        line.becomes(5 - n);
        held = next;
        holder = waiter;
    }
    let free = holder.ask(&format!(
        "select fence_release('k', '{held}'), fence_acquire('k', {LONG}) is null"
    ));
    assert_eq!(free, "1|0", "nobody stands in line any more");
}

#[test]
fn lock_07_one_that_acquires_and_releases_without_a_pause_starves_nobody() {
    let folder = folder();
    let mut greedy = Python::new(
        "
db = connect(args[0])
print('goes', flush=True)
while True:
    fence = one(db, \"select fence_acquire('k')\")
    if fence:
        one(db, \"select fence_release('k', ?)\", fence)
",
    )
    .arg(folder.path().join("app.db"))
    .start();
    assert_eq!(greedy.line(), "goes");
    let waiters = "
import threading
served = []
def wait():
    db = connect(args[0])
    fence = one(db, \"select fence_acquire('k', 3600000, 3600000)\")
    served.append(fence)
    assert one(db, \"select fence_release('k', ?)\", fence) == 1
threads = [threading.Thread(target=wait) for _ in range(20)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(len(set(served)))
";
    let served = Python::new(waiters).arg(folder.path().join("app.db")).run().ok();
    assert_eq!(served, "20");
}

#[test]
fn lock_05_the_ttl_counts_from_the_grant_and_not_from_the_start_of_the_wait() {
    let folder = folder();
    let (mut holder, mut waiter) = (shell_in(&folder), shell_in(&folder));
    // The lease of 1 s is asked for 1.5 s before it is granted.
    assert!(is_fence(&holder.ask("select fence_acquire('k', 1500)")));
    let alive = waiter.ask(
        "with granted as materialized (select fence_acquire('k', 1000, 60000) as fence)
         select fence_renew('k', fence) from granted",
    );
    assert_eq!(alive, "1", "a dead lease was granted");
    // How much is left of it, with a ttl that no pause of this machine uses up.
    assert!(is_fence(&holder.ask("select fence_acquire('j', 3000)")));
    let left = waiter.ask(
        "with granted as materialized (select fence_acquire('j', 60000, 60000) as fence)
         select remaining_ms from granted, fence_leases where key = 'j'",
    );
    let left: u64 = left.parse().expect("it is held");
    assert!((58_000..=60_000).contains(&left), "{left} ms are left of 60 s");
}

#[test]
fn lock_07_a_wait_that_is_over_gives_null_and_leaves_the_line() {
    let folder = folder();
    let (mut holder, mut waiter) = (shell_in(&folder), shell_in(&folder));
    let held = holder.ask(&format!("select fence_acquire('k', {LONG})"));
    let permit = holder.ask(&format!("select semaphore_acquire('s', 1, {LONG})"));
    let mut line = Line::of(&folder);
    for wait in [0, 1, 60] {
        for acquire in [
            format!("fence_acquire('k', 1000, {wait})"),
            format!("fence_acquire_all('[\"j\", \"k\"]', 1000, {wait})"),
            format!("semaphore_acquire('s', 1, 1000, {wait})"),
        ] {
            let begun = Instant::now();
            assert_eq!(waiter.ask(&format!("select {acquire}")), "NULL", "{acquire}");
            assert!(
                begun.elapsed() >= Duration::from_millis(wait),
                "{acquire} gave up too early"
            );
            assert_eq!(line.length(), 0, "{acquire} still stands in line");
        }
    }
    assert_eq!(holder.ask(&format!("select fence_release('k', '{held}')")), "1");
    assert_eq!(holder.ask(&format!("select semaphore_release('s', '{permit}')")), "1");
    assert!(is_fence(&holder.ask("select fence_acquire_all('[\"j\", \"k\"]')")));
    assert_ne!(holder.ask("select semaphore_acquire('s', 1)"), "NULL");
}

#[test]
fn a_waiter_holds_no_transaction_and_no_mutex() {
    let folder = folder();
    let script = "
import threading
holder, other = connect(args[0]), connect(args[0])
held = one(holder, \"select fence_acquire('k', 3600000)\")
got = []
def wait():
    db = connect(args[0])
    got.append(one(db, \"select fence_acquire('k', 3600000, 3600000)\"))
waiting = threading.Thread(target=wait)
waiting.start()
print('waits', flush=True)
sys.stdin.readline()
# The same process goes on, on the same kv.db.
for n in range(200):
    fence = one(other, 'select fence_acquire(?)', f'key {n % 3}')
    assert one(other, 'select fence_release(?, ?)', f'key {n % 3}', fence) == 1
    assert one(other, \"select fence_acquire('k')\") is None
assert waiting.is_alive() and not got
print(one(holder, \"select fence_release('k', ?)\", held), flush=True)
waiting.join()
print(got[0] > held)
";
    let mut python = Python::new(script).arg(folder.path().join("app.db")).start();
    assert_eq!(python.line(), "waits");
    let mut line = Line::of(&folder);
    line.becomes(1);
    // So does every other program: kv.db may be written to while somebody waits, and its WAL brought back whole, which
    // waits for every transaction that reads.
    for _ in 0..20 {
        assert_eq!(line.store("begin immediate; update store set id = id; commit"), "");
        let checkpoint = line.store("pragma wal_checkpoint(truncate)");
        assert!(
            checkpoint.starts_with("0|"),
            "somebody holds a transaction: {checkpoint}"
        );
    }
    python.tell("go on");
    assert_eq!(python.line(), "1");
    assert_eq!(python.line(), "True");
}

#[test]
fn lock_07_a_waiter_that_was_killed_holds_nobody_up() {
    let folder = folder();
    let (mut holder, mut first, mut second) = (shell_in(&folder), shell_in(&folder), shell_in(&folder));
    let held = holder.ask(&format!("select fence_acquire('k', {LONG})"));
    let mut line = Line::of(&folder);
    wait_in_line(&mut first, &mut line, "k");
    wait_in_line(&mut second, &mut line, "k");
    first.process().kill();
    assert_eq!(holder.ask(&format!("select fence_release('k', '{held}')")), "1");
    let held = answer_fence(&mut second);
    line.becomes(0);
    // One that waited alone and was killed is no obstacle to a newcomer who does not wait at all.
    wait_in_line(&mut holder, &mut line, "k");
    holder.process().kill();
    assert_eq!(second.ask(&format!("select fence_release('k', '{held}')")), "1");
    assert!(is_fence(&second.ask("select fence_acquire('k')")));
}

/// Twenty waiters in one process, in line for `k`.
fn twenty(folder: &tempfile::TempDir, line: &mut Line) -> Process {
    let script = "
import threading
def wait():
    one(connect(args[0]), \"select fence_acquire('k', 3600000, 3600000)\")
for _ in range(20):
    threading.Thread(target=wait).start()
";
    let length = line.length();
    let process = Python::new(script).arg(folder.path().join("app.db")).start();
    line.becomes(length + 20);
    process
}

#[test]
fn lock_07_several_dead_waiters_in_a_row_do_not_add_up() {
    let folder = folder();
    let (mut holder, mut waiter) = (shell_in(&folder), shell_in(&folder));
    let held = holder.ask(&format!("select fence_acquire('k', {LONG})"));
    let mut line = Line::of(&folder);
    let mut killed = twenty(&folder, &mut line);
    let stopped = twenty(&folder, &mut line);
    wait_in_line(&mut waiter, &mut line, "k");
    killed.kill();
    stopped.stop();
    let begun = Instant::now();
    assert_eq!(holder.ask(&format!("select fence_release('k', '{held}')")), "1");
    answer_fence(&mut waiter);
    assert!(
        begun.elapsed() < 10 * STALLED,
        "twenty of them took {:?}",
        begun.elapsed()
    );
    line.becomes(0);
}

#[test]
fn lock_07_a_waiter_that_stands_still_is_overtaken_and_takes_a_new_place_when_it_wakes() {
    let folder = folder();
    let mut shells: Vec<_> = (0..4).map(|_| shell_in(&folder)).collect();
    let [holder, sleeper, second, third] = &mut shells[..] else {
        panic!("four shells")
    };
    let held = holder.ask(&format!("select fence_acquire('k', {LONG})"));
    let mut line = Line::of(&folder);
    for waiter in [&mut *sleeper, second, third] {
        wait_in_line(waiter, &mut line, "k");
    }
    sleeper.process().stop();
    assert_eq!(holder.ask(&format!("select fence_release('k', '{held}')")), "1");
    let held = answer_fence(second);
    line.becomes(1);
    sleeper.process().go_on();
    line.becomes(2);
    assert_eq!(second.ask(&format!("select fence_release('k', '{held}')")), "1");
    let held = answer_fence(third);
    assert_eq!(line.length(), 1, "the sleeper is behind");
    assert_eq!(third.ask(&format!("select fence_release('k', '{held}')")), "1");
    answer_fence(sleeper);
}

#[test]
fn lock_07_a_waiter_whose_process_forks_keeps_its_place() {
    let folder = folder();
    let (mut holder, mut newcomer) = (shell_in(&folder), shell_in(&folder));
    holder.ask(&format!("select fence_acquire('k', {LONG})"));
    let script = "
import os, threading
def wait():
    one(connect(args[0]), \"select fence_acquire_all('[\\\"j\\\", \\\"k\\\"]', 3600000, 3600000)\")
threading.Thread(target=wait).start()
while True:
    sys.stdin.readline()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    print('forked', flush=True)
";
    let mut waiter = Python::new(script).arg(folder.path().join("app.db")).start();
    Line::of(&folder).becomes(1);
    // j is free; only who stands in line for it keeps the newcomer out.
    assert_eq!(newcomer.ask("select fence_acquire('j')"), "NULL");
    for _ in 0..5 {
        waiter.tell("fork");
        assert_eq!(waiter.line(), "forked");
        assert_eq!(
            newcomer.ask("select fence_acquire('j')"),
            "NULL",
            "it was taken for dead"
        );
    }
}

/// What an interrupt must leave behind: nobody in line, and the key free once its holder lets it go.
fn nothing_was_granted(folder: &tempfile::TempDir, holder: &mut Session, held: &str) {
    assert_eq!(Line::of(folder).length(), 0);
    let free = holder.ask(&format!(
        "select fence_release('k', '{held}'), fence_acquire('k', 1000) is null"
    ));
    assert_eq!(free, "1|0");
}

/// Every acquire, waiting for `k`: for a minute, after which a test would fail. `begun()` tells that it is about to wait.
const WAITS: [&str; 4] = [
    "fence_acquire('k', 30000, 60000 + begun())",
    "fence_acquire_all('[\"j\", \"k\"]', 30000, 60000 + begun())",
    "fence from fence_acquire('k', 30000, 60000 + begun())",
    "semaphore_acquire('k', 1, 30000, 60000 + begun())",
];

#[test]
fn interrupt_ends_a_wait_and_grants_nothing_where_sqlite_cannot_tell_of_it() {
    let folder = folder();
    let mut holder = shell_in(&folder);
    let held = holder.ask(&format!("select fence_acquire('k', {LONG})"));
    let permit = holder.ask(&format!("select semaphore_acquire('k', 1, {LONG})"));
    let script = "
import threading
db = connect(args[0], check_same_thread=False)
begun = threading.Event()
db.create_function('begun', 0, lambda: begun.set() or 0)
def interrupt():
    begun.wait()
    db.interrupt()
for wait in args[1:]:
    begun.clear()
    thread = threading.Thread(target=interrupt)
    thread.start()
    try:
        print(db.execute('select ' + wait).fetchall())
    except sqlite3.OperationalError as error:
        print(error.sqlite_errorname, error)
    thread.join()
    assert one(db, 'select 6 * 7') == 42
print(sqlite3.sqlite_version_info < (3, 41))
";
    let mut python = Python::new(script).arg(folder.path().join("app.db"));
    for wait in WAITS {
        python = python.arg(wait);
    }
    let interrupted = "SQLITE_INTERRUPT fence: interrupted while waiting: nothing was granted\n".repeat(WAITS.len());
    let answer = python.run().ok();
    let (answers, old) = answer.rsplit_once('\n').expect("lines");
    assert_eq!(format!("{answers}\n"), interrupted);
    if cfg!(target_os = "linux") {
        assert_eq!(old, "True", "of all hosts here one is to be older than 3.41");
    }
    assert_eq!(holder.ask(&format!("select semaphore_release('k', '{permit}')")), "1");
    nothing_was_granted(&folder, &mut holder, &held);
}

/// A connection of the SQLite in this process, with its store open, in which `begun()` interrupts and gives 0.
fn interrupted_by_begun(folder: &tempfile::TempDir) -> Connection {
    let db = Connection::open(folder.path().join("app.db")).expect("a database");
    // SAFETY: the library is ours.
    unsafe {
        db.load_extension_enable().expect("it may");
        db.load_extension(library(), None::<&str>).expect("it loads");
    }
    let handle = db.get_interrupt_handle();
    db.create_scalar_function("begun", 0, FunctionFlags::SQLITE_UTF8, move |_| {
        handle.interrupt();
        Ok(0)
    })
    .expect("a function of the test");
    db.query_row("select fence_open()", (), |_| Ok(())).expect("a store");
    db
}

#[test]
fn interrupt_ends_a_wait_and_grants_nothing_where_sqlite_tells_of_it() {
    assert!(rusqlite::version_number() >= 3_041_000);
    let folder = folder();
    let mut holder = shell_in(&folder);
    let held = holder.ask(&format!("select fence_acquire('k', {LONG})"));
    let permit = holder.ask(&format!("select semaphore_acquire('k', 1, {LONG})"));
    let db = interrupted_by_begun(&folder);
    for wait in WAITS {
        let answer = db.query_row(&format!("select {wait}"), (), |_| Ok(()));
        let error = answer.expect_err("it was interrupted");
        assert_eq!(
            error.sqlite_error_code(),
            Some(rusqlite::ErrorCode::OperationInterrupted)
        );
        assert!(
            error.to_string().contains("fence: interrupted while waiting"),
            "{error}"
        );
        assert_eq!(db.query_row("select 6 * 7", (), |row| row.get(0)), Ok(42));
    }
    assert_eq!(holder.ask(&format!("select semaphore_release('k', '{permit}')")), "1");
    nothing_was_granted(&folder, &mut holder, &held);
}

#[test]
fn ctrl_c_ends_a_wait_in_the_shell() {
    let folder = folder();
    let (mut holder, mut waiter) = (shell_in(&folder), shell_in(&folder));
    let held = holder.ask(&format!("select fence_acquire('k', {LONG})"));
    wait_in_line(&mut waiter, &mut Line::of(&folder), "k");
    waiter.process().interrupt();
    // A shell that reads its input from a pipe ends at an interrupt, behind the message.
    let answer = waiter.process().line();
    assert!(
        answer.contains("fence: interrupted while waiting: nothing was granted"),
        "{answer}"
    );
    nothing_was_granted(&folder, &mut holder, &held);
}

#[test]
fn interrupt_ends_a_wait_also_while_another_program_keeps_the_store_locked() {
    let folder = folder();
    let (mut holder, mut waiter) = (shell_in(&folder), shell_in(&folder));
    let held = holder.ask(&format!("select fence_acquire('k', {LONG})"));
    let mut line = Line::of(&folder);
    wait_in_line(&mut waiter, &mut line, "k");
    let db = interrupted_by_begun(&folder);
    assert_eq!(line.store("begin immediate"), "");
    waiter.process().interrupt();
    let answer = waiter.process().line();
    assert!(
        answer.contains("fence: interrupted while waiting: nothing was granted"),
        "{answer}"
    );
    // Nor does one wait for the lock itself that would be granted the key.
    let answer = db.query_row("select fence_acquire('free', 30000, begun())", (), |_| Ok(()));
    let error = answer.expect_err("it was interrupted");
    assert_eq!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::OperationInterrupted)
    );
    assert_eq!(line.store("rollback"), "");
    // What could not be taken back is the line's dead, which hold nobody up.
    let free = holder.ask(&format!(
        "select fence_release('k', '{held}'), fence_acquire('k', 1000) is null"
    ));
    assert_eq!(free, "1|0");
}

#[test]
fn what_is_granted_in_the_moment_of_an_interrupt_is_given_back() {
    let store = Store::in_memory().expect("a store");
    let options = AcquireOptions::default();
    let patient = AcquireOptions {
        wait: Wait::MAX,
        ..options
    };
    // Asked for the first time it sets the key free, so that the next question is answered with a grant; asked for the
    // second time, the grant is there.
    let (asked, free) = (Cell::new(0), Cell::new(None::<Box<dyn Fn()>>));
    let interrupted = || {
        asked.set(asked.get() + 1);
        if let Some(free) = free.take() {
            free();
        }
        asked.get() == 2
    };
    let (to_free, key) = (store.clone(), "k");
    let held = store.acquire(key, &options).expect("a store").expect("free").fence();
    free.set(Some(Box::new(move || {
        assert_eq!(to_free.release(key, held).ok(), Some(true))
    })));
    let answer = store.acquire_unless(key, &patient, &interrupted);
    assert!(matches!(answer, Err(Error::Interrupted)), "{answer:?}");
    assert_eq!(store.holds().expect("a store").count(), 0, "a lease of one key");

    asked.set(0);
    let to_free = store.clone();
    let held = store.acquire(key, &options).expect("a store").expect("free").fence();
    free.set(Some(Box::new(move || {
        assert_eq!(to_free.release(key, held).ok(), Some(true))
    })));
    let answer = store.acquire_all(&["j", key], &patient, &interrupted);
    assert!(matches!(answer, Err(Error::Interrupted)), "{answer:?}");
    assert_eq!(store.holds().expect("a store").count(), 0, "a lease of several keys");

    asked.set(0);
    let to_free = store.clone();
    let permit = store.acquire_permit(key, Limit::MIN, &options, &|| false);
    let permit = permit.expect("a store").expect("free");
    free.set(Some(Box::new(move || {
        assert_eq!(to_free.release_permit(key, permit).ok(), Some(true))
    })));
    let answer = store.acquire_permit(key, Limit::MIN, &patient, &interrupted);
    assert!(matches!(answer, Err(Error::Interrupted)), "{answer:?}");
    assert_eq!(store.holds().expect("a store").count(), 0, "a permit");
}
