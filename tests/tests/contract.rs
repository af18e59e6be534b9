//! The contract of a store, word for word the same on every engine: each test below runs on a file and on a cluster of
//! three members.
//!
//! What an engine adds to it (files that are replaced, members that die, processes that are killed) has tests of its own.
//! A cluster counts in whole seconds and adds to every ttl, so nothing here ends at a certain time: where a lease is to run
//! out, a waiter waits for it.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use fence_core::clock::SystemClock;
use fence_core::{
    AcquireOptions, Count, Delay, Epoch, Error, Fence, Hold, HoldKind, Limit, PermitId, Store, Ttl, Wait,
};
use fence_tests::etcd::Cluster;
use fence_tests::{Line, wait_until};
use once_cell::sync::Lazy;

/// How a store is made.
trait Place: Sync {
    /// The store, as another process would open it.
    fn open(&self) -> Store;
    /// How many wait in its lines.
    fn waiting(&self) -> usize;
}

struct OnAFile(tempfile::TempDir);

impl OnAFile {
    fn new(_: &str) -> Self {
        Self(fence_tests::quick_folder())
    }
}

impl Place for OnAFile {
    fn open(&self) -> Store {
        Store::with_clock(self.0.path().join("kv.db"), SystemClock).expect("a store")
    }

    fn waiting(&self) -> usize {
        Line::of(self.0.path()).length()
    }
}

/// Where all of these tests have their stores, each under a prefix of its own.
static CLUSTER: Lazy<Cluster> = Lazy::new(Cluster::start);

struct OnACluster(&'static str);

impl OnACluster {
    fn new(test: &'static str) -> Self {
        Self(test)
    }
}

impl Place for OnACluster {
    fn open(&self) -> Store {
        Store::with_clock(CLUSTER.location(self.0), SystemClock).expect("a store")
    }

    fn waiting(&self) -> usize {
        let keys = CLUSTER.etcdctl(["get", "--prefix", "--keys-only", self.0]).ok();
        keys.matches("\0line/").count() + keys.matches("\0queue/").count()
    }
}

macro_rules! contract {
    ($($(#[$doc:meta])* fn $name:ident($place:ident: &dyn Place) $body:block)*) => {
        $($(#[$doc])* fn $name($place: &dyn Place) $body)*

        mod on_a_file {
            use super::*;
            $(#[test] fn $name() { super::$name(&OnAFile::new(stringify!($name))); })*
        }

        mod on_a_cluster {
            use super::*;
            $(#[test] fn $name() { super::$name(&OnACluster::new(stringify!($name))); })*
        }
    };
}

/// Longer than any test takes.
fn long() -> AcquireOptions {
    with(3_600_000, 0)
}

/// Over as soon as the engine can tell.
fn short() -> AcquireOptions {
    with(1, 0)
}

fn with(ttl: i64, delay: i64) -> AcquireOptions {
    AcquireOptions {
        ttl: Ttl::new(ttl).expect("a ttl"),
        delay: Delay::new(delay).expect("a delay"),
        ..AcquireOptions::default()
    }
}

/// The same, waiting for longer than anything takes.
fn patient(options: AcquireOptions) -> AcquireOptions {
    AcquireOptions {
        wait: Wait::MAX,
        ..options
    }
}

#[track_caller]
fn acquire(store: &Store, key: &str, options: &AcquireOptions) -> Option<Fence> {
    store
        .acquire(key, options)
        .expect("no trouble")
        .map(|lease| lease.fence())
}

#[track_caller]
fn get(store: &Store, key: &str, options: &AcquireOptions) -> Fence {
    acquire(store, key, options).expect("it is free")
}

#[track_caller]
fn permit(store: &Store, key: &str, limit: i64, options: &AcquireOptions) -> Option<PermitId> {
    let limit = Limit::new(limit).expect("a limit");
    store
        .acquire_permit(key, limit, options, &|| false)
        .expect("no trouble")
}

#[track_caller]
fn renew(store: &Store, key: &str, fence: Fence) -> bool {
    store.renew(key, fence, None).expect("no trouble")
}

#[track_caller]
fn release(store: &Store, key: &str, fence: Fence) -> bool {
    store.release(key, fence).expect("no trouble")
}

#[track_caller]
fn holds(store: &Store) -> Vec<Hold> {
    store.holds().and_then(Iterator::collect).expect("no trouble")
}

contract! {
    fn lock_01_a_key_is_given_to_one_holder_at_a_time(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        let held = get(&a, "chat:42", &long());
        assert_eq!(acquire(&b, "chat:42", &long()), None);
        assert_eq!(acquire(&a, "chat:42", &long()), None);
        get(&b, "chat:43", &long());
        get(&b, "chat:4", &long());
        assert!(release(&a, "chat:42", held));
        get(&b, "chat:42", &long());
        assert_eq!(acquire(&a, "chat:42", &long()), None);
    }

    fn lock_01_of_many_threads_one_is_inside_at_a_time(place: &dyn Place) {
        let (inside, entered) = (AtomicBool::new(false), AtomicUsize::new(0));
        let fences = Mutex::new(BTreeSet::new());
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let store = place.open();
                    for _ in 0..10 {
                        let fence = get(&store, "k", &patient(long()));
                        assert!(!inside.swap(true, Ordering::SeqCst), "two holders at once");
                        {
                            // LOCK-02: each is larger than all before it.
                            let mut fences = fences.lock().expect("no panic");
                            assert!(fences.last().is_none_or(|last| *last < fence), "a fence is too small");
                            fences.insert(fence);
                        }
                        entered.fetch_add(1, Ordering::SeqCst);
                        inside.store(false, Ordering::SeqCst);
                        assert!(release(&store, "k", fence));
                    }
                });
            }
        });
        assert_eq!(entered.into_inner(), 40);
    }

    fn lock_01_of_newcomers_who_come_at_once_one_gets_the_key(place: &dyn Place) {
        let (inside, entered) = (AtomicBool::new(false), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let store = place.open();
                    while entered.load(Ordering::SeqCst) < 40 {
                        // They stand in no line, so nothing but the grant itself keeps them apart.
                        let Some(fence) = acquire(&store, "k", &long()) else { continue };
                        assert!(!inside.swap(true, Ordering::SeqCst), "two holders at once");
                        entered.fetch_add(1, Ordering::SeqCst);
                        inside.store(false, Ordering::SeqCst);
                        assert!(release(&store, "k", fence), "somebody else has written to it");
                    }
                });
            }
        });
    }

    fn lock_02_fences_grow_over_keys_and_openings(place: &dyn Place) {
        let mut last = Fence::from(0);
        for opening in 0..3 {
            let store = place.open();
            for key in ["b", "a", "c"] {
                let fence = get(&store, &format!("{key}{opening}"), &long());
                assert!(fence > last, "{fence} comes after {last}");
                assert_eq!(fence.epoch(), store.epoch().expect("an epoch"));
                last = fence;
            }
        }
    }

    fn lock_03_no_fence_is_given_twice(place: &dyn Place) {
        let given = Mutex::new(BTreeSet::new());
        thread::scope(|scope| {
            for thread in 0..4 {
                let given = &given;
                scope.spawn(move || {
                    let store = place.open();
                    for n in 0..25 {
                        let fence = get(&store, &format!("{thread}:{n}"), &long());
                        assert!(given.lock().expect("no panic").insert(fence), "{fence} was given twice");
                    }
                });
            }
        });
        assert_eq!(given.into_inner().expect("no panic").len(), 100);
    }

    fn lock_04_only_the_live_lease_is_renewed_or_released(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        // Superseded, after it had run out.
        let expired = get(&a, "k", &short());
        let fence = get(&b, "k", &patient(long()));
        let invented = [
            Fence::new(fence.epoch(), Count::new(fence.count().get() + 1)),
            Fence::new(Epoch::new(fence.epoch().get() + 1), fence.count()),
            Fence::new(Epoch::new(fence.epoch().get() - 1), fence.count()),
            Fence::new(fence.epoch(), Count::new(u64::MAX)),
            Fence::from(0),
        ];
        for wrong in invented.into_iter().chain([expired]) {
            for store in [&a, &b] {
                assert!(!renew(store, "k", wrong), "{wrong} was renewed");
                assert!(!release(store, "k", wrong), "{wrong} was released");
                assert!(!release(store, "j", wrong), "{wrong} was released");
            }
        }
        assert!(!renew(&a, "j", fence), "another key");
        assert_eq!(acquire(&a, "k", &long()), None, "it is still held");
        // Whoever knows its name.
        assert!(renew(&a, "k", fence) && renew(&b, "k", fence));
        assert!(release(&a, "k", fence));
        for store in [&a, &b] {
            assert!(!renew(store, "k", fence));
            assert!(!release(store, "k", fence));
        }
        assert_eq!(holds(&a), [], "nothing was revived or inserted");
    }

    fn lock_04_a_lease_that_ran_out_is_not_revived(place: &dyn Place) {
        let store = place.open();
        let fence = get(&store, "k", &short());
        wait_until("the lease ran out", || holds(&store).is_empty());
        assert!(!renew(&store, "k", fence));
        assert!(!store.renew("k", fence, Some(Ttl::MAX)).expect("no trouble"));
        assert!(!release(&store, "k", fence));
        assert_eq!(holds(&store), []);
        assert!(get(&store, "k", &long()) > fence);
    }

    fn lock_04_a_renewal_for_another_time_keeps_the_fence(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        let options = with(4_000, 0);
        let fence = get(&a, "k", &options);
        assert!(a.renew("k", fence, Some(Ttl::new(3_600_000).expect("a ttl"))).expect("no trouble"));
        let held = holds(&b);
        assert_eq!((held.len(), held[0].fence), (1, Some(fence)));
        assert!(held[0].remaining_ms > 4_000, "it lasts for {} ms more", held[0].remaining_ms);
        assert!(renew(&b, "k", fence));
        assert_eq!(acquire(&b, "k", &long()), None);
        // And shorter: the next one need not wait for an hour.
        assert!(b.renew("k", fence, Some(Ttl::MIN)).expect("no trouble"));
        assert!(get(&a, "k", &patient(long())) > fence);
        assert!(!renew(&a, "k", fence));
    }

    fn lock_05_a_lease_lasts_for_its_ttl_from_the_grant_at_least(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        get(&a, "k", &with(1_500, 0));
        // Granted a second or more after it was asked for.
        let fence = get(&a, "k", &patient(with(2_000, 0)));
        let granted = Instant::now();
        let next = get(&b, "k", &patient(long()));
        let lasted = granted.elapsed();
        // What passed between the grant and `granted` is all that may be missing.
        assert!(next > fence && lasted > Duration::from_millis(1_500), "it lasted for {lasted:?} of 2 s");
    }

    fn lock_05_a_renewed_lease_lasts_for_its_ttl_from_the_renewal_at_least(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        let fence = get(&a, "k", &with(1_500, 0));
        wait_until("half of it is over", || holds(&b).iter().all(|hold| hold.remaining_ms <= 1_000));
        let renewed = Instant::now();
        assert!(renew(&a, "k", fence), "it was not over");
        get(&b, "k", &patient(long()));
        assert!(renewed.elapsed() >= Duration::from_millis(1_500), "{:?}", renewed.elapsed());
    }

    fn lock_06_a_key_stays_closed_for_its_delay_unless_it_was_released(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        let options = with(1, 2_000);
        let fence = get(&a, "k", &options);
        wait_until("the lease ran out", || holds(&b).iter().all(|hold| hold.kind == HoldKind::Delay));
        let ended = Instant::now();
        let delay = holds(&b);
        assert_eq!(delay.len(), 1, "its delay runs");
        assert_eq!((delay[0].key.as_str(), delay[0].fence, delay[0].delay_ms), ("k", Some(fence), 2_000));
        assert_eq!(acquire(&b, "k", &long()), None);
        assert!(!renew(&a, "k", fence) && !release(&a, "k", fence), "a delay is no lease");
        let next = get(&b, "k", &patient(with(3_600_000, 3_600_000)));
        assert!(next > fence && ended.elapsed() > Duration::from_millis(1_000), "{:?}", ended.elapsed());
        // Released it is free at once.
        assert!(release(&b, "k", next));
        assert_eq!(holds(&a), []);
        get(&a, "k", &long());
    }

    fn lock_06_a_renewed_lease_keeps_its_delay(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        let fence = get(&a, "k", &with(3_600_000, 1_500));
        assert!(renew(&a, "k", fence));
        assert!(a.renew("k", fence, Some(Ttl::MIN)).expect("no trouble"));
        wait_until("the lease ran out", || holds(&b).iter().all(|hold| hold.kind == HoldKind::Delay));
        assert_eq!(holds(&b).len(), 1, "its delay runs");
        assert_eq!(acquire(&b, "k", &long()), None);
        assert!(get(&b, "k", &patient(long())) > fence);
    }

    fn lock_06_a_lease_that_is_renewed_for_long_keeps_its_delay(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        let begun = Instant::now();
        let fence = get(&a, "k", &with(1_500, 1_000));
        // For longer than the delay would last by itself.
        while begun.elapsed() < Duration::from_secs(6) {
            assert!(renew(&a, "k", fence), "nobody stood still");
            thread::sleep(Duration::from_millis(100));
        }
        wait_until("the lease ran out", || holds(&b).iter().all(|hold| hold.kind == HoldKind::Delay));
        assert_eq!(holds(&b).len(), 1, "its delay runs");
        assert!(get(&b, "k", &patient(long())) > fence);
    }

    fn lock_07_a_wait_that_was_in_vain_ends_with_nothing_however_long_it_was(place: &dyn Place) {
        let store = place.open();
        get(&store, "k", &long());
        permit(&store, "gpu", 1, &long()).expect("free");
        // Shorter and longer than a store itself is waited for, 5 s.
        for wait_ms in [100, 5_500] {
            let options = AcquireOptions { wait: Wait::new(wait_ms).expect("a wait"), ..long() };
            assert_eq!(acquire(&store, "k", &options), None);
            assert_eq!(permit(&store, "gpu", 1, &options), None);
        }
    }

    fn lock_07_waiters_are_served_in_order_of_arrival(place: &dyn Place) {
        let store = place.open();
        let held = get(&store, "k", &long());
        let served = Mutex::new(Vec::new());
        thread::scope(|scope| {
            for n in 0..4 {
                let served = &served;
                scope.spawn(move || {
                    let store = place.open();
                    let fence = get(&store, "k", &patient(long()));
                    served.lock().expect("no panic").push(n);
                    assert!(release(&store, "k", fence));
                });
                wait_until("one more stands in line", || place.waiting() == n + 1);
            }
            assert!(release(&store, "k", held));
        });
        assert_eq!(served.into_inner().expect("no panic"), [0, 1, 2, 3]);
        assert_eq!(place.waiting(), 0);
        get(&store, "k", &long());
    }

    fn lock_07_who_would_not_wait_is_sent_away_while_others_wait(place: &dyn Place) {
        let store = place.open();
        let held = get(&store, "k", &long());
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let store = place.open();
                let (both, options) = (["j", "k"], patient(long()));
                store.acquire_all(&both, &options, &|| false).expect("no trouble").expect("in time")
            });
            wait_until("it stands in both lines", || place.waiting() >= 1 && acquire(&store, "j", &long()).is_none());
            // Nobody holds j, and nobody gets past who waits for it.
            assert!(holds(&store).iter().all(|hold| hold.key == "k"));
            assert!(release(&store, "k", held));
            let fence = waiter.join().expect("it waits");
            assert!(store.release_all(fence).expect("no trouble"));
        });
        get(&store, "j", &long());
    }

    fn lock_07_a_wait_that_is_over_or_interrupted_leaves_the_line_and_grants_nothing(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        let held = get(&a, "k", &long());
        let brief = AcquireOptions { wait: Wait::new(300).expect("a wait"), ..long() };
        let begun = Instant::now();
        assert_eq!(acquire(&b, "k", &brief), None);
        assert!(begun.elapsed() >= Duration::from_millis(300));
        assert_eq!(place.waiting(), 0);

        let interrupt = AtomicBool::new(false);
        thread::scope(|scope| {
            let waiter = scope.spawn(|| {
                let interrupted = || interrupt.load(Ordering::SeqCst);
                b.acquire_unless("k", &patient(long()), &interrupted)
            });
            wait_until("it stands in line", || place.waiting() == 1);
            interrupt.store(true, Ordering::SeqCst);
            assert!(matches!(waiter.join().expect("it waits"), Err(Error::Interrupted)));
        });
        assert_eq!(place.waiting(), 0);
        assert!(release(&a, "k", held));
        assert_eq!(holds(&a), []);
        get(&a, "k", &long());
    }

    fn lock_10_the_epoch_is_lifted_past_any_fence(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        let before = get(&a, "before", &long());
        let seen = Fence::new(Epoch::new(9_000_000_000_000), Count::new(u64::MAX));
        let lifted = b.advance(seen).expect("no trouble");
        assert_eq!(lifted, Epoch::new(9_000_000_000_001));
        for store in [&a, &b, &place.open()] {
            assert!(store.epoch().expect("an epoch") >= lifted);
        }
        // One that had the store open already gives larger ones as well.
        let fence = get(&a, "after", &long());
        assert!(fence > seen, "{fence}");
        assert!(a.advance(before).expect("no trouble") >= lifted, "past it already");
        assert!(renew(&b, "before", before), "what is held is held");
        let last = Fence::new(Epoch::new(i64::MAX.unsigned_abs()), Count::new(0));
        assert!(matches!(a.advance(last), Err(Error::EpochExhausted { .. })));
        assert!(get(&b, "still", &long()) > fence);
    }

    fn lock_11_a_bound_lease_lasts_for_its_ttl_while_its_process_lives(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        let bound = AcquireOptions { bound: true, ..with(6_000, 0) };
        let fence = get(&a, "k", &bound);
        let granted = Instant::now();
        assert!(holds(&b)[0].bound);
        let next = get(&b, "k", &patient(bound));
        assert!(granted.elapsed() > Duration::from_millis(5_500), "it lasted for {:?} of 6 s", granted.elapsed());
        assert!(next > fence);
        assert!(renew(&a, "k", next) && renew(&b, "k", next));
        assert!(b.renew("k", next, Some(Ttl::MAX)).expect("no trouble"));
        assert!(release(&b, "k", next));
        assert_eq!(holds(&b), []);
    }

    fn several_keys_are_held_under_one_fence_or_none_is(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        let taken = get(&b, "b", &long());
        let all = |store: &Store, keys: &[&str], options: &AcquireOptions| {
            store.acquire_all(keys, options, &|| false).expect("no trouble")
        };
        assert_eq!(all(&a, &["a", "b", "c"], &long()), None);
        assert_eq!(holds(&a).len(), 1, "none of them");
        assert!(release(&b, "b", taken));

        let fence = all(&a, &["c", "a", "b", "a"], &long()).expect("free");
        assert!(fence > taken);
        let held = holds(&b);
        assert_eq!(held.iter().map(|hold| hold.key.as_str()).collect::<Vec<_>>(), ["a", "b", "c"]);
        assert!(held.iter().all(|hold| hold.fence == Some(fence)));
        assert!(b.renew_all(fence, None).expect("no trouble"));
        assert!(b.renew_all(fence, Some(Ttl::new(1_000_000).expect("a ttl"))).expect("no trouble"));

        // One that is given up is no longer of them.
        assert!(release(&b, "b", fence));
        get(&b, "b", &long());
        assert!(a.renew_all(fence, None).expect("no trouble"));
        assert!(a.release_all(fence).expect("no trouble"));
        assert!(!a.release_all(fence).expect("no trouble"));
        assert!(!a.renew_all(fence, None).expect("no trouble"));
        assert_eq!(holds(&b).len(), 1, "what is another's is not released along");
        // A lease of one key is no lease of several.
        let single = get(&a, "a", &long());
        assert!(!a.renew_all(single, None).expect("no trouble"));
        assert!(!a.release_all(single).expect("no trouble"));
        assert!(renew(&a, "a", single));
    }

    fn several_keys_with_a_delay_stay_closed_together(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        let fence = a.acquire_all(&["a", "b"], &with(3_600_000, 3_600_000), &|| false);
        let fence = fence.expect("no trouble").expect("free");
        assert!(release(&a, "a", fence));
        get(&b, "a", &long());
        assert!(a.renew_all(fence, Some(Ttl::MIN)).expect("no trouble"));
        wait_until("it ran out", || holds(&b).iter().any(|hold| hold.key == "b" && hold.kind == HoldKind::Delay));
        assert_eq!(acquire(&b, "b", &long()), None);
        assert!(!a.release_all(fence).expect("no trouble"));
    }

    fn sem_01_no_more_permits_are_live_than_the_limit(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        let first = permit(&a, "gpu", 2, &long()).expect("free");
        let second = permit(&b, "gpu", 2, &long()).expect("free");
        assert_eq!(permit(&a, "gpu", 2, &long()), None);
        let third = permit(&b, "gpu", 3, &long()).expect("there are three");
        assert!(a.release_permit("gpu", first).expect("no trouble"));
        // A lowered limit drains.
        assert_eq!(permit(&a, "gpu", 2, &long()), None);
        assert!(a.renew_permit("gpu", second, None).expect("no trouble"));
        assert!(b.release_permit("gpu", third).expect("no trouble"));
        permit(&a, "gpu", 2, &long()).expect("there is one left");
        get(&a, "gpu", &long());
    }

    fn sem_01_of_many_threads_no_more_than_the_limit_are_inside(place: &dyn Place) {
        let inside = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    let store = place.open();
                    for _ in 0..6 {
                        let id = permit(&store, "gpu", 2, &patient(long())).expect("in time");
                        assert!(inside.fetch_add(1, Ordering::SeqCst) < 2, "three are inside");
                        inside.fetch_sub(1, Ordering::SeqCst);
                        assert!(store.release_permit("gpu", id).expect("no trouble"));
                    }
                });
            }
        });
        assert_eq!(holds(&place.open()), []);
    }

    fn sem_01_of_newcomers_who_come_at_once_no_more_than_the_limit_get_one(place: &dyn Place) {
        let (inside, entered) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for _ in 0..5 {
                scope.spawn(|| {
                    let store = place.open();
                    while entered.load(Ordering::SeqCst) < 40 {
                        let Some(id) = permit(&store, "gpu", 2, &long()) else { continue };
                        assert!(inside.fetch_add(1, Ordering::SeqCst) < 2, "three are inside");
                        entered.fetch_add(1, Ordering::SeqCst);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        assert!(store.release_permit("gpu", id).expect("no trouble"));
                    }
                });
            }
        });
    }

    fn sem_01_a_permit_that_ran_out_is_free(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        let first = permit(&a, "gpu", 1, &short()).expect("free");
        let second = permit(&b, "gpu", 1, &patient(long())).expect("in time");
        assert!(!a.renew_permit("gpu", first, None).expect("no trouble"));
        assert!(!a.release_permit("gpu", first).expect("no trouble"));
        assert!(b.renew_permit("gpu", second, Some(Ttl::MAX)).expect("no trouble"));
    }

    fn sem_02_a_release_frees_nobody_elses_permit(place: &dyn Place) {
        let (a, b) = (place.open(), place.open());
        let first = permit(&a, "gpu", 1, &long()).expect("free");
        assert!(a.release_permit("gpu", first).expect("no trouble"));
        let second = permit(&b, "gpu", 1, &long()).expect("free");
        assert!(!a.release_permit("gpu", first).expect("no trouble"));
        assert!(!a.release_permit("cpu", second).expect("no trouble"));
        assert_eq!(permit(&a, "gpu", 1, &long()), None, "it is still taken");
        assert!(b.release_permit("gpu", second).expect("no trouble"));
    }

    fn a_listing_shows_what_keeps_keys_from_others_in_the_order_of_the_keys(place: &dyn Place) {
        let store = place.open();
        let options = with(60_000, 5_000);
        let fence = get(&store, "b", &options);
        let id = permit(&store, "b", 1, &long()).expect("free");
        get(&store, "a", &AcquireOptions { bound: true, ..long() });
        get(&store, "b!", &long());
        let rows = holds(&place.open());
        let seen: Vec<_> = rows.iter().map(|row| (row.key.as_str(), row.kind, row.bound)).collect();
        assert_eq!(seen, [
            ("a", HoldKind::Lease, true),
            ("b", HoldKind::Lease, false),
            ("b", HoldKind::Permit, false),
            ("b!", HoldKind::Lease, false),
        ]);
        assert_eq!((rows[1].fence, rows[1].permit, rows[1].delay_ms), (Some(fence), None, 5_000));
        assert_eq!((rows[2].fence, rows[2].permit, rows[2].delay_ms), (None, Some(id), 0));
        assert!((1..=60_000).contains(&rows[1].remaining_ms));
        assert!(rows.iter().all(|row| row.process == i64::from(std::process::id())));
    }

    fn a_listing_of_more_than_a_page_is_whole(place: &dyn Place) {
        let store = place.open();
        for n in 0..300 {
            get(&store, &format!("{n:03}"), &long());
        }
        let keys: Vec<_> = holds(&store).into_iter().map(|row| row.key).collect();
        assert_eq!(keys, (0..300).map(|n| format!("{n:03}")).collect::<Vec<_>>());
    }
}
