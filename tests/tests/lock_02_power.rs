//! LOCK-02 after a power loss: the files as they are found when everything after the last fsync is gone.
//!
//! Opening syncs the WAL after the commit of the new epoch; a grant syncs nothing. So what can be lost are the frames of
//! the WAL behind that commit: all of them, or from any one on. SQLite does not read past a frame whose checksum does not
//! match, so a frame that was lost alone takes the later ones with it. kv.db itself is written by checkpoints alone, which
//! sync the WAL first.

use std::path::Path;
use std::process::Command;

use fence_core::clock::Clock;
use fence_core::{AcquireOptions, Fence, Store, Ttl};
use fence_tests::folder;

const HEADER: u64 = 32;

/// The machine after the power came back, with a wall clock that stands at its factory setting.
struct Later(&'static str);

impl Clock for Later {
    fn wall_ms(&self) -> i64 {
        0
    }

    fn now_ms(&self) -> i64 {
        1_000
    }

    fn boot(&self) -> fence_core::Result<String> {
        Ok(self.0.to_owned())
    }
}

/// The length of a frame: its head and a page, whose size the WAL's head tells.
fn frame(wal: &Path) -> u64 {
    let head = std::fs::read(wal).expect("the WAL");
    let size = head[8..12].try_into().map(u32::from_be_bytes).expect("four bytes");
    24 + u64::from(size)
}

fn copy(from: &Path, to: &Path) {
    // By another process: a file that is opened by hand where SQLite has it open loses its locks.
    let done = Command::new("cp").args([from, to]).status().expect("cp starts");
    assert!(done.success());
}

fn size(path: &Path) -> u64 {
    std::fs::metadata(path).expect("a file").len()
}

/// The frames from this one on are lost, or this one alone; the store is opened again and gives a fence.
fn after_the_loss(store: &Path, wal: &Path, length: u64, alone: bool) -> Fence {
    let folder = folder();
    let found = folder.path().join("kv.db");
    let found_wal = folder.path().join("kv.db-wal");
    std::fs::copy(store, &found).expect("a copy");
    std::fs::copy(wal, &found_wal).expect("a copy");
    let file = std::fs::OpenOptions::new()
        .write(true)
        .open(&found_wal)
        .expect("the WAL");
    if alone {
        use std::os::unix::fs::FileExt;
        let lost = vec![0; usize::try_from(frame(wal)).expect("a length")];
        file.write_all_at(&lost, length).expect("a write");
    } else {
        file.set_len(length).expect("a cut");
    }
    drop(file);
    let store = Store::with_clock(&found, Later("another boot")).expect("it opens");
    let lease = store.acquire("k", &AcquireOptions::default()).expect("an answer");
    // A reboot ends every lease, so the key is free.
    lease.expect("free").fence()
}

#[test]
fn lock_02_after_a_power_loss_at_any_frame_the_next_fence_is_larger_than_all_that_were_given() {
    let folder = folder();
    let path = folder.path().join("kv.db");
    let wal = folder.path().join("kv.db-wal");
    let mut largest = None;
    let options = AcquireOptions {
        ttl: Ttl::MAX,
        ..AcquireOptions::default()
    };
    for opening in 0..3 {
        // An engine of its own each time, as another process: the first stays open, so that nothing is checkpointed.
        let store = Store::with_clock(&path, fence_core::clock::SystemClock).expect("it opens");
        let synced = size(&wal);
        for n in 0..12 {
            let key = if n == 0 {
                "k".to_owned()
            } else {
                format!("{opening}-{n}")
            };
            let lease = store.acquire(&key, &options).expect("an answer");
            largest = largest.max(lease.map(|lease| lease.fence()));
        }
        let (copied, copied_wal) = (folder.path().join("copy.db"), folder.path().join("copy.db-wal"));
        copy(&path, &copied);
        copy(&wal, &copied_wal);
        let (end, frame) = (size(&copied_wal), frame(&copied_wal));
        assert_eq!((synced - HEADER) % frame, 0);
        assert_eq!((end - HEADER) % frame, 0);
        assert!(end >= synced + 11 * frame);
        for length in (synced..=end).step_by(usize::try_from(frame).expect("a length")) {
            let next = after_the_loss(&copied, &copied_wal, length, false);
            assert!(Some(next) > largest, "cut at {length}: {next} after {largest:?}");
        }
        for lost in (synced..end).step_by(usize::try_from(frame).expect("a length")) {
            let next = after_the_loss(&copied, &copied_wal, lost, true);
            assert!(
                Some(next) > largest,
                "without the frame at {lost}: {next} after {largest:?}"
            );
        }
        std::mem::forget(store);
    }
}
