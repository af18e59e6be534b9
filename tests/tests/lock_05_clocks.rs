//! LOCK-05 and LOCK-02 when clocks are stepped, the machine restarts, or somebody wrote a time by hand.

use std::path::{Path, PathBuf};

use fence_tests::{Shell, Worker, folder};

const WORKER: &str = env!("CARGO_BIN_EXE_worker");

/// A worker whose wall clock is stepped by writing to the file.
fn with_clock(folder: &Path, name: &str, step: &str) -> (Worker, PathBuf) {
    let clock = folder.join(name);
    std::fs::write(&clock, step).expect("a file");
    let worker = Worker::plan(WORKER, folder.join("kv.db")).clock(&clock).start();
    (worker, clock)
}

fn by_hand(folder: &Path, sql: &str) {
    assert_eq!(Shell::plain().on(folder.join("kv.db")).run(sql).ok(), "");
}

#[test]
fn lock_05_a_step_of_the_wall_clock_makes_no_lease_longer_or_shorter() {
    let folder = folder();
    let (mut a, clock) = with_clock(folder.path(), "a", "+0");
    let (mut ahead, _) = with_clock(folder.path(), "ahead", "+1h");
    let (mut behind, _) = with_clock(folder.path(), "behind", "-1h");
    // Half an hour of lease stands an hour of clock.
    let fence = a.acquire("long", 1_800_000);
    for other in [&mut ahead, &mut behind] {
        assert_eq!(other.ask("acquire long 1000"), "held");
    }
    a.acquire("short", 200);
    for step in ["+1h", "-1h"] {
        std::fs::write(&clock, step).expect("a file");
        assert_eq!(a.ask("acquire long 1000"), "held");
        assert_eq!(a.ask(&format!("renew long {fence}")), "1");
    }
    // A clock set back makes nothing last.
    assert!(behind.ask("acquire short 200 60000").parse::<u128>().is_ok());
    assert!(a.ask("acquire short 200 60000").parse::<u128>().is_ok());
    assert!(ahead.ask("acquire short 200 60000").parse::<u128>().is_ok());
}

#[test]
fn lock_02_an_opening_under_a_clock_set_back_gives_larger_fences() {
    let folder = folder();
    let mut last = 0;
    for (n, step) in ["+1h", "+0", "-1h", "-2h", "+0"].iter().enumerate() {
        let (mut worker, _) = with_clock(folder.path(), &format!("clock{n}"), step);
        let fence = worker.acquire(&format!("k{n}"), 60_000);
        assert!(fence > last, "{step}: {fence} after {last}");
        last = fence;
    }
    let (mut ahead, _) = with_clock(folder.path(), "ahead", "+3h");
    let epoch: u128 = ahead.ask("epoch").parse().expect("an epoch");
    assert!(
        epoch > (last >> 64) + 3_600_000,
        "the clock of this worker was not stepped"
    );
}

#[test]
fn lock_05_a_reboot_ends_every_lease_and_permit() {
    let folder = folder();
    let store = folder.path().join("kv.db");
    let mut before = Worker::start(WORKER, &store);
    let fence = before.acquire("k", 3_600_000);
    assert!(before.ask("permit gpu 1 3600000").starts_with("permit-"));
    before.process().kill();
    by_hand(folder.path(), "update store set boot = 'the boot before'");
    let mut after = Worker::start(WORKER, &store);
    assert_eq!(after.ask("leases"), "");
    assert_eq!(after.ask(&format!("renew k {fence}")), "0");
    assert!(after.acquire("k", 1_000) > fence);
    assert!(after.ask("permit gpu 1 1000").starts_with("permit-"));
}

#[test]
fn lock_05_a_time_written_by_hand_lasts_no_longer_than_the_ttl_after_first_sight() {
    for absurd in [
        "9223372036854775807",
        "1e300",
        "'tomorrow'",
        "x'ff'",
        "-9223372036854775808",
    ] {
        let folder = folder();
        let mut worker = Worker::start(WORKER, folder.path().join("kv.db"));
        worker.acquire("k", 300);
        assert!(worker.ask("permit gpu 1 300").starts_with("permit-"));
        by_hand(
            folder.path(),
            &format!("update leases set expires = {absurd} where key > ''"),
        );
        assert!(!worker.ask("leases").starts_with("error"), "{absurd}");
        let answer = worker.ask("acquire k 300 60000");
        assert!(answer.parse::<u128>().is_ok(), "{absurd}: {answer}");
        let answer = worker.ask("permit gpu 1 300 60000");
        assert!(answer.starts_with("permit-"), "{absurd}: {answer}");
        // Nor does an absurd ttl, when the time of its end is absurd as well.
        by_hand(
            folder.path(),
            &format!("update leases set ttl = {absurd}, delay = {absurd}, process = {absurd} where key > ''"),
        );
        let answer = worker.ask("acquire k 300 1");
        assert!(!answer.starts_with("error"), "{absurd}: {answer}");
        let answer = worker.ask("permit gpu 1 300 1");
        assert!(!answer.starts_with("error"), "{absurd}: {answer}");
    }
}
