//! LOCK-06: after a lease that ended without release its key stays closed for its delay.

use std::time::{Duration, Instant};

use fence_tests::{LONG, Line, Session, folder, shell_in, wait_until};

/// Takes a lease of `k` that ends by itself, with an hour of delay, and waits for its end; gives its fence.
fn ended(shell: &mut Session) -> String {
    let fence = shell.ask(&format!("select fence_acquire('k', 1, 0, '{{\"delay_ms\": {LONG}}}')"));
    assert!(fence.len() > 20, "{fence}");
    wait_until("the lease has ended", || kind(shell) == "delay");
    fence
}

fn kind(shell: &mut Session) -> String {
    shell.ask("select kind from fence_leases where key = 'k'")
}

/// For how much longer `k` is closed, in milliseconds.
fn closed_for(shell: &mut Session) -> u64 {
    let left = shell.ask("select remaining_ms from fence_leases where key = 'k' and kind = 'delay'");
    left.parse().unwrap_or_else(|_| panic!("not in delay: '{left}'"))
}

#[test]
fn lock_06_after_an_end_without_release_the_key_is_closed_to_everyone() {
    let folder = folder();
    let (mut a, mut b) = (shell_in(&folder), shell_in(&folder));
    let fence = ended(&mut a);
    for shell in [&mut a, &mut b] {
        assert_eq!(shell.ask("select fence_acquire('k')"), "NULL");
        assert_eq!(shell.ask("select fence_acquire('k', 1000, 30)"), "NULL");
        assert_eq!(shell.ask("select fence_acquire_all('[\"j\", \"k\"]')"), "NULL");
    }
    let listed = b.ask("select key, kind, fence, delay_ms, remaining_ms between 1 and delay_ms from fence_leases");
    assert_eq!(listed, format!("k|delay|{fence}|{LONG}|1"));
    // The ended lease can neither be renewed, nor can its release open the key.
    for shell in [&mut a, &mut b] {
        assert_eq!(shell.ask(&format!("select fence_renew('k', '{fence}')")), "0");
        assert_eq!(shell.ask(&format!("select fence_release('k', '{fence}')")), "0");
        assert_eq!(kind(shell), "delay");
    }
    assert_ne!(
        b.ask("select fence_acquire('another')"),
        "NULL",
        "no other key is closed"
    );
    assert_ne!(
        b.ask("select semaphore_acquire('k', 1)"),
        "NULL",
        "a semaphore is another thing"
    );
}

#[test]
fn lock_06_after_a_release_the_key_is_free_at_once() {
    let folder = folder();
    let (mut a, mut b) = (shell_in(&folder), shell_in(&folder));
    let options = format!("'{{\"delay_ms\": {LONG}}}'");
    let fence = a.ask(&format!("select fence_acquire('k', {LONG}, 0, {options})"));
    assert_eq!(
        a.ask("select kind, delay_ms from fence_leases"),
        format!("lease|{LONG}")
    );
    assert_eq!(a.ask(&format!("select fence_renew('k', '{fence}')")), "1");
    assert_eq!(a.ask(&format!("select fence_release('k', '{fence}')")), "1");
    assert_ne!(b.ask("select fence_acquire('k')"), "NULL");

    let all = a.ask(&format!("select fence_acquire_all('[1, 2]', {LONG}, 0, {options})"));
    assert_eq!(a.ask(&format!("select fence_release_all('{all}')")), "1");
    assert_ne!(b.ask("select fence_acquire_all('[1, 2]')"), "NULL");
}

#[test]
fn lock_06_the_key_opens_when_its_delay_is_over_and_who_waits_gets_it() {
    let folder = folder();
    let (mut a, mut b) = (shell_in(&folder), shell_in(&folder));
    let begun = Instant::now();
    let first = a.ask("select fence_acquire('k', 50, 0, '{\"delay_ms\": 400}')");
    let second = b.ask(&format!("select fence_acquire('k', {LONG}, {LONG})"));
    assert!(
        begun.elapsed() >= Duration::from_millis(450),
        "after {:?}",
        begun.elapsed()
    );
    assert!(first.parse::<u128>().expect("a fence") < second.parse::<u128>().expect("a fence"));
    // A delay is its lease's own: the next one has none.
    assert_eq!(b.ask("select kind, delay_ms from fence_leases"), "lease|0");
}

#[test]
fn lock_06_the_delay_of_one_key_of_several_closes_that_key() {
    let folder = folder();
    let mut shell = shell_in(&folder);
    let options = format!("'{{\"delay_ms\": {LONG}}}'");
    let fence = shell.ask(&format!(
        "select fence_acquire_all('[\"j\", \"k\"]', {LONG}, 0, {options})"
    ));
    assert_eq!(shell.ask(&format!("select fence_renew('k', '{fence}', 1)")), "1");
    wait_until("k has ended", || kind(&mut shell) == "delay");
    assert_eq!(shell.ask(&format!("select fence_release_all('{fence}')")), "1");
    assert_ne!(shell.ask("select fence_acquire('j')"), "NULL", "j was released");
    assert_eq!(shell.ask("select fence_acquire('k')"), "NULL", "k was not");
}

#[test]
fn lock_06_the_delay_outlives_every_process() {
    let folder = folder();
    let mut shell = shell_in(&folder);
    ended(&mut shell);
    // One that is still live when its process dies ends later, and its delay follows.
    let options = format!("'{{\"delay_ms\": {LONG}}}'");
    shell.ask(&format!("select fence_acquire('killed', 1, 0, {options})"));
    shell.process().kill();
    let mut next = shell_in(&folder);
    assert_eq!(next.ask("select fence_acquire('k')"), "NULL");
    wait_until("the other lease has ended", || {
        next.ask("select kind from fence_leases where key = 'killed'") == "delay"
    });
    assert_eq!(next.ask("select fence_acquire('killed')"), "NULL");
    next.finish();
    let mut next = shell_in(&folder);
    assert_eq!(next.ask("select fence_acquire('k')"), "NULL");
    assert!(closed_for(&mut next) <= LONG);
}

#[test]
fn lock_06_a_reboot_ends_the_lease_and_its_delay_counts_in_full_from_then() {
    let folder = folder();
    let mut shell = shell_in(&folder);
    ended(&mut shell);
    let options = format!("'{{\"delay_ms\": {LONG}}}'");
    assert_ne!(
        shell.ask(&format!("select fence_acquire('live', {LONG}, 0, {options})")),
        "NULL"
    );
    assert_ne!(shell.ask(&format!("select fence_acquire('plain', {LONG})")), "NULL");
    assert_ne!(shell.ask(&format!("select semaphore_acquire('s', 1, {LONG})")), "NULL");
    // Half an hour of the delay has passed.
    let half = LONG / 2;
    let mut line = Line::of(&folder);
    assert_eq!(
        line.store(&format!("update leases set expires = expires - {half} where key = 'k'")),
        ""
    );
    assert!(closed_for(&mut shell) <= half);
    shell.finish();

    assert_eq!(line.store("update store set boot = 'another boot'"), "");
    let mut shell = shell_in(&folder);
    // How long the machine was off, nobody knows.
    let left = closed_for(&mut shell);
    assert!((half + 1..=LONG).contains(&left), "{left} ms");
    let kinds = shell.ask("select key, kind from fence_leases order by key");
    assert_eq!(kinds, "k|delay\nlive|delay");
    assert_eq!(shell.ask("select fence_acquire('k')"), "NULL");
    assert_eq!(shell.ask("select fence_acquire('live')"), "NULL");
    assert_ne!(shell.ask("select fence_acquire('plain')"), "NULL");
    assert_ne!(shell.ask("select semaphore_acquire('s', 1)"), "NULL");
    // It is the same boot from now on: the delay goes on, it does not begin anew.
    assert_eq!(
        line.store(&format!("update leases set expires = expires - {half} where key = 'k'")),
        ""
    );
    shell.finish();
    assert!(closed_for(&mut shell_in(&folder)) <= half);
}

#[test]
fn lock_06_a_bound_lease_with_a_delay_closes_its_key_when_its_process_ends() {
    let folder = folder();
    let (mut a, mut b) = (shell_in(&folder), shell_in(&folder));
    let options = "'{\"delay_ms\": 300, \"bound\": true}'";
    a.ask(&format!("select fence_acquire('k', {LONG}, 0, {options})"));
    a.process().kill();
    let begun = Instant::now();
    assert_eq!(b.ask("select fence_acquire('k')"), "NULL");
    let fence = b.ask(&format!("select fence_acquire('k', {LONG}, {LONG})"));
    assert!(fence.len() > 20, "{fence}");
    assert!(
        begun.elapsed() >= Duration::from_millis(300),
        "after {:?}",
        begun.elapsed()
    );
}
