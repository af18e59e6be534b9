//! LOCK-01 to LOCK-03 when processes die or stand still at any moment, also inside a grant.

use std::collections::BTreeSet;
use std::path::Path;

use fence_tests::{Worker, folder, quick_folder};

const WORKER: &str = env!("CARGO_BIN_EXE_worker");
/// More than any test takes, in milliseconds.
const LONG: u64 = 3_600_000;

/// A worker that stops or dies when it comes to this point: `stop:grant-before-commit` (see core/src/fault.rs).
fn at(store: &Path, fault: &str) -> Worker {
    Worker::plan(WORKER, store).env("FENCE_FAULT", fault).start()
}

#[test]
fn lock_02_of_eight_processes_of_which_one_after_the_other_is_killed_the_later_has_the_larger_fence() {
    let folder = quick_folder();
    let store = folder.path().join("kv.db");
    let mut workers: Vec<_> = (0..8).map(|_| Worker::start(WORKER, &store)).collect();
    let mut given = BTreeSet::new();
    for round in 0..200_usize {
        // Two are inside of a call when one of them is killed.
        let (victim, witness) = (round % 8, (round + 3) % 8);
        workers[victim].tell(&format!("acquire k{} 1 1000", round % 3));
        workers[witness].tell(&format!("acquire k{} 1 1000", (round + 1) % 3));
        workers[victim].process().kill();
        workers[victim] = Worker::start(WORKER, &store);
        let answer = workers[witness].answer();
        let fence: u128 = answer.parse().unwrap_or_else(|_| panic!("no fence: {answer}"));
        assert!(given.last().is_none_or(|last| fence > *last), "{fence} after {given:?}");
        given.insert(fence);
    }
    assert_eq!(given.len(), 200);
}

#[test]
fn lock_01_a_process_that_stops_before_commit_makes_the_others_fail_in_time_and_goes_on_to_hold_its_key() {
    let folder = folder();
    let store = folder.path().join("kv.db");
    let mut other = Worker::start(WORKER, &store);
    let first = other.acquire("other", LONG);
    let mut stopped = at(&store, "stop:grant-before-commit");
    stopped.tell(&format!("acquire k {LONG}"));
    stopped.process().wait_until_stopped();
    // Who only reads is not held up.
    assert_eq!(other.ask("acquire other 1000"), "held");
    for _ in 0..2 {
        let answer = other.ask("acquire k 1000");
        assert!(answer.starts_with("error 5 fence: "), "{answer}");
        assert!(answer.contains("was locked for 5 s while granting a lease"), "{answer}");
    }
    stopped.process().go_on();
    let fence: u128 = stopped.answer().parse().expect("a fence");
    assert!(fence > first);
    assert_eq!(other.ask("acquire k 1000"), "held");
    assert!(other.acquire("next", LONG) > fence);
}

#[test]
fn lock_01_a_process_that_is_killed_before_commit_has_got_nothing() {
    let folder = folder();
    let store = folder.path().join("kv.db");
    let mut other = Worker::start(WORKER, &store);
    let first = other.acquire("other", LONG);
    let mut stopped = at(&store, "stop:grant-before-commit");
    stopped.tell(&format!("acquire k {LONG}"));
    stopped.process().wait_until_stopped();
    stopped.process().kill();
    assert!(other.acquire("k", LONG) > first);
}

#[test]
fn lock_01_a_process_that_is_killed_after_commit_holds_its_key_until_the_ttl_has_passed() {
    let folder = folder();
    let store = folder.path().join("kv.db");
    let mut other = Worker::start(WORKER, &store);
    let first = other.acquire("other", LONG);
    let mut stopped = at(&store, "stop:grant-after-commit");
    stopped.tell(&format!("acquire k {LONG}"));
    stopped.process().wait_until_stopped();
    // Its grant is made, whether it has heard of it or not, and it keeps no lock.
    assert_eq!(other.ask("acquire k 1000"), "held");
    assert!(other.acquire("third", LONG) > first);
    stopped.process().kill();
    assert_eq!(other.ask("acquire k 1000"), "held");

    let mut stopped = at(&store, "stop:grant-after-commit");
    stopped.tell("acquire short 300");
    stopped.process().wait_until_stopped();
    stopped.process().kill();
    assert!(other.ask("acquire short 1000 60000").parse::<u128>().is_ok());
}

#[test]
fn lock_02_a_death_at_any_point_of_an_opening_a_grant_or_a_checkpoint_leaves_a_store_that_goes_on() {
    let folder = folder();
    for point in [
        "epoch-before-commit",
        "epoch-after-commit",
        "grant-before-commit",
        "grant-after-commit",
        "checkpoint-before",
        "checkpoint-after",
    ] {
        let store = folder.path().join(format!("{point}.db"));
        let mut largest = 0;
        let mut witness = Worker::start(WORKER, &store);
        for round in 0..5 {
            largest = witness.acquire(&format!("w{round}"), LONG);
            let mut victim = Worker::plan(WORKER, &store)
                .env("FENCE_FAULT", format!("kill:{point}"))
                .env("FENCE_CHECKPOINT_PAGES", "4")
                .start();
            for n in 0..50 {
                victim.tell(&format!("acquire v{round}-{n} {LONG}"));
            }
            let status = victim.process().wait();
            assert!(!status.success(), "{point}: it was to be killed");
        }
        let mut fresh = Worker::start(WORKER, &store);
        let next = fresh.acquire("fresh", LONG);
        assert!(next > largest, "{point}: {next} after {largest}");
        assert!(witness.acquire("witness", LONG) > next, "{point}");
        for round in 0..5 {
            assert_eq!(fresh.ask(&format!("acquire w{round} 1000")), "held", "{point}");
        }
    }
}

/// A host older than SQLite 3.51.3 can lose commits when one process writes or checkpoints while another checkpoints (see
/// the head of core/src/sqlite/connection.rs). Checkpoints here come every few grants, from all processes.
#[test]
fn lock_02_no_acknowledged_grant_is_lost_under_checkpoints_of_six_processes() {
    let folder = quick_folder();
    let store = folder.path().join("kv.db");
    let mut workers: Vec<_> = (0..6)
        .map(|_| Worker::plan(WORKER, &store).env("FENCE_CHECKPOINT_PAGES", "4").start())
        .collect();
    let mut given = Vec::new();
    for round in 0..150 {
        for (n, worker) in workers.iter_mut().enumerate() {
            worker.tell(&format!("acquire {n}-{round} {LONG}"));
        }
        for (n, worker) in workers.iter_mut().enumerate() {
            let answer = worker.answer();
            let fence: u128 = answer.parse().unwrap_or_else(|_| panic!("no fence: {answer}"));
            given.push((format!("{n}-{round}"), fence));
        }
    }
    let fences: BTreeSet<_> = given.iter().map(|(_, fence)| *fence).collect();
    assert_eq!(fences.len(), given.len(), "a fence was given twice");
    let listed = workers[0].ask("leases");
    let listed: BTreeSet<_> = listed.split(' ').collect();
    for (key, fence) in &given {
        assert!(
            listed.contains(format!("{key}={fence}").as_str()),
            "{key}={fence} is lost"
        );
    }
    let size = std::fs::metadata(folder.path().join("kv.db-wal")).expect("a WAL").len();
    assert!(size < 1 << 20, "checkpoints were made: the WAL has {size} bytes");
}
