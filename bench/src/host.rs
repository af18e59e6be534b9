//! The hosts: this program's own SQLite, Debian's Python, the sqlite3 shell.

use std::path::Path;

use fence_tests::{Python, Shell};
use rusqlite::{Connection, LoadExtensionGuard};
use tempfile::TempDir;

use crate::Result;

/// A folder for the files of one row, on the disk that `TMPDIR` chooses.
pub fn folder() -> TempDir {
    fence_tests::folder()
}

/// A connection of this program with the extension loaded. Its store is `kv.db` in the same folder.
pub fn connect(database: &Path) -> Result<Connection> {
    let db = Connection::open(database)?;
    db.set_prepared_statement_cache_capacity(64);
    // SAFETY: it is our own library, and nothing else may load one while the guard lives.
    unsafe {
        let _guard = LoadExtensionGuard::new(&db)?;
        db.load_extension(fence_tests::library(), None::<&str>)?;
    }
    Ok(db)
}

/// The text that this statement gives, without any file.
pub fn sqlite(sql: &str) -> Result<String> {
    Ok(Connection::open_in_memory()?.query_row(sql, [], |row| row.get(0))?)
}

/// The SQLite of the shell.
pub fn shell_version() -> String {
    Shell::plain().run("select sqlite_version();").ok()
}

/// The SQLite of Python.
pub fn python_version() -> String {
    Python::new("print(sqlite3.sqlite_version)").run().ok()
}
