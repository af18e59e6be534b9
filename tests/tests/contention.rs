//! Many processes on few keys, while a stranger keeps the write lock now and then.

use std::path::Path;
use std::time::Duration;

use fence_tests::{Worker, folder, quick_folder, wait_until};
use rusqlite::{Connection, ErrorCode};

const WORKER: &str = env!("CARGO_BIN_EXE_worker");
const LONG: u64 = 3_600_000;

/// Holds the write lock as long as that, as a program that thinks within its transaction.
fn hold(store: &Path, time: Duration) {
    let db = Connection::open(store).expect("it opens");
    db.busy_timeout(Duration::from_secs(60)).expect("a timeout");
    db.execute_batch("begin immediate").expect("the lock");
    std::thread::sleep(time); // Not a wait: it is what this stranger does.
    db.execute_batch("rollback").expect("its end");
}

#[test]
fn lock_01_sixteen_processes_on_four_keys_never_hear_that_the_database_is_locked() {
    let folder = quick_folder();
    let store = folder.path().join("kv.db");
    let mut workers: Vec<_> = (0..16).map(|_| Worker::start(WORKER, &store)).collect();
    for (n, worker) in workers.iter_mut().enumerate() {
        worker.tell(&format!("loop k{} 60000 100", n % 4));
    }
    for _ in 0..6 {
        hold(&store, Duration::from_millis(300));
    }
    let mut last = Vec::new();
    for worker in &mut workers {
        let answer = worker.answer();
        last.push(answer.parse::<u128>().unwrap_or_else(|_| panic!("no fence: {answer}")));
    }
    last.sort_unstable();
    last.dedup();
    assert_eq!(last.len(), 16, "a fence was given twice");
    assert_eq!(workers[0].ask("leases"), "");
}

#[test]
fn lock_01_a_call_that_failed_leaves_no_transaction_open() {
    let folder = folder();
    let store = folder.path().join("kv.db");
    let mut worker = Worker::start(WORKER, &store);
    worker.acquire("held", LONG);
    let stranger = Connection::open(&store).expect("it opens");
    stranger.execute_batch("begin immediate").expect("the lock");
    for call in ["acquire k 1000", "renew held 7", "permit gpu 1 1000", "advance 7"] {
        let answer = worker.ask(call);
        // What changes nothing may also answer without the lock.
        assert!(answer.starts_with("error 5 ") || answer == "0", "{call}: {answer}");
        assert_eq!(worker.ask("acquire held 1000"), "held", "after {call}");
    }
    stranger.execute_batch("rollback").expect("its end");
    // Were a transaction open, it would keep this from ending the WAL.
    let mut checkpoint = (1, 0, 0);
    wait_until("the whole WAL is brought into the file", || {
        checkpoint = stranger
            .query_row("pragma wal_checkpoint(truncate)", [], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?))
            })
            .expect("a checkpoint");
        checkpoint == (0, 0, 0)
    });
    worker.acquire("k", LONG);
}

/// A grant reads before it writes, and SQLite refuses its write if anybody has written since. Then it begins anew with the
/// lock in hand: nobody can outrun it twice.
#[test]
fn lock_01_a_grant_that_was_outrun_between_its_look_and_its_write_is_not_outrun_again() {
    for (call, other) in [
        ("acquire k 1000000", "acquire other 1000000"),
        ("acquire-all k+l 1000000", "acquire other 1000000"),
        ("permit gpu 1 1000000", "permit other 1 1000000"),
    ] {
        // Another key leaves this one free, and the very same does not.
        for (meanwhile, is_free) in [(other, true), (call, false)] {
            let folder = folder();
            let store = folder.path().join("kv.db");
            let plan = Worker::plan(WORKER, &store);
            let mut late = plan
                .env("FENCE_FAULT", "stop:grant-looked:1,stop:grant-looked:2")
                .start();
            late.tell(call);
            late.process().wait_until_stopped();
            let mut quick = Worker::start(WORKER, &store);
            let first = quick.ask(meanwhile);
            assert!(!first.starts_with("error") && first != "held", "{meanwhile}: {first}");
            late.process().go_on();
            if is_free {
                late.process().wait_until_stopped();
                let stranger = Connection::open(&store).expect("it opens");
                stranger.busy_timeout(Duration::ZERO).expect("no wait");
                let error = stranger.execute_batch("begin immediate").expect_err("it is locked");
                assert_eq!(
                    error.sqlite_error_code(),
                    Some(ErrorCode::DatabaseBusy),
                    "{call}: {error}"
                );
                late.process().go_on();
            }
            let second = late.answer();
            assert!(!second.starts_with("error"), "{call} after {meanwhile}: {second}");
            assert_eq!(second != "held", is_free, "{call} after {meanwhile}: {second}");
            if let (Ok(first), Ok(second)) = (first.parse::<u128>(), second.parse::<u128>()) {
                assert!(second > first, "{call} after {meanwhile}: {second} came after {first}");
            }
        }
    }
}

#[test]
fn lock_01_a_stranger_in_a_file_that_is_not_yet_a_store_is_waited_for() {
    let folder = folder();
    let store = folder.path().join("kv.db");
    let stranger = Connection::open(&store).expect("it opens");
    stranger.execute_batch("begin immediate").expect("the lock");
    let mut worker = Worker::start(WORKER, &store);
    worker.tell(&format!("acquire k {LONG}"));
    wait_until("the worker has come to the file", || {
        folder.path().join("kv.db-fence").exists()
    });
    stranger.execute_batch("rollback").expect("its end");
    let answer = worker.answer();
    assert!(answer.parse::<u128>().is_ok(), "{answer}");
}
