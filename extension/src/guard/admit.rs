//! `fence_admit(key, fence)`: for what has no row of its own, such as a header that a service checks, a file, an object.
//!
//! The largest fence that was seen for each key stands in the table `fence_admitted` of the caller's main database; the
//! table is made by the first call that has something to write to it. The call is one statement, in the caller's
//! transaction: a ROLLBACK takes back the admission together with the write that it stood for, and no later holder comes
//! in between the two.

use fence_core::Padded;
use rusqlite::{Connection, ErrorCode};

use super::{borrowed, failed};
use crate::answer::{Answer, SqlError};
use crate::connection::HostConnection;
use crate::value::Args;

/// The table, as sql/ has it for those who make their tables by migrations.
const TABLE: &str = include_str!("../../../sql/0006_fence_admitted.sql");

/// Keeps the larger fence; changes nothing if that is the one that stands.
const ADMIT: &str = "insert into main.fence_admitted (key, fence) values (?1, ?2) \
                     on conflict (key) do update set fence = excluded.fence where excluded.fence >= fence";

/// `fence_admit(key, fence)`: 1 if no larger fence was seen for the key, else 0.
pub(crate) fn admit(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let key = args.key(0, "key")?;
    let Some(fence) = args.fence(1, "fence")?.fence() else {
        return Ok(Answer::Int(0));
    };
    let db = borrowed(connection)?;
    let fence = fence.padded();
    let admitted = match keep(&db, &key, fence) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) && !has_table(&db)? => {
            db.execute_batch(TABLE)
                .map_err(failed("cannot create the table fence_admitted"))?;
            keep(&db, &key, fence)
        }
        outcome => outcome,
    };
    let admitted = admitted.map_err(failed("cannot write to the table fence_admitted of the main database"))?;
    Ok(Answer::Int(admitted.into()))
}

fn keep(db: &Connection, key: &str, fence: Padded) -> rusqlite::Result<bool> {
    Ok(db.prepare(ADMIT)?.execute([key, fence.as_str()])? == 1)
}

fn has_table(db: &Connection) -> Result<bool, SqlError> {
    let query = "select count(*) from main.sqlite_schema where name = 'fence_admitted' collate nocase";
    db.query_row(query, [], |row| row.get(0))
        .map_err(failed("cannot look for the table fence_admitted"))
}
