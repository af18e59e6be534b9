//! Removing what is over, a little at a time.
//!
//! Grants look at the next rows in the order of their keys and delete those that are over: four rows for each that a grant
//! can add, so a store does not grow for long beyond what is live, and no call ever pays for many. Where it stopped is kept in the store's row: also a shell that takes one lease and ends does its share. Deleting a row never lowers a fence, for the count is not in it.

use rusqlite::params;

use super::Session;
use super::line::STALL_MS;
use super::term::{self, Standing, Term};
use crate::key::Key;

/// How many rows are looked at for each key that a grant takes.
const ROWS: u64 = 4;
/// A grant of one key saves up: it looks once in so many times, at so many times as many rows.
const EVERY: u64 = 32;

/// Removes some rows when it is time, after a grant of so many keys. `turn` is a number that is another one each time.
pub(super) fn sometimes(session: &Session<'_>, turn: u64, keys: usize) -> rusqlite::Result<()> {
    let rows = match u64::try_from(keys).unwrap_or(u64::MAX) {
        1 if is_due(turn) => ROWS * EVERY,
        1 => return Ok(()),
        keys => ROWS.saturating_mul(keys),
    };
    let reaped = some(session, rows)?;
    session
        .db
        .prepare_cached("update store set reaped = ?1 where id = 1 and reaped <> ?1")?
        .execute(params![reaped])?;
    Ok(())
}

/// Whether it is time after a grant of one key.
pub(super) fn is_due(turn: u64) -> bool {
    turn.is_multiple_of(EVERY)
}

/// Looks at some rows; gives the key of the last one, or '' after the end.
fn some(session: &Session<'_>, at_most: u64) -> rusqlite::Result<String> {
    let now = session.clock.now_ms();
    // Without a LIMIT: SQLite plans a query anew whenever the parameter of its LIMIT is bound.
    let mut select = session.db.prepare_cached(
        "select key, permit, expires, ttl, delay, process from leases
          where key > (select reaped from store where id = 1) order by key, permit",
    )?;
    let mut rows = select.query([])?;
    let mut over: Vec<(String, Vec<u8>)> = Vec::new();
    let mut last = String::new();
    let mut looked = 0;
    while looked < at_most
        && let Some(row) = rows.next()?
    {
        let term = Term::read(row, 2)?;
        last = row.get(0)?;
        looked += 1;
        if term.at(now, |token| session.is_alive(token)).0 == Standing::Over {
            over.push((last.clone(), row.get(1)?));
        }
    }
    drop(rows);
    let mut delete = session
        .db
        .prepare_cached("delete from leases where key = ?1 and permit = ?2")?;
    for (key, permit) in over {
        delete.execute(params![key, permit])?;
    }
    if looked < at_most {
        // Once in each round, also those who went away from a line without a word.
        session
            .db
            .prepare_cached("delete from waiters where beat < ?1")?
            .execute(params![now.saturating_sub(10 * STALL_MS)])?;
        last.clear();
    }
    Ok(last)
}

/// Removes the permits of a semaphore that are over.
pub(super) fn permits(session: &Session<'_>, key: Key<'_>, now: i64) -> rusqlite::Result<()> {
    session
        .db
        .prepare_cached("delete from leases where key = ?1 and permit > x'' and expires <= ?2")?
        .execute(params![key.as_str(), now])?;
    let processes: Vec<i64> = session
        .db
        .prepare_cached("select distinct process from leases where key = ?1 and permit > x'' and process <> 0")?
        .query_map(params![key.as_str()], |row| term::number(row, 0))?
        .collect::<rusqlite::Result<_>>()?;
    for process in processes {
        if !session.is_alive(process) {
            session
                .db
                .prepare_cached("delete from leases where key = ?1 and permit > x'' and process = ?2")?
                .execute(params![key.as_str(), process])?;
        }
    }
    Ok(())
}
