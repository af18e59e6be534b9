//! One connection to kv.db: how it is seen to be the wrong one, how its WAL is kept short. How it is opened is told in
//! `opening.rs`.
//!
//! # The epoch is synced, a grant is not
//!
//! Opening commits a new epoch with `synchronous=FULL`; grants commit with `NORMAL`, which in WAL mode waits for no disk.
//! A power loss may so take grants away, and with them their counts. But every later grant comes from a later opening,
//! and its epoch is larger than the one on disk: no fence is given twice.
//!
//! # kv.db may be replaced while it is open
//!
//! A file that was deleted, moved or replaced goes on existing for whoever has it open. So no answer is handed out before
//! kv.db and its WAL were seen to be still the ones that were opened ([`Conn::is_replaced`]): after the commit, so that
//! what was granted in a dead file reaches nobody. For a file that is open nobody else gets its inode's number, so one
//! look at the names tells.
//!
//! # Checkpoints
//!
//! SQLite before 3.51.3 can, rarely, lose committed transactions when one process writes or checkpoints while another
//! checkpoints (the WAL-reset bug, <https://www.sqlite.org/wal.html>). So `wal_autocheckpoint` is off, and a checkpoint
//! runs only while this process holds the write lock through this connection and writes nothing itself
//! ([`Conn::checkpoint`]): then no grant is under way in any process, nor is another such checkpoint, and no acknowledged
//! grant can be lost. The checkpoint that SQLite makes when the last connection closes holds an exclusive lock on the
//! file, so it is alone as well.

use std::cell::Cell;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi};

use super::files::Names;
use super::opening::{flags, has_moved};
use super::schema::{self, Found};
use super::sidecar::{Identity, Note, Opening, Sidecar};
use super::usual::Db;
use super::{busy, fork};
use crate::error::{Error, Result};
use crate::fault;
use crate::fence::Epoch;

/// How old an answer may be that gives nothing, in milliseconds, before the files are looked at again.
const LOOK_MS: i64 = 10;
/// After how many pages in the WAL a checkpoint is made: 10 MB. A checkpoint waits for the disk, and this makes it rarer
/// than one in a thousand calls.
const CHECKPOINT_PAGES: i32 = 10_000;

/// An open connection to kv.db.
pub(super) struct Conn {
    /// Taken when it is closed, or left behind.
    db: Option<Db>,
    /// The process that opened it. No other one may use or close it (LOCK-09).
    process: u32,
    /// What stands on disk; nothing for a store in memory.
    disk: Option<Disk>,
    /// How many pages the WAL held after the last commit. SQLite writes it, through a pointer.
    wal_pages: Arc<AtomicI32>,
    /// At how many pages a checkpoint is tried next.
    checkpoint_at: i32,
    /// When the files were looked at last, by the lease clock.
    looked_at: Cell<i64>,
}

/// The files of an open store.
pub(super) struct Disk {
    pub(super) names: Names,
    /// The files that are open, which stood behind these names then.
    pub(super) identity: Identity,
    /// When kv.db was last changed by one of us, as far as is known here.
    pub(super) changed: Cell<Option<i64>>,
    pub(super) sidecar: Arc<Sidecar>,
}

impl Disk {
    /// Whether these files stand there no longer as they were opened, or somebody else has written to kv.db.
    fn is_replaced(&self) -> bool {
        match self.names.look() {
            Some((identity, changed)) => identity != self.identity || !self.is_as_we_left_it(changed),
            None => true,
        }
    }

    fn is_as_we_left_it(&self, changed: i64) -> bool {
        let now = Some(changed);
        if now == self.changed.get() {
            return true;
        }
        // Another process has made a checkpoint, or is about to.
        match self.sidecar.noted() {
            Some(note) if note.changed.is_none() => true,
            Some(note) if note.changed == now => {
                self.changed.set(now);
                true
            }
            _ => false,
        }
    }

    /// Notes that a checkpoint begins.
    fn note_beginning(&self, opening: &Opening<'_>) -> Result<()> {
        opening.note(&Note {
            identity: self.identity,
            changed: None,
        })
    }

    /// Notes what kv.db is after a checkpoint.
    fn note_end(&self, opening: &Opening<'_>) -> Result<()> {
        let changed = self.names.changed();
        self.changed.set(changed);
        opening.note(&Note {
            identity: self.identity,
            changed,
        })
    }
}

impl Conn {
    /// What was opened: with nothing on disk, a store in memory.
    pub(super) fn new(db: Connection, disk: Option<Disk>) -> Self {
        let wal_pages = Arc::new(AtomicI32::new(0));
        if disk.is_some() {
            // SAFETY: the handle is open; the counter lives until after the connection is closed, see `drop`.
            unsafe {
                ffi::sqlite3_wal_hook(
                    db.handle(),
                    Some(note_wal_pages),
                    Arc::as_ptr(&wal_pages).cast_mut().cast(),
                );
            }
        }
        Self {
            db: Some(Db::new(db)),
            process: std::process::id(),
            disk,
            wal_pages,
            checkpoint_at: fault::checkpoint_pages(CHECKPOINT_PAGES),
            looked_at: Cell::new(i64::MIN),
        }
    }

    /// The connection itself.
    pub(super) fn db(&self) -> Result<&Db> {
        // It is there until `close` or `drop` takes it, and both end the value.
        self.db.as_ref().ok_or_else(|| Error::Forked {
            path: self.path().to_owned(),
        })
    }

    /// Where the file is, as messages name it.
    pub(super) fn path(&self) -> &Path {
        self.disk
            .as_ref()
            .map_or(Path::new(super::MEMORY), |disk| &disk.names.store)
    }

    /// The file beside the store; none for a store in memory.
    pub(super) fn sidecar(&self) -> Option<&Arc<Sidecar>> {
        self.disk.as_ref().map(|disk| &disk.sidecar)
    }

    /// The process that opened it: this one, see [`Conn::is_ours`].
    pub(super) fn process(&self) -> u32 {
        self.process
    }

    /// Whether this process opened it.
    pub(super) fn is_ours(&self) -> bool {
        self.process == std::process::id()
    }

    /// Whether the path leads to other files by now than to those that are open.
    pub(super) fn is_replaced(&self) -> bool {
        self.disk.as_ref().is_some_and(Disk::is_replaced)
    }

    /// [`Conn::is_replaced`], not asked more often than every [`LOOK_MS`] of the lease clock. For answers that give
    /// nothing: who asks again and again for a key that is held would pay more for this than for the question.
    pub(super) fn was_replaced(&self, now: i64) -> bool {
        if (0..LOOK_MS).contains(&now.saturating_sub(self.looked_at.get())) {
            return false;
        }
        self.looked_at.set(now);
        self.is_replaced() || self.sidecar().is_some_and(|sidecar| sidecar.is_replaced())
    }

    /// Leaves no transaction open.
    pub(super) fn settle(&self) {
        if let Some(db) = &self.db
            && !db.is_autocommit()
        {
            // SQLite refuses it only where it has rolled back by itself.
            let _ = db.execute_batch("rollback");
        }
    }

    /// Brings the WAL back into the file if it has grown long, see the head of this file. What does not work now is
    /// tried again later: a checkpoint only saves room.
    pub(super) fn checkpoint(&mut self) {
        let pages = self.wal_pages.load(Ordering::Relaxed);
        let step = fault::checkpoint_pages(CHECKPOINT_PAGES);
        if pages < self.checkpoint_at {
            if pages < step {
                self.checkpoint_at = step;
            }
            return;
        }
        self.checkpoint_at = pages.saturating_add(step);
        let (Some(db), Some(disk)) = (&self.db, &self.disk) else {
            return;
        };
        // While nobody opens the store the files stay those that we look at: see `files.rs`.
        let Some(opening) = disk.sidecar.try_opening() else {
            return;
        };
        if self.is_replaced() {
            return;
        }
        let run = || -> rusqlite::Result<()> {
            busy::never_mind(|| db.execute_batch("begin immediate"))?;
            let other = Connection::open_with_flags(&disk.names.store, flags() & !OpenFlags::SQLITE_OPEN_CREATE)?;
            if !has_moved(&other) && !has_moved(db) && disk.note_beginning(&opening).is_ok() {
                fault::point("checkpoint-before");
                other.query_row("pragma wal_checkpoint(passive)", [], |_| Ok(()))?;
                fault::point("checkpoint-after");
                // What is not noted is taken for somebody else's writing: everybody opens anew.
                let _ = disk.note_end(&opening);
            }
            // Not the last connection: closing it makes no checkpoint.
            drop(other);
            db.execute_batch("commit")
        };
        if run().is_err() {
            self.settle();
        }
    }

    /// Closes it without a checkpoint, as before a fork, or when what this connection knows is not to be laid over what
    /// stands there now.
    pub(super) fn close_quietly(mut self) {
        drop(self.db.take());
    }

    /// Lets SQLite make the checkpoint of the last connection when this one closes, and remove the WAL.
    fn may_checkpoint(&self) {
        if let Some(db) = &self.db {
            // Without it the WAL stays for the next one.
            let _ = db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false);
        }
    }
}

impl Drop for Conn {
    fn drop(&mut self) {
        let Some(db) = &self.db else { return };
        if !self.is_ours() {
            // LOCK-09: a child neither uses nor closes its parent's connection; it leaves it behind.
            std::mem::forget(self.db.take());
            std::mem::forget(Arc::clone(&self.wal_pages));
            return;
        }
        let _still = fork::hold_off();
        let sidecar = self.disk.as_ref().map(|disk| Arc::clone(&disk.sidecar));
        // While nobody opens the store its files stay those that we look at.
        let opening = sidecar.as_ref().and_then(|sidecar| sidecar.try_opening());
        if db.is_autocommit() && opening.is_some() && !self.is_replaced() {
            self.may_checkpoint();
        }
        drop(self.db.take());
    }
}

/// Reads the epoch of a file that this process has not open, and closes it again.
pub(super) fn peek_epoch(path: &Path) -> Result<Epoch> {
    let failed = |source| Error::sqlite(path, "reading its epoch", source);
    let _still = fork::hold_off();
    let flags = flags() & !OpenFlags::SQLITE_OPEN_CREATE & !OpenFlags::SQLITE_OPEN_READ_WRITE;
    let db = Connection::open_with_flags(path, flags | OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(failed)?;
    db.busy_handler(Some(busy::handler)).map_err(failed)?;
    match schema::look(&db, path)? {
        Found::Nothing => Err(Error::NotAStore { path: path.to_owned() }),
        Found::Store => {
            let epoch: i64 = db
                .query_row("select epoch from leases where key = ''", [], |row| row.get(0))
                .map_err(failed)?;
            Ok(Epoch::new(epoch.max(0).unsigned_abs()))
        }
    }
}

/// SQLite tells after each commit how many pages the WAL holds.
unsafe extern "C" fn note_wal_pages(
    pages: *mut std::ffi::c_void,
    _db: *mut ffi::sqlite3,
    _name: *const std::ffi::c_char,
    count: std::ffi::c_int,
) -> std::ffi::c_int {
    // SAFETY: the pointer is that of the connection's own counter, which outlives the connection.
    let pages = unsafe { &*pages.cast::<AtomicI32>() };
    pages.store(count, Ordering::Relaxed);
    ffi::SQLITE_OK
}
