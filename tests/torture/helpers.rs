//! What small processes of their own do for the harness: a process that opens kv.db by hand, or closes it, drops the locks
//! that it has on it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use fence_core::{AcquireOptions, Fence, Limit, Store, Wait};
use rusqlite::{Connection, OpenFlags};

use crate::machine::{beside, remove};
use crate::{Failure, LIMIT, worker};

/// Lifts the store's epoch past this fence, as one does after a restore (LOCK-10).
pub fn advance(store: &Path, fence: &str) -> Result<(), Failure> {
    Store::open(store)?.advance(fence.parse::<Fence>()?)?;
    Ok(())
}

/// Copies kv.db and its WAL while nobody writes, as a careful backup does.
pub fn copy(store: &Path, to: &Path) -> Result<(), Failure> {
    let db = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.busy_timeout(Duration::from_secs(3))?;
    db.execute_batch("begin immediate")?;
    fs::create_dir_all(to)?;
    let copied = to.join("kv.db");
    remove(&beside(&copied, "-wal"))?;
    let wal = beside(store, "-wal");
    if wal.exists() {
        fs::copy(wal, beside(&copied, "-wal"))?;
    }
    fs::copy(store, copied)?;
    Ok(())
}

/// Keeps kv.db locked for a while, and writes nothing.
pub fn stranger(store: &str, begin: &str, ms: u64) -> Result<(), Failure> {
    let db = Connection::open_with_flags(store, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.busy_timeout(Duration::from_secs(1))?;
    db.execute_batch(begin)?;
    std::thread::sleep(Duration::from_millis(ms));
    Ok(())
}

/// At the end every key can be had and the semaphore has all its permits; what is wrong if not.
pub fn all_is_free(store: &Path) -> Result<Option<String>, Failure> {
    let store = Store::open(store)?;
    // On a cluster a lease and its delay outlast their times by some seconds.
    let options = AcquireOptions {
        wait: Wait::new(30_000)?,
        ..AcquireOptions::default()
    };
    for key in worker::KEYS {
        if store.acquire(key, &options)?.is_none() {
            return Ok(Some(format!("lost lease: {key} cannot be had though nobody is left")));
        }
    }
    let limit = Limit::new(LIMIT.cast_signed())?;
    for n in 1..=LIMIT + 1 {
        let now = AcquireOptions::default();
        let options = if n > LIMIT { now } else { options };
        let given = store
            .acquire_permit(worker::SEMAPHORE, limit, &options, &|| false)?
            .is_some();
        if given != (n <= LIMIT) {
            return Ok(Some(format!(
                "SEM-01: permit {n} of {LIMIT} was given: {given}, though nobody is left"
            )));
        }
    }
    Ok(None)
}
