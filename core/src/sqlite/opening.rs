//! Opening kv.db: by one process at a time, and so that it is known which files were opened.
//!
//! SQLite opens kv.db when it is told to, and its WAL and index when it first reads, by their names. Between any two
//! steps somebody may remove kv.db or put another in its place, even for as long as this process stands still, and nobody
//! is told whose files SQLite got hold of. But all that LOCK-08 promises stands on that: which files belong together is
//! noted beside the store, and every answer compares what stands there with what was opened. So an opening counts only if
//!
//! * kv.db, its WAL and its index stood there *before* SQLite read, and
//! * the same three stand there after it has read, and kv.db is the one in hand.
//!
//! Then these are the three that SQLite has open, and nothing else is ever noted: what is noted stays true, whatever
//! becomes of the files. Where one of them is missing, in a new store or after files were put right, SQLite makes it and
//! all are opened once more.
//!
//! The epoch is committed with `synchronous=FULL`, see `connection.rs`.

use std::cell::Cell;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use rusqlite::config::DbConfig;
use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, OpenFlags, ffi};

use super::connection::{Conn, Disk};
use super::files::Names;
use super::schema::{self, Found};
use super::sidecar::{Note, Sidecar};
use super::{busy, epoch};
use crate::clock::Clock;
use crate::error::{Error, Result};
use crate::fault;
use crate::fence::{Epoch, Fence};

/// How often an opening begins anew because files were missing or replaced.
const OPENINGS: usize = 8;
/// How large a page is, in bytes, in a store that is made. A grant writes one page and a release one, and a small page is
/// written, summed and copied sooner.
const PAGE_SIZE: i64 = 1_024;

/// Opens the file, makes it a store if it is empty, and commits a new epoch past `seen`. With `distrust` SQLite has
/// found the files broken.
pub(super) fn open(
    path: &Path,
    clock: &Arc<dyn Clock>,
    seen: Option<Fence>,
    mut distrust: bool,
) -> Result<(Conn, Epoch)> {
    for _ in 0..OPENINGS {
        if let Some(opened) = try_open(path, clock, seen, &mut distrust)? {
            return Ok(opened);
        }
    }
    Err(Error::Replaced { path: path.to_owned() })
}

/// Opens a store in memory, private to whoever opens it.
pub(super) fn open_in_memory(clock: &Arc<dyn Clock>, seen: Option<Fence>) -> Result<(Conn, Epoch)> {
    let path = Path::new(super::MEMORY);
    let failed = |source| Error::sqlite(path, "opening it", source);
    let db = Connection::open_in_memory_with_flags(flags()).map_err(failed)?;
    prepare(&db, clock).map_err(failed)?;
    let epoch = epoch::open(&db, path, clock, seen, &Found::Nothing, false)?;
    Ok((Conn::new(db, None), epoch))
}

/// Nothing if it does not count, see the head of this file: then it is to begin anew.
fn try_open(
    path: &Path,
    clock: &Arc<dyn Clock>,
    seen: Option<Fence>,
    distrust: &mut bool,
) -> Result<Option<(Conn, Epoch)>> {
    // This opens or makes the file, and neither reads it nor touches its WAL.
    let db = connect(path, clock)?;
    let sidecar = Sidecar::open(path)?;
    let opening = sidecar.opening()?;
    fault::point("opening-begins");
    if has_moved(&db) || sidecar.is_replaced() {
        return Ok(None);
    }
    fault::point("opening-looked");
    let Some(store) = one_file(path)? else { return Ok(None) };
    let names = Names::of(path);
    let noted = opening.noted();
    if !names.put_right(&opening, &store, *distrust)? {
        return Ok(None);
    }
    *distrust = false;
    let before = names.look();
    let wal_before = names.wal();
    fault::point("opening-put-right");

    let found = schema::look(&db, path).inspect_err(|_| opening.discard_if_unused())?;
    use_wal(&db, path)?;
    fault::point("opening-read");
    let Some((identity, changed)) = names.look() else {
        return Ok(None);
    };
    if has_moved(&db) {
        return Ok(None);
    }
    if before.is_none_or(|(before, _)| before != identity) {
        // A WAL in which nothing is written may be anybody's.
        if noted.is_some() && (wal_before == Some(identity.wal) || names.is_wal_empty()) {
            let changed = Some(changed);
            opening.note(&Note { identity, changed })?;
        }
        return Ok(None);
    }

    let epoch = epoch::open(&db, path, clock, seen, &found, noted.is_none())?;

    let note = Note {
        identity,
        changed: Some(changed),
    };
    opening.note(&note)?;
    fault::point("opening-noted");
    drop(opening);
    let disk = Disk {
        names,
        identity,
        changed: Cell::new(note.changed),
        sidecar,
    };
    Ok(Some((Conn::new(db, Some(disk)), epoch)))
}

/// A connection to the file, which is made if need be and not read yet.
fn connect(path: &Path, clock: &Arc<dyn Clock>) -> Result<Connection> {
    let failed = |source| Error::sqlite(path, "opening it", source);
    let db = Connection::open_with_flags(path, flags()).map_err(failed)?;
    if db.is_readonly("main").map_err(failed)? {
        let code = ffi::Error::new(ffi::SQLITE_READONLY);
        return Err(failed(rusqlite::Error::SqliteFailure(code, None)));
    }
    prepare(&db, clock).map_err(failed)?;
    Ok(db)
}

pub(super) fn flags() -> OpenFlags {
    // Threads are kept apart by the engine's mutex; a host's shared cache is not ours to share.
    OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_CREATE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_PRIVATE_CACHE
}

/// Sets up a connection; reads and writes nothing.
fn prepare(db: &Connection, clock: &Arc<dyn Clock>) -> rusqlite::Result<()> {
    db.busy_handler(Some(busy::handler))?;
    db.set_prepared_statement_cache_capacity(64);
    // See `Conn::drop`.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    // kv.db has no triggers or views of ours: what somebody put there is not run.
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_VIEW, false)?;
    db.pragma_update(None, "page_size", PAGE_SIZE)?;
    db.execute_batch("pragma trusted_schema = off; pragma temp_store = memory; pragma fullfsync = on; pragma checkpoint_fullfsync = on")?;
    fault::watch(db);
    let clock = Arc::clone(clock);
    // The lease clock in SQL: it is read when the row is, with the write lock in hand, not when the call began.
    db.create_scalar_function("now_ms", 0, FunctionFlags::SQLITE_UTF8, move |_| Ok(clock.now_ms()))
}

/// Sets the journal to WAL, which stays in the file. A new file needs its write lock for that, and SQLite does not wait for
/// it here.
fn use_wal(db: &Connection, path: &Path) -> Result<()> {
    busy::until(Instant::now(), &|| false, || try_use_wal(db, path))
}

fn try_use_wal(db: &Connection, path: &Path) -> Result<()> {
    let failed = |source| Error::sqlite(path, "setting its journal to WAL", source);
    let mode: String = db
        .query_row("pragma journal_mode = wal", [], |row| row.get(0))
        .map_err(failed)?;
    if !mode.eq_ignore_ascii_case("wal") {
        let code = ffi::Error::new(ffi::SQLITE_CANTOPEN);
        let message = format!("this file system or this SQLite does not do WAL (the journal is {mode})");
        return Err(failed(rusqlite::Error::SqliteFailure(code, Some(message))));
    }
    // It opens the WAL and its index when it reads.
    db.execute_batch("pragma wal_autocheckpoint = 0; select exists (select 1 from sqlite_master)")
        .map_err(failed)
}

/// The file at this path, which has no other name; nothing if it is gone again.
fn one_file(path: &Path) -> Result<Option<Metadata>> {
    let Ok(found) = std::fs::metadata(path) else {
        return Ok(None);
    };
    let links = found.nlink();
    if links > 1 {
        return Err(Error::HardLinked {
            path: path.to_owned(),
            links,
        });
    }
    Ok(Some(found))
}

/// Whether the file that is open is no longer the one at its path. SQLite compares inodes; nothing is opened.
pub(super) fn has_moved(db: &Connection) -> bool {
    let mut moved: std::ffi::c_int = 0;
    // SAFETY: the handle is open, the name is a C string, and the answer is written to an int that lives long enough.
    let code = unsafe {
        ffi::sqlite3_file_control(
            db.handle(),
            c"main".as_ptr(),
            ffi::SQLITE_FCNTL_HAS_MOVED,
            (&raw mut moved).cast(),
        )
    };
    code == ffi::SQLITE_OK && moved != 0
}
