//! Which kv.db a connection uses, and `fence_open`, which chooses it.
//!
//! The first of these that says something:
//!
//! 1. the environment variable `FENCE_STORE`, a path. Where it is set, SQL may not choose another file;
//! 2. `fence_open(path)`, for the connection that calls it;
//! 3. the folder of the connection's main database: `kv.db` in it. For a main database without a file (in memory or
//!    temporary) it is a store in memory that belongs to the connection alone.
//!
//! The store opens at the first function that needs it, never at load.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use fence_core::{Epoch, Store};
use rusqlite::ffi;

use crate::answer::{Answer, SqlError};
use crate::connection::HostConnection;
use crate::value::{Args, Value};

/// The environment variable that names the store.
const VARIABLE: &str = "FENCE_STORE";
/// The file's name in the folder of the main database.
const NAME: &str = "kv.db";
/// The longest path, in bytes; longer ones no system opens.
const LONGEST: usize = 4096;
/// The path of a store in memory.
const MEMORY: &str = ":memory:";

/// Where a store is.
enum Place {
    File(PathBuf),
    Memory,
}

/// `fence_open([path])`
pub(crate) fn open(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let store = if args.len() == 0 {
        connection.store()?
    } else {
        let asked = path(args)?;
        if let Some(set) = from_environment() {
            insist(args, &set, &asked)?;
        }
        connection.set_store(open_at(&asked)?)
    };
    Ok(Answer::Text(store.path().to_string_lossy().into_owned()))
}

/// The store of a connection that has chosen none.
pub(crate) fn open_default(db: *mut ffi::sqlite3) -> Result<Store, SqlError> {
    open_at(&place(db))
}

/// The epoch in the file of a store that is not open, without opening it as a store. Nothing if there is no such file.
pub(crate) fn peek_epoch(db: *mut ffi::sqlite3) -> Result<Option<Epoch>, SqlError> {
    match place(db) {
        Place::File(path) => Ok(Store::peek_epoch(path)?),
        Place::Memory => Ok(None),
    }
}

fn open_at(place: &Place) -> Result<Store, SqlError> {
    Ok(match place {
        Place::File(path) => Store::open(path)?,
        Place::Memory => Store::in_memory()?,
    })
}

fn place(db: *mut ffi::sqlite3) -> Place {
    from_environment().unwrap_or_else(|| beside_main(db))
}

fn from_environment() -> Option<Place> {
    let path = std::env::var_os(VARIABLE).filter(|path| !path.is_empty())?;
    Some(place_of(Path::new(&path)))
}

fn beside_main(db: *mut ffi::sqlite3) -> Place {
    // SAFETY: the connection is open while a function of it runs.
    let name = unsafe { ffi::sqlite3_db_filename(db, c"main".as_ptr()) };
    if name.is_null() {
        return Place::Memory;
    }
    // SAFETY: SQLite gives a C string that stands for as long as the database is attached.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    if name.is_empty() {
        return Place::Memory;
    }
    Place::File(Path::new(OsStr::from_bytes(name)).with_file_name(NAME))
}

fn place_of(path: &Path) -> Place {
    if path == Path::new(MEMORY) {
        Place::Memory
    } else {
        Place::File(path.to_owned())
    }
}

fn path(args: &Args<'_>) -> Result<Place, SqlError> {
    match args.value(0)? {
        Value::Text(text) if (1..=LONGEST).contains(&text.len()) && !text.contains(&0) => {
            Ok(place_of(Path::new(OsStr::from_bytes(text))))
        }
        value => {
            let accepted = "give the path of a file as TEXT, or :memory:, or no argument for the store in use";
            Err(args.refused("not a path", "path", value, accepted))
        }
    }
}

/// Whether what SQL asks for is what the environment says.
fn insist(args: &Args<'_>, set: &Place, asked: &Place) -> Result<(), SqlError> {
    let same = match (set, asked) {
        (Place::Memory, Place::Memory) => true,
        (Place::File(set), Place::File(asked)) => Store::locate(set)? == Store::locate(asked)?,
        _ => false,
    };
    if same {
        return Ok(());
    }
    let accepted =
        format!("{VARIABLE} names the store of this process, and SQL may not choose another: unset it first");
    Err(args.refused("another store", "path", args.value(0)?, &accepted))
}
