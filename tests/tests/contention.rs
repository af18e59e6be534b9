//! Many processes on few keys, while a stranger keeps the write lock now and then.

use std::path::Path;
use std::time::Duration;

use fence_tests::{Worker, folder, quick_folder, wait_until};
use rusqlite::Connection;

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
