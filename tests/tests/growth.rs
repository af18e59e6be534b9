//! A store stays as large as what is live, however many keys it has seen.

use std::time::{Duration, Instant};

use fence_core::clock::Clock;
use fence_core::{AcquireOptions, Store, Ttl};
use fence_tests::quick_folder;

/// A clock that stands still until it is told: a million leases run out at once, without a wait.
#[derive(Clone, Default)]
struct Manual(std::sync::Arc<std::sync::atomic::AtomicI64>);

impl Manual {
    fn advance(&self, ms: i64) {
        self.0.fetch_add(ms, std::sync::atomic::Ordering::Relaxed);
    }
}

impl Clock for Manual {
    fn wall_ms(&self) -> i64 {
        1_700_000_000_000 + self.now_ms()
    }

    fn now_ms(&self) -> i64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }

    fn boot(&self) -> fence_core::Result<String> {
        Ok("one".to_owned())
    }
}

fn options(ttl: i64) -> AcquireOptions {
    AcquireOptions {
        ttl: Ttl::new(ttl).expect("in range"),
        ..AcquireOptions::default()
    }
}

/// The time of a thousand calls on a working set of a hundred keys.
fn time_of_a_thousand(store: &Store, round: usize) -> Duration {
    let begun = Instant::now();
    for n in 0..1_000 {
        let key = format!("working {}", (round + n) % 100);
        if let Some(lease) = store.acquire(&key, &options(1_000)).expect("an answer") {
            assert!(store.release(&key, lease.fence()).expect("an answer"));
        }
    }
    begun.elapsed()
}

#[test]
fn a_million_keys_used_once_and_then_a_hundred_make_the_file_grow_no_further_and_no_call_slower() {
    let folder = quick_folder();
    let path = folder.path().join("kv.db");
    let clock = Manual::default();
    let store = Store::with_clock(&path, clock.clone()).expect("it opens");
    let before = time_of_a_thousand(&store, 0);
    // Each is used once and left to run out, a hundred thousand of them live at a time.
    for n in 0..1_000_000 {
        store
            .acquire(&format!("once {n}"), &options(100_000))
            .expect("an answer")
            .expect("free");
        clock.advance(1);
    }
    let size = || std::fs::metadata(&path).expect("a file").len();
    let wal = || std::fs::metadata(folder.path().join("kv.db-wal")).expect("a WAL").len();
    let after = time_of_a_thousand(&store, 0);
    let (full, full_wal) = (size(), wal());
    assert!(full < 64 << 20, "a hundred thousand live leases take {full} bytes");
    clock.advance(100_000);
    let mut last = Duration::ZERO;
    for round in 0..200 {
        last = time_of_a_thousand(&store, round);
        clock.advance(10);
    }
    println!(
        "a thousand calls before, at the height, and after a million keys: {before:?}, {after:?}, {last:?}; ratio {:.2}",
        last.as_secs_f64() / before.as_secs_f64()
    );
    assert_eq!(size(), full, "the file grew");
    println!(
        "kv.db {full} bytes with a hundred thousand live leases, its WAL {full_wal} bytes, at the end {}",
        wal()
    );
    assert!(wal() <= full_wal.max(16 << 20), "the WAL grew to {}", wal());
    let left = store.holds().expect("a listing").count();
    assert_eq!(left, 0);
    let rows: i64 = rusqlite::Connection::open(&path)
        .and_then(|db| db.query_row("select count(*) from leases", [], |row| row.get(0)))
        .expect("a count");
    assert!(rows < 1_000, "{rows} rows of leases that are over were left");
    std::mem::forget(store); // The connection above has dropped its locks with it.
}

/// A grant of many keys adds many rows at once, and a permit takes no count.
#[test]
fn many_keys_at_once_and_semaphores_used_once_make_the_file_grow_no_further() {
    let folder = quick_folder();
    let path = folder.path().join("kv.db");
    let clock = Manual::default();
    let store = Store::with_clock(&path, clock.clone()).expect("it opens");
    let mut height = 0;
    for round in 0..60 {
        for n in 0..20 {
            let keys: Vec<_> = (0..50).map(|key| format!("{round} {n} {key}")).collect();
            let keys: Vec<_> = keys.iter().map(String::as_str).collect();
            store
                .acquire_all(&keys, &options(1_000), &|| false)
                .expect("an answer")
                .expect("free");
            let one = fence_core::Limit::MIN;
            for permit in 0..50 {
                let key = format!("semaphore {round} {n} {permit}");
                store
                    .acquire_permit(&key, one, &options(1_000), &|| false)
                    .expect("an answer")
                    .expect("free");
            }
        }
        clock.advance(1_001);
        let size = std::fs::metadata(&path).expect("a file").len();
        match round {
            ..20 => height = size,
            _ => assert!(
                size <= height * 2,
                "after {round} rounds {size} bytes, after 20 {height}"
            ),
        }
    }
}

#[test]
fn a_listing_left_open_does_not_make_the_wal_grow() {
    let folder = quick_folder();
    let path = folder.path().join("kv.db");
    let store = Store::with_clock(&path, Manual::default()).expect("it opens");
    for n in 0..2_000 {
        store
            .acquire(&format!("live {n}"), &options(100_000))
            .expect("an answer");
    }
    let mut listing = store.holds().expect("a listing");
    assert!(listing.next().is_some());
    for round in 0..40 {
        time_of_a_thousand(&store, round);
    }
    let wal = std::fs::metadata(folder.path().join("kv.db-wal")).expect("a WAL").len();
    // Checkpoints come every 10,000 pages of 1 KiB; a reader would keep the WAL from beginning anew.
    assert!(wal < 16 << 20, "the WAL has {wal} bytes");
    assert_eq!(listing.count(), 1_999);
}
