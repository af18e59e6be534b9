//! What stands in kv.db, and how a file is told from another program's.
//!
//! Times are milliseconds of the lease clock, under the boot that the row of `store` names. Nothing here needs the
//! extension: a plain sqlite3 can read it all. Writing to it by hand is at one's own risk; absurd times are mended at
//! first sight (see `term.rs`).
//!
//! The row of `leases` with the empty key, which nobody can take, is the store's own: its epoch is that of the fences that
//! are given now, its count that of the fence that was given last. It stands there, and not in a table of its own, so that
//! one statement writes it together with the lease, and in a store of usual size on the same page.
//!
//! The table that every call writes to is made last. The WAL's index is a hash table in which the frames of one page stand
//! in a row, from a place that grows with the page's number: were it a low number, whoever looks for any page behind it
//! would walk along the whole row, which is thousands of frames long.

use std::path::Path;

use rusqlite::Connection;

use crate::error::{Error, Result};

/// `fnce` in ASCII, kept in the database's header as its application id.
const APPLICATION_ID: i64 = 0x666e_6365;
/// The format that this version reads and writes, kept in the header as the user version.
const FORMAT: i64 = 1;

/// The tables of format 1.
const TABLES: &str = "
create table store (                    -- one row
    id      integer primary key check (id = 1),
    ticket  integer not null,           -- the place in line that was given last
    boot    text not null,              -- the boot under whose clock the times below count
    reaped  text not null               -- the key up to which expired rows were looked for
);
create table waiters (                  -- who stands in line for a key
    key       text not null,
    semaphore integer not null,         -- 1 where permits are waited for
    ticket    integer not null,         -- the lowest is served first
    beat      integer not null,         -- when the waiter last said that it is there
    process   integer not null,         -- its process's token
    primary key (key, semaphore, ticket)
) without rowid;
create table leases (                   -- a key's lease, and each of a semaphore's permits; the first row is the store's
    key     text not null,
    permit  blob not null,              -- x'' of a lease; the id of a permit
    epoch   integer not null,           -- the fence of a lease; 0 and 0 of a permit
    count   integer not null,
    expires integer not null,
    ttl     integer not null,
    delay   integer not null,           -- for how long the key stays closed if it is not released
    pid     integer not null,           -- who asked for it; for people
    process integer not null,           -- the token of the process that it is bound to; 0 of an unbound one
    several integer not null,           -- how many keys are held under this fence; 0 of a lease that was asked for one
    primary key (key, permit)
) without rowid;
create index leases_of_several on leases (epoch, count) where several > 0;
";

/// What a file holds.
pub(super) enum Found {
    /// Nothing yet.
    Nothing,
    /// A store of our format.
    Store,
}

/// Looks at a file before anything is written to it.
pub(super) fn look(db: &Connection, path: &Path) -> Result<Found> {
    let found = || -> rusqlite::Result<(i64, i64, bool)> {
        db.query_row(
            "select (select application_id from pragma_application_id), (select user_version from pragma_user_version),
                    exists (select 1 from sqlite_master)",
            [],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
    };
    match found().map_err(|source| Error::sqlite(path, "reading its format", source))? {
        (0, 0, false) => Ok(Found::Nothing),
        (APPLICATION_ID, FORMAT, true) => Ok(Found::Store),
        (APPLICATION_ID, found, true) if found > FORMAT => Err(Error::NewerFormat {
            path: path.to_owned(),
            found,
            known: FORMAT,
        }),
        _ => Err(Error::NotAStore { path: path.to_owned() }),
    }
}

/// Makes the tables, within the caller's transaction.
pub(super) fn create(db: &Connection, boot: &str) -> rusqlite::Result<()> {
    db.execute_batch(TABLES)?;
    db.execute("insert into store values (1, 0, ?1, '')", [boot])?;
    db.execute("insert into leases values ('', x'', 0, 0, 0, 0, 0, 0, 0, 0)", [])?;
    db.pragma_update(None, "application_id", APPLICATION_ID)?;
    db.pragma_update(None, "user_version", FORMAT)
}
