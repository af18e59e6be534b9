//! SEM-01 and SEM-02: so many permits and no more, each with an id that is no fence.

use fence_tests::{LONG, Line, Python, Session, folder, quick_folder, shell_in, wait_until};

fn acquire(shell: &mut Session, limit: u64) -> Option<String> {
    let answer = shell.ask(&format!("select semaphore_acquire('gpu', {limit}, {LONG})"));
    (answer != "NULL").then_some(answer)
}

#[track_caller]
fn permit(shell: &mut Session, limit: u64) -> String {
    acquire(shell, limit).expect("a permit is free")
}

fn renew(shell: &mut Session, permit: &str) -> String {
    shell.ask(&format!("select semaphore_renew('gpu', '{permit}', {LONG})"))
}

fn release(shell: &mut Session, permit: &str) -> String {
    shell.ask(&format!("select semaphore_release('gpu', '{permit}')"))
}

/// How many permits are live.
fn live(shell: &mut Session) -> String {
    shell.ask("select count(*) from fence_leases where kind = 'permit'")
}

#[test]
fn sem_01_no_more_permits_are_live_than_the_limit_says() {
    let folder = folder();
    let mut shells: Vec<_> = (0..4).map(|_| shell_in(&folder)).collect();
    let permits: Vec<_> = shells[..3].iter_mut().map(|shell| permit(shell, 3)).collect();
    for shell in &mut shells {
        assert_eq!(acquire(shell, 3), None);
    }
    assert_eq!(release(&mut shells[1], &permits[1]), "1");
    let fourth = permit(&mut shells[3], 3);
    assert!(!permits.contains(&fourth), "no id is given twice");
    assert_eq!(acquire(&mut shells[0], 3), None);
    // Another key is another semaphore, and so is a lease of the same key.
    assert_ne!(shells[0].ask("select semaphore_acquire('tpu', 1)"), "NULL");
    assert_ne!(shells[0].ask("select fence_acquire('gpu')"), "NULL");
    assert_eq!(live(&mut shells[0]), "4");
}

#[test]
fn sem_01_processes_that_disagree_about_the_limit_lower_it_without_evicting_anybody() {
    let folder = folder();
    let (mut old, mut new) = (shell_in(&folder), shell_in(&folder));
    let mut permits: Vec<_> = (0..4).map(|_| permit(&mut old, 4)).collect();
    // The new program says 2: nothing for it until enough of the old ones are gone, and nobody loses a permit.
    for _ in 0..3 {
        assert_eq!(acquire(&mut new, 2), None);
        for permit in &permits {
            assert_eq!(renew(&mut old, permit), "1", "{permit} was evicted");
        }
        assert_eq!(release(&mut old, &permits.pop().expect("four of them")), "1");
    }
    assert_eq!(live(&mut new), "1");
    permits.push(permit(&mut new, 2));
    assert_eq!(acquire(&mut new, 2), None);
    // The old one still says 4, and each acquire compares with the limit that it names itself.
    permits.push(permit(&mut old, 4));
    assert_eq!(acquire(&mut new, 2), None);
    assert_eq!(acquire(&mut new, 3), None);
    permits.push(permit(&mut new, 5));
    for permit in &permits {
        assert_eq!(renew(&mut old, permit), "1");
    }
}

#[test]
fn sem_01_eight_processes_never_see_more_than_three_at_work() {
    let folder = quick_folder();
    let script = "
db = connect(args[0], timeout=60)
db.execute('create table if not exists at_work (permit)')
most = 0
for n in range(40):
    permit = one(db, \"select semaphore_acquire('gpu', 3, 3600000, 3600000)\")
    db.execute('begin immediate')
    db.execute('insert into at_work values (?)', (permit,))
    most = max(most, one(db, 'select count(*) from at_work'))
    db.execute('commit')
    db.execute('delete from at_work where permit = ?', (permit,))
    assert one(db, \"select semaphore_release('gpu', ?)\", permit) == 1
print(most)
";
    let python = Python::new(script).arg(folder.path().join("app.db"));
    let mut processes: Vec<_> = (0..8).map(|_| python.start()).collect();
    let most = processes.iter_mut().map(|process| process.line());
    let most: Vec<u32> = most.map(|line| line.parse().expect("a number")).collect();
    assert!(
        most.iter().all(|most| (1..=3).contains(most)),
        "{most:?} at work at once"
    );
}

#[test]
fn lock_07_those_who_wait_for_a_permit_are_served_in_order_of_arrival() {
    let folder = folder();
    let mut holder = shell_in(&folder);
    let mut held = vec![permit(&mut holder, 2), permit(&mut holder, 2)];
    let mut line = Line::of(&folder);
    let mut waiters: Vec<_> = (0..4).map(|_| shell_in(&folder)).collect();
    for (n, waiter) in waiters.iter_mut().enumerate() {
        waiter.tell(&format!("select semaphore_acquire('gpu', 2, {LONG}, {LONG})"));
        line.becomes(n + 1);
    }
    // Not even a larger limit lets a newcomer past those who wait.
    assert_eq!(acquire(&mut holder, 100), None);
    for (n, waiter) in waiters.iter_mut().enumerate() {
        assert_eq!(release(&mut holder, &held.remove(0)), "1");
        let permit = waiter.answer();
        assert!(permit.starts_with("permit-"), "{permit}");
        held.push(permit);
        line.becomes(3 - n);
        assert_eq!(live(&mut holder), "2");
    }
}

#[test]
fn sem_01_a_permit_whose_holder_crashed_is_free_after_its_ttl_and_at_once_if_it_was_bound() {
    let folder = folder();
    let mut other = shell_in(&folder);
    let acquire_as = |ttl: u64, options: &str| {
        let mut crashing = shell_in(&folder);
        let permit = crashing.ask(&format!("select semaphore_acquire('gpu', 1, {ttl}, 0, '{options}')"));
        assert!(permit.starts_with("permit-"), "{permit}");
        crashing.process().kill();
        permit
    };
    let unbound = acquire_as(LONG, "{}");
    assert_eq!(acquire(&mut other, 1), None);
    assert_eq!(renew(&mut other, &unbound), "1", "it lives on without its process");
    assert_eq!(
        other.ask(&format!("select semaphore_renew('gpu', '{unbound}', 1)")),
        "1"
    );
    wait_until("its ttl has passed", || live(&mut other) == "0");
    assert_eq!(renew(&mut other, &unbound), "0");

    let bound = acquire_as(LONG, "{\"bound\": true}");
    let next = permit(&mut other, 1);
    assert_eq!(renew(&mut other, &bound), "0");
    assert_eq!(release(&mut other, &bound), "0");
    assert_eq!(renew(&mut other, &next), "1");
}

#[test]
fn sem_02_releasing_twice_or_what_expired_or_is_anothers_frees_nobody_elses_permit() {
    let folder = folder();
    let (mut a, mut b) = (shell_in(&folder), shell_in(&folder));
    let released = permit(&mut a, 1);
    assert_eq!(release(&mut a, &released), "1");
    let expired = a.ask("select semaphore_acquire('gpu', 1, 1)");
    wait_until("it has expired", || live(&mut a) == "0");
    let held = permit(&mut b, 1);
    let invented = "permit-00112233445566778899aabbccddeeff";
    for permit in [&released, &expired, invented, ""] {
        assert_eq!(release(&mut a, permit), "0", "{permit}");
        assert_eq!(renew(&mut a, permit), "0", "{permit}");
    }
    assert_eq!(a.ask("select semaphore_release('gpu', NULL)"), "0");
    assert_eq!(a.ask(&format!("select semaphore_release('tpu', '{held}')")), "0");
    assert_eq!(acquire(&mut a, 1), None, "B's permit still stands");
    // Who knows its id may release it, from any process; but once.
    assert_eq!(release(&mut a, &held), "1");
    assert_eq!(release(&mut b, &held), "0");
}

#[test]
fn sem_02_every_fence_function_refuses_a_permit() {
    let folder = folder();
    let mut shell = shell_in(&folder);
    let permit = permit(&mut shell, 1);
    for call in [
        "fence_pad('P')",
        "fence_wire('P')",
        "fence_blob('P')",
        "fence_ok('P', 1)",
        "fence_ok(1, 'P')",
        "fence_newer('P', 1)",
        "fence_newer(1, 'P')",
        "fence_require('P', 1)",
        "fence_require(1, 'P')",
        "fence_epoch('P')",
        "fence_count('P')",
        "fence_renew('gpu', 'P')",
        "fence_release('gpu', 'P')",
        "fence_renew_all('P')",
        "fence_release_all('P')",
        "fence_advance('P')",
    ] {
        let answer = shell.ask(&format!("select {}", call.replace('P', &permit)));
        assert!(answer.contains("fence: not a fence: "), "{call}: {answer}");
    }
    assert_eq!(renew(&mut shell, &permit), "1");
}

#[test]
fn sem_02_every_semaphore_function_refuses_a_fence() {
    let folder = folder();
    let mut shell = shell_in(&folder);
    let fence = shell.ask("select fence_acquire('gpu')");
    for fence in [
        format!("'{fence}'"),
        format!("fence_pad('{fence}')"),
        format!("fence_blob('{fence}')"),
        "7".to_string(),
        "1.5".to_string(),
        "'permit-'".to_string(),
        "'permit-00112233445566778899AABBCCDDEEFF'".to_string(),
    ] {
        for function in ["semaphore_renew", "semaphore_release"] {
            let answer = shell.ask(&format!("select {function}('gpu', {fence})"));
            assert!(
                answer.contains(&format!("fence: not a permit: {function}(permit) is ")),
                "{answer}"
            );
        }
    }
}

#[test]
fn a_limit_out_of_range_is_an_error_that_names_it_and_nothing_is_given() {
    let folder = folder();
    let mut shell = shell_in(&folder);
    for limit in ["0", "-1", "1000001", "1.0", "'3'", "NULL", "x'03'"] {
        let answer = shell.ask(&format!("select semaphore_acquire('gpu', {limit})"));
        assert!(
            answer.contains(&format!("semaphore_acquire(limit) is {limit}")),
            "{answer}"
        );
        assert!(answer.contains("give an INTEGER from 1 to 1000000"), "{answer}");
    }
    assert_eq!(live(&mut shell), "0");
    assert_ne!(shell.ask("select semaphore_acquire('gpu', 1000000)"), "NULL");
}
