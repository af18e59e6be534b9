//! LOCK-01 to LOCK-04, as two processes with one store see them.

use std::fmt::Write;
use std::path::Path;

use fence_tests::{Python, Session, Shell, folder, quick_folder, wait_until};

/// Two shells on two databases in one folder: two processes, two applications, one kv.db.
fn two_shells(folder: &Path) -> (Session, Session) {
    let start = |database: &str| {
        let mut shell = Shell::new().on(folder.join(database)).start();
        shell.ask(".nullvalue NULL");
        shell
    };
    (start("a.db"), start("b.db"))
}

fn acquire(shell: &mut Session, key: &str, ttl_ms: u64) -> Option<u128> {
    let answer = shell.ask(&format!("select fence_acquire('{key}', {ttl_ms})"));
    (answer != "NULL").then(|| answer.parse().unwrap_or_else(|_| panic!("no fence: {answer}")))
}

fn renew(shell: &mut Session, key: &str, fence: u128) -> String {
    shell.ask(&format!("select fence_renew('{key}', '{fence}')"))
}

fn release(shell: &mut Session, key: &str, fence: u128) -> String {
    shell.ask(&format!("select fence_release('{key}', '{fence}')"))
}

/// The fence of the key once it is free, in this shell.
fn acquire_when_free(shell: &mut Session, key: &str, ttl_ms: u64) -> u128 {
    let mut fence = None;
    wait_until("the lease ran out", || {
        fence = acquire(shell, key, ttl_ms);
        fence.is_some()
    });
    fence.expect("just acquired")
}

/// More than any test takes.
const LONG: u64 = 3_600_000;

#[test]
fn lock_01_a_key_that_one_process_holds_is_given_to_no_other_and_not_again_to_itself() {
    let folder = folder();
    let (mut a, mut b) = two_shells(folder.path());
    let fence = acquire(&mut a, "chat:42", LONG).expect("free");
    assert_eq!(acquire(&mut b, "chat:42", LONG), None);
    assert_eq!(acquire(&mut a, "chat:42", LONG), None);
    assert!(
        acquire(&mut b, "chat:43", LONG).is_some(),
        "another key is another lock"
    );
    assert_eq!(release(&mut a, "chat:42", fence), "1");
    assert!(acquire(&mut b, "chat:42", LONG).is_some());
    assert_eq!(acquire(&mut a, "chat:42", LONG), None);
}

#[test]
fn lock_01_a_process_that_was_killed_holds_its_key_until_the_lease_runs_out() {
    let folder = folder();
    let (mut a, mut b) = two_shells(folder.path());
    let held = acquire(&mut a, "long", LONG).expect("free");
    let short = acquire(&mut a, "short", 1).expect("free");
    a.process().kill();
    assert_eq!(acquire(&mut b, "long", LONG), None);
    let next = acquire_when_free(&mut b, "short", LONG);
    assert!(next > short && next > held);
}

#[test]
fn lock_02_of_twenty_thousand_grants_of_two_shells_the_later_has_the_larger_fence() {
    let folder = quick_folder();
    // A statement sees one time, so the clock is read by a statement before and one behind the grant. It ticks in
    // milliseconds: a grant ended at the latest with the tick that was read behind it.
    let now = "cast(round((julianday('now') - 2440587.5) * 86400000) as integer)";
    let start = |name: &str| {
        let mut sql = String::new();
        for n in 0..10_000 {
            writeln!(
                sql,
                "select {now}; select fence_acquire('{name} {n}', {LONG}); select {now} + 1;"
            )
            .expect("memory");
        }
        let shell = Shell::new().on(folder.path().join(name));
        std::thread::spawn(move || grants(&shell.run(&sql).ok().lines().collect::<Vec<_>>()))
    };
    let (a, b) = (start("a.db"), start("b.db"));
    each_later_one_is_larger([a, b].map(|shell| shell.join().expect("10,000 grants")).concat());
}

#[test]
fn lock_02_of_twenty_thousand_grants_of_two_programs_the_later_has_the_larger_fence() {
    let folder = quick_folder();
    let start = |name: &str| {
        let script = "
import time
db = connect(args[0])
for n in range(10000):
    began = time.monotonic_ns()
    fence = one(db, 'select fence_acquire(?, 3600000)', f'{args[1]} {n}')
    print(began, fence, time.monotonic_ns(), sep='\\n')
";
        let python = Python::new(script).arg(folder.path().join(name)).arg(name);
        std::thread::spawn(move || grants(&python.run().ok().lines().collect::<Vec<_>>()))
    };
    let (a, b) = (start("a.db"), start("b.db"));
    each_later_one_is_larger([a, b].map(|program| program.join().expect("10,000 grants")).concat());
}

/// A fence, and when the call that gave it began and had ended.
#[derive(Clone, Debug)]
struct Grant {
    began: u64,
    fence: u128,
    ended: u64,
}

/// Three lines for each grant: began, fence, ended.
fn grants(lines: &[&str]) -> Vec<Grant> {
    let grant = |lines: &[&str]| match lines {
        [began, fence, ended] => Grant {
            began: began.parse().expect("a time"),
            fence: fence.parse().unwrap_or_else(|_| panic!("no fence: '{fence}'")),
            ended: ended.parse().expect("a time"),
        },
        _ => panic!("a grant has three lines, not {lines:?}"),
    };
    lines.chunks(3).map(grant).collect()
}

/// Checks that of any two grants of which one ended before the other began, the later one's fence is larger; and that no
/// fence was given twice (LOCK-03).
fn each_later_one_is_larger(grants: Vec<Grant>) {
    assert_eq!(grants.len(), 20_000);
    let mut by_fence: Vec<_> = grants.iter().map(|grant| grant.fence).collect();
    by_fence.sort_unstable();
    by_fence.dedup();
    assert_eq!(by_fence.len(), 20_000, "a fence was given twice");

    let (mut by_begin, mut by_end) = (grants.clone(), grants);
    by_begin.sort_unstable_by_key(|grant| grant.began);
    by_end.sort_unstable_by_key(|grant| grant.ended);
    let mut ended = by_end.into_iter().peekable();
    let mut largest: Option<Grant> = None;
    let mut compared_across = 0;
    for grant in by_begin {
        while let Some(earlier) = ended.next_if(|earlier| earlier.ended < grant.began) {
            if largest.as_ref().is_none_or(|largest| largest.fence < earlier.fence) {
                largest = Some(earlier);
            }
        }
        if let Some(largest) = &largest {
            assert!(largest.fence < grant.fence, "{largest:?} ended before {grant:?} began");
            compared_across += 1;
        }
    }
    assert!(
        compared_across > 10_000,
        "only {compared_across} grants had one before them"
    );
}

#[test]
fn lock_02_a_new_process_gets_larger_fences_than_all_before_it() {
    let folder = folder();
    let shell = Shell::new().on(folder.path().join("app.db"));
    let mut last = 0;
    for n in 0..5 {
        let fence: u128 = shell
            .run(&format!("select fence_acquire('{n}');"))
            .ok()
            .parse()
            .expect("a fence");
        assert!(fence > last, "{fence} came after {last}");
        last = fence;
    }
}

#[test]
fn lock_03_a_rollback_of_the_caller_takes_no_lease_and_no_fence_back() {
    let folder = folder();
    let (mut a, mut b) = two_shells(folder.path());
    a.ask("create table t (x)");
    a.ask("begin immediate");
    a.ask("insert into t values (1)");
    let fence = acquire(&mut a, "chat:42", LONG).expect("free");
    assert_eq!(a.ask("rollback"), "");
    assert_eq!(
        a.ask("select count(*) from t"),
        "0",
        "the caller's own work is rolled back"
    );
    assert_eq!(acquire(&mut b, "chat:42", LONG), None, "the lease stands");
    assert_eq!(renew(&mut a, "chat:42", fence), "1");
    assert!(
        acquire(&mut b, "chat:43", LONG) > Some(fence),
        "the fence is not given again"
    );
}

#[test]
fn lock_04_only_the_live_lease_is_renewed_or_released() {
    let folder = folder();
    let (mut a, mut b) = two_shells(folder.path());
    let released = acquire(&mut a, "k", LONG).expect("free");
    assert_eq!(release(&mut a, "k", released), "1");
    let expired = acquire(&mut a, "k", 1).expect("free");
    let live = acquire_when_free(&mut b, "k", LONG);

    let invented = [0, live - 1, live + 1, u128::MAX];
    for fence in [released, expired].into_iter().chain(invented) {
        assert_eq!(renew(&mut a, "k", fence), "0", "renew with {fence}");
        assert_eq!(release(&mut a, "k", fence), "0", "release with {fence}");
    }
    assert_eq!(renew(&mut a, "another", live), "0", "the right fence of another key");
    assert_eq!(release(&mut a, "another", live), "0");

    assert_eq!(
        b.ask("select key, fence from fence_leases"),
        format!("k|{live}"),
        "B's lease is untouched"
    );
    assert_eq!(renew(&mut b, "k", live), "1");
    // A lease is named by its key and its fence; who knows both may release it, from any process.
    assert_eq!(release(&mut a, "k", live), "1");
    assert_eq!(release(&mut b, "k", live), "0", "twice");
}

#[test]
fn lock_04_a_renewal_never_revives_and_never_inserts() {
    let folder = folder();
    let (mut a, mut b) = two_shells(folder.path());
    let fence = acquire(&mut a, "k", 1).expect("free");
    wait_until("the lease ran out", || {
        a.ask("select count(*) from fence_leases") == "0"
    });
    assert_eq!(renew(&mut a, "k", fence), "0");
    assert_eq!(a.ask("select count(*) from fence_leases"), "0");
    assert!(acquire(&mut b, "k", LONG) > Some(fence));
}

#[test]
fn lock_04_every_spelling_of_the_fence_names_the_lease() {
    let folder = folder();
    let (mut a, mut b) = two_shells(folder.path());
    let fence = acquire(&mut a, "k", LONG).expect("free");
    assert_eq!(b.ask(&format!("select fence_renew('k', fence_pad('{fence}'))")), "1");
    assert_eq!(b.ask(&format!("select fence_renew('k', fence_blob('{fence}'))")), "1");
    assert_eq!(b.ask(&format!("select fence_release('k', '{fence:040}')")), "1");
}
