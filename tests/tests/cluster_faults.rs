//! A store on a cluster while the cluster fails: members that die, stand still or are slow, answers that are lost, a quorum
//! that is lost, a snapshot that is restored, processes that die. The torture harness (`make torture STORE=etcd`) lets
//! members fail under processes that are killed; here each fault comes at the moment that matters.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fence_core::clock::SystemClock;
use fence_core::{AcquireOptions, ClusterTrouble, Delay, Error, Fence, Store, Ttl, Wait};
use fence_tests::etcd::{Certificates, Cluster, Proxy, Setup};
use fence_tests::{Python, Shell, cluster_library, folder, wait_until};
use once_cell::sync::Lazy;

/// One that no test disturbs.
static CALM: Lazy<Cluster> = Lazy::new(Cluster::start);

/// The store, as another process would open it.
#[track_caller]
fn open(location: &str) -> Store {
    Store::with_clock(location, SystemClock).expect("a store")
}

fn options(ttl_ms: i64, wait_ms: i64) -> AcquireOptions {
    AcquireOptions {
        ttl: Ttl::new(ttl_ms).expect("a ttl"),
        wait: Wait::new(wait_ms).expect("a wait"),
        ..AcquireOptions::default()
    }
}

/// A lease that lasts for the test, taken at once.
fn long() -> AcquireOptions {
    options(600_000, 0)
}

/// The same after a wait that is longer than any lease here.
fn patient() -> AcquireOptions {
    options(600_000, 120_000)
}

#[track_caller]
fn get(store: &Store, key: &str, options: &AcquireOptions) -> Fence {
    let lease = store.acquire(key, options).expect("no error");
    lease.unwrap_or_else(|| panic!("{key} is held")).fence()
}

/// How many leases, permits and delays there are.
#[track_caller]
fn held(store: &Store) -> usize {
    store.holds().expect("a listing").count()
}

/// A grant, and between which moments it was made.
struct Grant {
    began: Instant,
    ended: Instant,
    fence: Fence,
}

#[test]
fn lock_02_fences_are_unique_and_grow_while_leaders_are_killed_under_load() {
    let mut cluster = Cluster::start();
    let location = cluster.location("load");
    let grants = Mutex::new(Vec::new());
    let enough = AtomicBool::new(false);
    let count = || grants.lock().expect("no panic").len();
    thread::scope(|scope| {
        for worker in 0..6 {
            let (location, grants, enough) = (&location, &grants, &enough);
            scope.spawn(move || {
                let store = open(location);
                let key = format!("key-{}", worker % 2);
                while !enough.load(Ordering::SeqCst) {
                    let began = Instant::now();
                    // Without a leader for a moment a call may say that nobody answers, or that nobody knows.
                    let Ok(Some(lease)) = store.acquire(&key, &options(60_000, 1_000)) else {
                        continue;
                    };
                    let ended = Instant::now();
                    let fence = lease.fence();
                    grants.lock().expect("no panic").push(Grant { began, ended, fence });
                    // One that nobody released would keep the key until the end of the test.
                    while store.release(&key, fence).is_err() {}
                }
            });
        }
        for _ in 0..3 {
            let so_far = count();
            wait_until("more were granted", || count() > so_far + 20);
            let leader = cluster.leader();
            cluster.kill(leader);
            let so_far = count();
            wait_until("more were granted by the two others", || count() > so_far + 20);
            cluster.restart(leader);
            cluster.wait_until_back(leader);
        }
        enough.store(true, Ordering::SeqCst);
    });
    let mut grants = grants.into_inner().expect("no panic");
    let fences: BTreeSet<u128> = grants.iter().map(|grant| grant.fence.get()).collect();
    assert_eq!(fences.len(), grants.len(), "a fence was given twice");
    grants.sort_by_key(|grant| grant.fence.get());
    // In the order of the fences: nothing that came later had ended before.
    let mut latest_begin = grants[0].began;
    for grant in &grants {
        assert!(grant.ended >= latest_begin, "{} is out of order", grant.fence);
        latest_begin = latest_begin.max(grant.began);
    }
}

#[test]
fn lock_01_a_leader_that_stands_still_for_longer_than_a_ttl_keeps_no_lease_alive() {
    let mut cluster = Cluster::start();
    let location = cluster.location("still");
    let leader = cluster.leader();
    let (holder, other) = (open(&location), open(&location));
    let first = get(&holder, "k", &options(1_000, 0));
    cluster.stop(leader);
    // By the two others, after its end by their count.
    let second = get(&other, "k", &patient());
    assert!(second > first);
    assert!(!holder.renew("k", first, None).expect("an answer of the others"));
    // It goes on and believes that it leads; nothing comes of it.
    cluster.go_on(leader);
    let old = open(&format!("etcd://{}/still", cluster.endpoint(leader)));
    assert!(!old.renew("k", first, None).expect("an answer"));
    assert!(!old.release("k", first).expect("an answer"));
    assert!(old.acquire("k", &long()).expect("an answer").is_none());
    assert!(other.renew("k", second, None).expect("an answer"));
    assert!(get(&old, "another", &long()) > second);
}

#[test]
fn lock_01_without_a_quorum_there_is_an_error_and_nothing_is_granted_afterwards_either() {
    let mut cluster = Cluster::start();
    let location = cluster.location("quorum");
    let store = open(&location);
    let first = get(&store, "k", &long());
    assert!(store.release("k", first).expect("an answer"));
    let dead = [cluster.leader(), cluster.follower()];
    dead.iter().for_each(|member| cluster.kill(*member));

    for wait in [0, 300] {
        let error = store.acquire("k", &options(60_000, wait)).expect_err("no quorum");
        let unavailable = |error: &Error| {
            matches!(
                error,
                Error::Cluster {
                    trouble: ClusterTrouble::Unavailable,
                    ..
                }
            )
        };
        assert!(unavailable(&error), "{error}");
        assert_eq!(error.code(), rusqlite::ffi::SQLITE_BUSY);
        let error = store.release("k", first).expect_err("no quorum");
        assert!(unavailable(&error), "{error}");
    }
    assert!(
        Store::with_clock(&location, SystemClock).is_err(),
        "no epoch without a quorum"
    );

    dead.iter().for_each(|member| cluster.restart(*member));
    dead.iter().for_each(|member| cluster.wait_until_back(*member));
    assert_eq!(held(&store), 0, "something was granted that nobody knows of");
    assert!(get(&store, "k", &long()) > first);
}

#[test]
fn lock_02_a_cluster_that_was_made_from_a_snapshot_gives_larger_fences_than_the_one_before_it_ever_did() {
    let mut cluster = Cluster::start();
    let store = open(&cluster.location("restored"));
    get(&store, "k", &long());
    let snapshot = cluster.snapshot();
    // Given after the snapshot, of which the new cluster knows nothing.
    let last = (0..20).map(|n| get(&store, &format!("later-{n}"), &long())).max();
    let last = last.expect("some");
    (0..cluster.size()).for_each(|member| cluster.kill(member));

    let after = Cluster::restored(&snapshot);
    let store = open(&after.location("restored"));
    let first = get(&store, "anew", &long());
    assert!(first > last, "{first} is not larger than {last}");
    assert!(first.epoch() > last.epoch());
    // What stood in the snapshot is still held, for the time that it was given.
    assert!(store.acquire("k", &long()).expect("an answer").is_none());
}

#[test]
fn lock_02_an_epoch_that_lies_ahead_of_the_clock_is_passed_after_a_snapshot_too() {
    let mut cluster = Cluster::start();
    let store = open(&cluster.location("ahead"));
    let far = Fence::new(fence_core::Epoch::new(9_000_000_000_000), fence_core::Count::new(7));
    let epoch = store.advance(far).expect("an epoch");
    let last = get(&store, "k", &long());
    assert_eq!(last.epoch(), epoch);
    let snapshot = cluster.snapshot();
    (0..cluster.size()).for_each(|member| cluster.kill(member));
    let after = Cluster::restored(&snapshot);
    let first = get(&open(&after.location("ahead")), "anew", &long());
    assert!(first.epoch() > epoch, "{first}");
}

/// Whichever answer of an acquire, a renewal or a release is lost.
#[test]
fn lock_03_a_grant_whose_answer_was_lost_is_found_and_not_given_twice() {
    for spared in 0..6 {
        let proxy = Proxy::to(CALM.endpoint(0));
        let store = open(&format!("etcd://{}/lost-{spared}", proxy.endpoint()));
        let direct = open(&CALM.location(&format!("lost-{spared}")));
        let before = get(&store, "before", &long());
        proxy.lose_answers_after(spared, 1);
        let fence = get(&store, "k", &long());
        assert!(fence > before);
        assert!(direct.acquire("k", &long()).expect("an answer").is_none());
        assert_eq!(held(&direct), 2, "after {spared} answers");
        // Whoever has not lost one yet loses it here, or there.
        let renewed = store.renew("k", fence, Ttl::new(500_000).ok());
        assert!(
            matches!(renewed, Ok(true) | Err(Error::UnknownOutcome { .. })),
            "{renewed:?}"
        );
        let released = store.release("k", fence);
        assert!(
            matches!(released, Ok(true) | Err(Error::UnknownOutcome { .. })),
            "{released:?}"
        );
        assert_eq!(proxy.lost(), 1, "after {spared} answers");
        // Of what nobody knows the second try tells.
        while store.release("k", fence).is_err() {}
        assert_eq!(held(&direct), 1, "after {spared} answers");
        assert!(get(&direct, "k", &long()) > fence);
    }
}

#[test]
fn lock_07_a_wait_goes_on_although_answers_are_lost() {
    let proxy = Proxy::to(CALM.endpoint(1));
    let location = CALM.location("waits-on");
    let (holder, waiter) = (open(&location), open(&format!("etcd://{}/waits-on", proxy.endpoint())));
    let first = get(&holder, "k", &long());
    thread::scope(|scope| {
        let waiting = scope.spawn(|| get(&waiter, "k", &patient()));
        let in_line = || {
            let keys = CALM.etcdctl(["get", "--prefix", "--keys-only", "waits-on"]).ok();
            keys.contains("line/")
        };
        wait_until("it stands in line", in_line);
        // Those of its place, which it keeps alive, and that of its watch.
        proxy.lose_answers(3);
        wait_until("they are lost", || proxy.lost() == 3);
        assert!(holder.release("k", first).expect("an answer"));
        assert!(waiting.join().expect("no panic") > first);
    });
    assert_eq!(held(&holder), 1);
}

#[test]
fn lock_01_a_slow_member_makes_calls_slow_and_nothing_else() {
    let proxy = Proxy::to(CALM.endpoint(2));
    let slow = open(&format!("etcd://{}/slow", proxy.endpoint()));
    let quick = open(&CALM.location("slow"));
    proxy.delay(Duration::from_millis(40));
    let mut last = get(&quick, "other", &long());
    for _ in 0..3 {
        for store in [&slow, &quick] {
            let fence = get(store, "k", &long());
            assert!(fence > last);
            last = fence;
            assert!(quick.acquire("k", &long()).expect("an answer").is_none());
            assert!(slow.renew("k", fence, None).expect("an answer"));
            assert!(store.release("k", fence).expect("an answer"));
        }
    }
}

#[test]
fn more_keys_than_the_cluster_takes_are_an_error_that_says_how_many_fit_and_nothing_is_held() {
    let store = open(&CALM.location("many"));
    let names: Vec<String> = (0..1_000).map(|n| format!("key-{n}")).collect();
    let keys: Vec<&str> = names.iter().map(String::as_str).collect();
    for count in [64, 1_000] {
        let error = store
            .acquire_all(&keys[..count], &long(), &|| false)
            .expect_err("too many");
        assert_eq!(error.code(), rusqlite::ffi::SQLITE_TOOBIG, "{error}");
        assert!(error.to_string().contains("name fewer keys (42 always fit)"), "{error}");
    }
    assert_eq!(held(&store), 0);
    let all = |count: usize, options: &AcquireOptions| {
        let given = store.acquire_all(&keys[..count], options, &|| false).expect("no error");
        given.expect("nobody holds any")
    };
    let fence = all(63, &long());
    assert!(store.renew_all(fence, Ttl::new(500_000).ok()).expect("an answer"));
    // After a wait, and with a delay: as much as there can be.
    let delayed = AcquireOptions {
        delay: Delay::new(1).expect("a delay"),
        ..patient()
    };
    thread::scope(|scope| {
        let waiting = scope.spawn(|| all(42, &delayed));
        let in_line = || {
            let keys = CALM.etcdctl(["get", "--prefix", "--keys-only", "many/"]).ok();
            keys.matches("line/").count() == 42
        };
        wait_until("it stands in line", in_line);
        assert!(store.release_all(fence).expect("an answer"));
        let fence = waiting.join().expect("no panic");
        assert!(store.renew_all(fence, Ttl::new(400_000).ok()).expect("an answer"));
        assert!(store.release_all(fence).expect("an answer"));
    });
    assert_eq!(held(&store), 0);
}

#[test]
fn etcdctls_own_lock_on_another_prefix_does_no_harm_and_takes_none() {
    let store = open(&CALM.location("beside"));
    let mut lock = CALM.etcdctl_command();
    // It has the lock until it is interrupted.
    lock.args(["lock", "beside2/k"]).stdout(std::process::Stdio::null());
    let mut lock = lock.spawn().expect("etcdctl runs");
    let there = || {
        !CALM
            .etcdctl(["get", "--prefix", "--keys-only", "beside2/k"])
            .ok()
            .is_empty()
    };
    wait_until("etcdctl has its lock", there);
    let mut last = get(&store, "other", &long());
    for _ in 0..5 {
        let fence = get(&store, "k", &long());
        assert!(fence > last);
        last = fence;
        assert!(store.release("k", fence).expect("an answer"));
    }
    assert_eq!(held(&store), 1);
    assert!(there(), "its lock is gone");
    let pid = rustix::process::Pid::from_child(&lock);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).expect("a child of ours");
    lock.wait().expect("a child of ours");
    wait_until("it gave its lock back", || !there());
    assert_eq!(held(&store), 1);
}

/// A shell with the library that can use a cluster.
fn shell(folder: &Path, location: &str) -> Shell {
    let shell = Shell::plain().with_library(cluster_library());
    shell.on(folder.join("app.db")).env("FENCE_STORE", location)
}

#[test]
fn lock_11_a_bound_lease_ends_with_its_process_and_an_unbound_one_does_not() {
    let folder = folder();
    let location = CALM.location("bound");
    let mut holder = shell(folder.path(), &location).start();
    let bound = holder.ask("select fence_acquire('bound', 3600000, 0, '{\"bound\":true}')");
    let unbound = holder.ask("select fence_acquire('unbound', 3600000)");
    assert!(
        bound.parse::<u128>().is_ok() && unbound.parse::<u128>().is_ok(),
        "{bound} {unbound}"
    );
    let store = open(&location);
    assert!(store.acquire("bound", &long()).expect("an answer").is_none());
    holder.process().kill();
    // After its hour, or when the cluster misses its process.
    let next = get(&store, "bound", &patient());
    assert!(next.get() > bound.parse().expect("a fence"));
    assert!(store.acquire("unbound", &long()).expect("an answer").is_none());
}

#[test]
fn lock_07_a_waiter_that_was_killed_holds_up_those_behind_it_for_a_while_and_no_longer() {
    let folder = folder();
    let location = CALM.location("killed-waiter");
    let store = open(&location);
    let first = get(&store, "k", &long());
    let mut dies = shell(folder.path(), &location).start();
    dies.tell("select fence_acquire('k', 3600000, 3600000)");
    let places = || {
        let keys = CALM.etcdctl(["get", "--prefix", "--keys-only", "killed-waiter"]).ok();
        keys.matches("line/").count()
    };
    wait_until("it stands in line", || places() == 1);
    thread::scope(|scope| {
        let behind = scope.spawn(|| get(&store, "k", &patient()));
        wait_until("another stands behind it", || places() == 2);
        dies.process().kill();
        assert!(store.release("k", first).expect("an answer"));
        assert!(behind.join().expect("no panic") > first);
    });
    assert_eq!(held(&store), 1);
}

#[test]
fn lock_09_a_forked_child_has_connections_of_its_own_and_its_end_ends_no_lease_of_its_parent() {
    let location = CALM.location("forked");
    let script = format!(
        "
import os
db = sqlite3.connect(':memory:', isolation_level=None)
db.enable_load_extension(True)
db.load_extension({library:?})
one = lambda sql, *values: db.execute(sql, values).fetchone()[0]
one('select fence_open(?)', {location:?})
bound = one('select fence_acquire(?, 3600000, 0, ?)', 'bound', '{{\"bound\":true}}')
plain = one('select fence_acquire(?, 3600000)', 'plain')
child = os.fork()
if child == 0:
    # It knows the names of its parent's leases and may renew them; what it takes is its own.
    ok = one('select fence_renew(?, ?)', 'plain', plain) == 1
    own = one('select fence_acquire(?, 3600000, 0, ?)', 'child', '{{\"bound\":true}}')
    ok = ok and int(own) > int(plain) and one('select fence_acquire(?)', 'bound') is None
    os._exit(0 if ok else 1)
_, status = os.waitpid(child, 0)
assert status == 0, status
# The child's bound lease ends with it, the parent's stays.
assert one('select fence_acquire(?, 3600000, 120000)', 'child') is not None
assert one('select fence_renew(?, ?)', 'bound', bound) == 1
assert one('select fence_renew(?, ?)', 'plain', plain) == 1
print('well')
",
        library = cluster_library(),
    );
    assert_eq!(Python::new(&script).run().ok(), "well");
}

#[test]
fn tls_asks_for_what_is_missing_and_works_with_it() {
    let certificates = std::sync::Arc::new(Certificates::new());
    let cluster = Cluster::with(Setup {
        members: 1,
        certificates: Some(certificates.clone()),
        ..Setup::default()
    });
    let folder = folder();
    let location = cluster.location("tls");
    assert!(location.starts_with("etcds://"));
    let acquire = "select fence_acquire('k') > 0";
    let bare = || shell(folder.path(), &location);
    let told = bare().run(acquire).error();
    assert!(told.contains("etcds:// needs FENCE_ETCD_CACERT"), "{told}");
    let with_ca = || bare().env("FENCE_ETCD_CACERT", certificates.ca());
    // The cluster asks for a certificate of ours.
    let told = with_ca().run(acquire).error();
    assert!(told.contains("FENCE_ETCD_"), "{told}");
    let told = with_ca()
        .env("FENCE_ETCD_KEY", certificates.client_key())
        .run(acquire)
        .error();
    assert!(
        told.contains("FENCE_ETCD_KEY is set and FENCE_ETCD_CERT is not"),
        "{told}"
    );
    let all = with_ca()
        .env("FENCE_ETCD_CERT", certificates.client())
        .env("FENCE_ETCD_KEY", certificates.client_key());
    assert_eq!(all.run(acquire).ok(), "1");
    // A member that speaks TLS does not answer those who do not.
    let plain = location.replace("etcds://", "etcd://");
    let told = shell(folder.path(), &plain).run(acquire).error();
    assert!(told.contains("see that most of its members run"), "{told}");
}
