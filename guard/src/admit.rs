//! [`admit`]: for what has no row of its own, such as a header that a service checks, a file, an object.
//!
//! The largest fence that was seen for each key stands in the table `fence_admitted` of the caller's main database; the
//! table is made by the first call that has something to write to it. The call is one statement, in the caller's
//! transaction: a ROLLBACK takes back the admission together with the write that it stood for, and no later holder comes
//! in between the two.

use fence_core::{Fence, Key};
use rusqlite::{Connection, ErrorCode};

use crate::query::{Result, failed, first_number, run};

/// The table, as sql/ has it for those who make their tables by migrations.
const TABLE: &str = include_str!("../../sql/0006_fence_admitted.sql");

/// Keeps the larger fence; changes nothing if that is the one that stands.
const ADMIT: &str = "insert into main.fence_admitted (key, fence) values (?1, ?2) \
                     on conflict (key) do update set fence = excluded.fence where excluded.fence >= fence";

/// Whether no larger fence was seen for the key; then this one is kept as the largest.
///
/// ```
/// use fence_core::{Fence, Key};
/// use fence_guard::admit;
///
/// let db = rusqlite::Connection::open_in_memory()?;
/// let page = Key::new("page:1")?;
/// assert!(admit(&db, page, Fence::from(8))?);
/// assert!(!admit(&db, page, Fence::from(7))?);
/// assert!(admit(&db, page, Fence::from(8))?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// SQLite's own, with their codes: the database is busy or read-only, or its table `fence_admitted` is another one.
#[inline(never)]
pub fn admit(db: &Connection, key: Key<'_>, fence: Fence) -> Result<bool> {
    let fence = fence.padded();
    let admitted = match keep(db, key, fence.as_str()) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) && !has_table(db)? => {
            run(db, "cannot create the table fence_admitted", TABLE)?;
            keep(db, key, fence.as_str())
        }
        outcome => outcome,
    };
    let doing = "cannot write to the table fence_admitted of the main database";
    admitted.map_err(|error| failed(doing, &error))
}

fn keep(db: &Connection, key: Key<'_>, fence: &str) -> rusqlite::Result<bool> {
    Ok(db.prepare(ADMIT)?.execute([key.as_str(), fence])? == 1)
}

fn has_table(db: &Connection) -> Result<bool> {
    let query = "select count(*) from main.sqlite_schema where name = 'fence_admitted' collate nocase";
    Ok(first_number(db, "cannot look for the table fence_admitted", query, &[])? != 0)
}
