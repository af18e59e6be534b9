//! The line before a key: who is served next (LOCK-07).
//!
//! Whoever waits takes a *ticket* and stands in the line of each key that it asks for, leases and permits apart. It is
//! served when nobody with a lower ticket stands in any of these lines and all keys are free. A newcomer who would not
//! wait is sent away while anybody waits, so nobody jumps the queue. Tickets grow over the whole store, so that of all
//! who wait the one with the lowest ticket is first in every line that it stands in: several keys cannot deadlock.
//!
//! The dead hold nobody up. A waiter whose process has died counts for nothing at once (its byte of the sidecar is
//! unlocked). One that lives and does not run, stopped or swapped out, stops to say that it is there: after
//! [`STALL_MS`] it counts for nothing either, loses its place to whoever is served instead, and if it wakes takes a new
//! ticket.

use std::sync::Arc;

use rusqlite::params;

use super::sidecar::Sidecar;
use super::{Done, Engine, Session};
use crate::engine::Request;
use crate::error::Result;
use crate::key::Key;

/// For how long a waiter that says nothing keeps its place, in milliseconds. The stated bound of LOCK-07.
pub(crate) const STALL_MS: i64 = 2_000;
/// How often a waiter says that it is there, in milliseconds.
const BEAT_MS: i64 = 500;
/// How many of those ahead are counted. It only decides how often to look.
const COUNTED: usize = 16;

/// Where a waiter stands.
#[derive(Debug, Default)]
pub(crate) struct Place {
    ticket: Option<Ticket>,
    /// Keeps this process's byte locked, also while the connection is closed and opened anew, as around a fork.
    presence: Option<Arc<Sidecar>>,
}

#[derive(Clone, Copy, Debug)]
struct Ticket {
    number: i64,
    /// When it last said that it is there.
    beat: i64,
    process: i64,
}

impl Place {
    /// Whether a ticket was taken.
    pub(super) fn stands(&self) -> bool {
        self.ticket.is_some()
    }
}

impl Engine {
    /// Takes a place in line, or says that we are still there. Whether the place is a new one.
    pub(crate) fn stand(&self, request: &Request<'_>, place: &mut Place) -> Result<bool> {
        let now = self.clock.now_ms();
        if let Some(ticket) = place.ticket
            && now - ticket.beat < BEAT_MS
        {
            return Ok(false);
        }
        self.call(|session, _| {
            let failed = session.failed("waiting in line");
            let Some(process) = session.token()? else {
                return Ok(Done::Again);
            };
            session.run("begin immediate").map_err(&failed)?;
            let now = session.clock.now_ms();
            // A ticket under another token is one of the dead: the file that the byte was locked in was replaced.
            let standing = place.ticket.filter(|ticket| ticket.process == process);
            let taken = match standing {
                Some(ticket) => beat(session, request, ticket, now).map(|stands| stands.then_some(ticket.number)),
                None => enlist(session, request, now, process).map(Some),
            };
            let is_new = standing.is_none();
            let Some(number) = taken.map_err(&failed)? else {
                // Overtaken meanwhile: the next attempt is a newcomer's.
                place.ticket = None;
                return Ok(Done::Written(true));
            };
            session.run("commit").map_err(&failed)?;
            place.presence = session.sidecar.cloned();
            place.ticket = Some(Ticket {
                number,
                beat: now,
                process,
            });
            Ok(Done::Written(is_new))
        })
    }

    /// Leaves the line. Who cannot, because the store is not to be had, is forgotten after [`STALL_MS`].
    pub(crate) fn leave(&self, request: &Request<'_>, place: &mut Place) -> Result<()> {
        let Some(ticket) = place.ticket.take() else {
            return Ok(());
        };
        self.call(|session, _| {
            let failed = session.failed("leaving the line");
            session.run("begin immediate").map_err(&failed)?;
            for key in request.keys {
                session
                    .db
                    .prepare_cached(
                        "delete from waiters where key = ?1 and semaphore = ?2 and ticket = ?3 and process = ?4",
                    )
                    .and_then(|mut delete| {
                        delete.execute(params![
                            key.as_str(),
                            request.limit.is_some(),
                            ticket.number,
                            ticket.process
                        ])
                    })
                    .map_err(&failed)?;
            }
            session.run("commit").map_err(&failed)?;
            Ok(Done::Written(()))
        })
    }
}

/// Takes the next ticket and stands with it in the line of each key.
fn enlist(session: &Session<'_>, request: &Request<'_>, now: i64, process: i64) -> rusqlite::Result<i64> {
    session.run("update store set ticket = ticket + 1 where id = 1")?;
    let ticket = session
        .db
        .prepare_cached("select ticket from store where id = 1")?
        .query_row([], |row| row.get(0))?;
    for key in request.keys {
        session
            .db
            .prepare_cached("insert into waiters (key, semaphore, ticket, beat, process) values (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![key.as_str(), request.limit.is_some(), ticket, now, process])?;
    }
    Ok(ticket)
}

/// Says that we are there; whether we still stand in all lines.
fn beat(session: &Session<'_>, request: &Request<'_>, ticket: Ticket, now: i64) -> rusqlite::Result<bool> {
    let mut stands = true;
    for key in request.keys {
        let changed = session
            .db
            .prepare_cached(
                "update waiters set beat = ?5 where key = ?1 and semaphore = ?2 and ticket = ?3 and process = ?4",
            )?
            .execute(params![
                key.as_str(),
                request.limit.is_some(),
                ticket.number,
                ticket.process,
                now
            ])?;
        stands &= changed > 0;
    }
    Ok(stands)
}

/// How many stand before us in this key's line, counted up to [`COUNTED`]; 0 if all who are written down there are dead.
/// Takes the place away from a waiter whose row is gone: it was overtaken while it did not run.
pub(super) fn ahead(
    session: &Session<'_>,
    key: Key<'_>,
    request: &Request<'_>,
    place: &mut Place,
    now: i64,
) -> rusqlite::Result<usize> {
    if let Some(ticket) = place.ticket {
        let stands = session
            .db
            .prepare_cached("select 1 from waiters where key = ?1 and semaphore = ?2 and ticket = ?3 and process = ?4")?
            .exists(params![
                key.as_str(),
                request.limit.is_some(),
                ticket.number,
                ticket.process
            ])?;
        if !stands {
            place.ticket = None;
        }
    }
    let mut select = session.db.prepare_cached(
        "select beat, process from waiters where key = ?1 and semaphore = ?2 and ticket < ?3 order by ticket",
    )?;
    let before = place.ticket.map_or(i64::MAX, |ticket| ticket.number);
    let mut rows = select.query(params![key.as_str(), request.limit.is_some(), before])?;
    let mut ahead = 0;
    while let Some(row) = rows.next()? {
        let beat: i64 = row.get(0)?;
        // One that lives is enough to hold us up; those behind it are counted, not asked.
        if ahead > 0 || ((0..STALL_MS).contains(&now.saturating_sub(beat)) && session.is_alive(row.get(1)?)) {
            ahead += 1;
        }
        if ahead >= COUNTED {
            break;
        }
    }
    Ok(ahead)
}

/// Takes ourselves and the dead before us out of the lines.
pub(super) fn close_up(session: &Session<'_>, request: &Request<'_>, place: &Place) -> rusqlite::Result<()> {
    for key in request.keys {
        session
            .db
            .prepare_cached("delete from waiters where key = ?1 and semaphore = ?2 and ticket <= ?3")?
            .execute(params![
                key.as_str(),
                request.limit.is_some(),
                place.ticket.map_or(i64::MAX, |ticket| ticket.number)
            ])?;
    }
    Ok(())
}
