//! The epoch: how it is lifted, at each opening and by `advance`.

use std::path::Path;
use std::sync::Arc;

use rusqlite::{Connection, params};

use super::schema::{self, Found};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::fault;
use crate::fence::{Count, Epoch, Fence};

/// The largest epoch that a store can keep: SQLite's integers have a sign.
const LARGEST: i64 = i64::MAX;

/// The state of a store before an epoch was lifted.
struct Before {
    epoch: i64,
    boot: String,
}

/// Commits the epoch of an opening: larger than the one before it and than all that this process has seen. Makes the
/// tables in an empty file and ends the leases of another boot, in the same transaction. With `unbind` nobody can tell
/// any more which processes live: bound leases then last for their ttl.
pub(super) fn open(
    db: &Connection,
    path: &Path,
    clock: &Arc<dyn Clock>,
    seen: Option<Fence>,
    found: &Found,
    unbind: bool,
) -> Result<Epoch> {
    let boot = clock.boot()?;
    synced(db, path, || {
        if matches!(found, Found::Nothing) && is_empty(db)? {
            schema::create(db, &boot)?;
        }
        let before = read(db)?;
        if before.boot != boot {
            end_all(db, clock.now_ms())?;
            db.execute("update store set boot = ?1", [&boot])?;
        }
        if unbind {
            db.execute("update leases set process = 0 where process <> 0", [])?;
        }
        lift(db, clock, before.epoch, seen)
    })
}

/// Lifts the epoch past that of `floor`, if it is not past it already. Gives the epoch that stands then.
pub(super) fn advance(db: &Connection, path: &Path, clock: &Arc<dyn Clock>, floor: Fence) -> Result<Epoch> {
    if floor.epoch().get() >= LARGEST.unsigned_abs() {
        return Err(Error::EpochExhausted { fence: floor });
    }
    synced(db, path, || {
        let before = read(db)?;
        match u64::try_from(before.epoch) {
            Ok(epoch) if epoch > floor.epoch().get() => Ok(Some(Epoch::new(epoch))),
            _ => lift(db, clock, before.epoch, Some(floor)),
        }
    })
}

/// Writes an epoch larger than `before` and than that of `floor`; nothing if there is none.
fn lift(db: &Connection, clock: &Arc<dyn Clock>, before: i64, floor: Option<Fence>) -> rusqlite::Result<Option<Epoch>> {
    let floor = floor.map_or(0, |fence| i64::try_from(fence.epoch().get()).unwrap_or(LARGEST));
    let Some(least) = before.max(floor).checked_add(1) else {
        return Ok(None);
    };
    let epoch = clock.wall_ms().clamp(least.max(1), LARGEST);
    db.execute("update leases set epoch = ?1, count = 0 where key = ''", [epoch])?;
    Ok(Some(Epoch::new(epoch.unsigned_abs())))
}

/// Runs the work in a transaction whose commit is on the disk before this returns.
fn synced(db: &Connection, path: &Path, work: impl FnOnce() -> rusqlite::Result<Option<Epoch>>) -> Result<Epoch> {
    let run = || {
        db.execute_batch("pragma synchronous = full; begin immediate")?;
        let lifted = work()?;
        fault::point("epoch-before-commit");
        db.execute_batch("commit")?;
        fault::point("epoch-after-commit");
        Ok(lifted)
    };
    let lifted = run();
    if lifted.is_err() && !db.is_autocommit() {
        // SQLite refuses it only where it has rolled back by itself.
        let _ = db.execute_batch("rollback");
    }
    let relaxed = db.execute_batch("pragma synchronous = normal");
    lifted
        .and_then(|epoch| relaxed.map(|()| epoch))
        .map_err(|source| Error::sqlite(path, "committing a new epoch", source))?
        .ok_or(Error::EpochExhausted {
            fence: Fence::new(Epoch::new(LARGEST.unsigned_abs()), Count::new(0)),
        })
}

fn is_empty(db: &Connection) -> rusqlite::Result<bool> {
    // Another process may have made the tables since this one looked.
    db.query_row("select not exists (select 1 from sqlite_master)", [], |row| row.get(0))
}

fn read(db: &Connection) -> rusqlite::Result<Before> {
    db.query_row(
        "select leases.epoch, store.boot from leases, store where leases.key = ''",
        [],
        |row| {
            Ok(Before {
                epoch: row.get(0)?,
                boot: row.get(1)?,
            })
        },
    )
}

/// A reboot ends every lease. What has a delay stays closed for all of it, counted from now: how long the machine was
/// off, nobody knows.
fn end_all(db: &Connection, now: i64) -> rusqlite::Result<()> {
    db.execute("delete from waiters", [])?;
    db.execute("delete from leases where key > '' and delay <= 0", [])?;
    db.execute(
        "update leases set expires = ?1, process = 0 where key > ''",
        params![now],
    )?;
    Ok(())
}
