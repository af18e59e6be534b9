//! A grant, from top to bottom.
//!
//! One transaction looks at the row of each key and at its line, and if all are free takes the next count and writes the
//! rows. A key that is held so costs a read and nothing else. Epoch and count are read and bumped in the transaction
//! that writes the lease and are kept nowhere else: another process may have opened the store since (LOCK-02, LOCK-03).
//!
//! The transaction begins as a reader and becomes a writer with its first write. SQLite refuses that if anybody else has
//! written meanwhile, so whatever was read still stands. Then it begins anew as a writer, with the lock in hand.
//!
//! The usual grant, of one key for which nobody waits, needs no BEGIN and no COMMIT to be such a transaction
//! ([`at_once`]). Everything else goes through [`transact`].

use rusqlite::types::ValueRef;
use rusqlite::{Row, params};

use super::line::{self, Place};
use super::term::{self, Standing, Term};
use super::usual::Usual;
use super::{Done, Engine, Session, reap};
use crate::engine::{Granted, Name, Request};
use crate::error::Result;
use crate::fault;
use crate::fence::{Count, Epoch, Fence};
use crate::key::Key;
use crate::limits::Limit;
use crate::permit::PermitId;

/// What came of one attempt.
pub(crate) enum Attempt {
    Granted(Granted),
    /// Somebody holds a key, or it is closed, or others stand in line before us.
    Busy {
        /// How many stand before us, as far as it was counted.
        ahead: usize,
        /// In how many milliseconds the first obstacle ends by itself, if that is known.
        ends_in: Option<i64>,
    },
}

/// What one look at the keys found.
struct Look {
    epoch: i64,
    count: i64,
    now: i64,
    /// The obstacle, if there is one.
    busy: Option<Attempt>,
    /// Rows that must be written before they can stand, see [`Term::at`].
    mends: Vec<(String, Term)>,
    /// Whether anybody, dead or alive, is written down in a line of these keys.
    has_line: bool,
}

/// The store's row, whether anybody stands in line, and the key's row if there is one and a lease is asked for.
const LOOK: &str = "
    select s.epoch, s.count, exists (select 1 from waiters where key = ?1 and semaphore = ?2),
           l.expires, l.ttl, l.delay, l.process
      from leases s left join leases l on l.key = ?1 and l.permit = x'' and ?2 = 0
     where s.key = ''";

/// The store's row with the next count, and the lease.
const WRITE: &str = "
    insert or replace into leases (key, permit, epoch, count, expires, ttl, delay, pid, process, several)
    values ('', x'', ?2, ?3, 0, 0, 0, 0, 0, 0), (?1, x'', ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";

impl Engine {
    /// Tries once to get what is asked for, from the given place in line. Waits for nobody but a writer.
    pub(crate) fn attempt(&self, request: &Request<'_>, place: &mut Place) -> Result<Attempt> {
        // What was committed and reached nobody, for the files were changed meanwhile.
        let mut lost = None;
        self.call(|session, seen| {
            let failed = session.failed("granting a lease");
            if let Some(name) = lost.take() {
                // Should it stand in the files that are there now, nobody would ever release it.
                take_back(session, request, name).map_err(&failed)?;
            }
            let process = if request.bound { session.token()? } else { Some(0) };
            let Some(process) = process else { return Ok(Done::Again) };
            fault::point("grant-begins");
            let permit = request.limit.map(|_| PermitId::random()).transpose()?;
            let outcome = grant(session, *seen, request, place, process, permit).map_err(failed)?;
            Ok(match outcome {
                Outcome::Busy(busy) => Done::Read(busy),
                Outcome::Restored => Done::Again,
                Outcome::Granted(granted) => {
                    if let Name::Lease(fence) = granted.name {
                        *seen = Some(fence);
                    }
                    if let (true, Some(sidecar)) = (request.bound, session.sidecar) {
                        sidecar.keep();
                    }
                    *place = Place::default();
                    lost = Some(granted.name);
                    if request.bound && session.token()?.is_none() {
                        // The file that tells who lives was removed meanwhile. The opening that noticed it first, and lets
                        // bound leases last for their ttl, may have come before this commit.
                        return Ok(Done::Again);
                    }
                    Done::Written(Attempt::Granted(granted))
                }
            })
        })
    }
}

/// Removes the rows of a grant that nobody has heard of.
fn take_back(session: &Session<'_>, request: &Request<'_>, name: Name) -> rusqlite::Result<()> {
    let Some((permit, epoch, count)) = name.columns() else {
        return Ok(());
    };
    for key in request.keys {
        session
            .db
            .prepare_cached("delete from leases where key = ?1 and permit = ?2 and epoch = ?3 and count = ?4")?
            .execute(params![key.as_str(), permit, epoch, count])?;
    }
    Ok(())
}

enum Outcome {
    Granted(Granted),
    Busy(Attempt),
    /// The file knows less than this process has seen of it.
    Restored,
}

/// The usual grant: one key, nobody in its line, nothing to mend or to reap. Two statements and no BEGIN or COMMIT: the
/// first one's row stays in hand, and with it the state of the file that it has seen, until the second one has written
/// and committed by itself; SQLite refuses the second, as busy, if anybody has written since the first. Nothing if this
/// is not the usual case.
fn at_once(
    session: &Session<'_>,
    seen: Option<Fence>,
    request: &Request<'_>,
    place: &Place,
    process: i64,
) -> rusqlite::Result<Option<Outcome>> {
    let &[key] = request.keys else { return Ok(None) };
    if request.limit.is_some() || place.stands() {
        return Ok(None);
    }
    let mut select = session.db.usual(Usual::Look, LOOK)?;
    let mut rows = select.query(params![key.as_str(), false])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let (has_line, term) = (row.get(2)?, standing_term(row)?);
    let standing = term.map(|term| term.at(session.clock.now_ms(), |token| session.is_alive(token)));
    match standing {
        _ if has_line => return Ok(None),
        Some((_, Some(_))) => return Ok(None),
        Some((Standing::Held(left) | Standing::Closed(left), None)) => {
            let (ahead, ends_in) = (0, Some(left));
            return Ok(Some(Outcome::Busy(Attempt::Busy { ahead, ends_in })));
        }
        Some((Standing::Over, None)) | None => {}
    }
    let fence =
        next_fence(row.get(0)?, row.get(1)?).filter(|fence| Some(*fence) > seen && !reap::is_due(fence.count().get()));
    let Some(fence) = fence else { return Ok(None) };
    fault::point("grant-looked");
    // LOCK-05: the ttl counts from here, where the wait is over.
    let until = session.clock.now_ms().saturating_add(request.ttl.get());
    fault::at_commit("grant-before-commit", || {
        write_lease(session, request, key, fence, until, process)
    })?;
    fault::point("grant-after-commit");
    let name = Name::Lease(fence);
    Ok(Some(Outcome::Granted(Granted { name, until })))
}

/// Any grant: the usual one if it is that, else as a reader that becomes a writer; and if somebody was quicker, as a
/// writer from the start.
fn grant(
    session: &Session<'_>,
    seen: Option<Fence>,
    request: &Request<'_>,
    place: &mut Place,
    process: i64,
    permit: Option<PermitId>,
) -> rusqlite::Result<Outcome> {
    let usual = at_once(session, seen, request, place, process).transpose();
    let mut begin_and_transact = |begin| {
        session.run(begin)?;
        transact(session, seen, request, place, process, permit)
    };
    let first = match usual {
        Some(done) => done,
        None => begin_and_transact("begin"),
    };
    match first {
        Err(error) if is_busy(&error) => {
            if !session.db.is_autocommit() {
                session.run("rollback")?;
            }
            begin_and_transact("begin immediate")
        }
        done => done,
    }
}

/// Everything between BEGIN and COMMIT.
fn transact(
    session: &Session<'_>,
    seen: Option<Fence>,
    request: &Request<'_>,
    place: &mut Place,
    process: i64,
    permit: Option<PermitId>,
) -> rusqlite::Result<Outcome> {
    let look = look(session, request, place)?;
    for (key, term) in &look.mends {
        mend(session, key, *term)?;
    }
    if let Some(busy) = look.busy {
        session.run("commit")?;
        return Ok(Outcome::Busy(busy));
    }
    // A file that gives a fence that was seen already was put back; and there is no count after the last one.
    let Some(fence) = next_fence(look.epoch, look.count).filter(|fence| Some(*fence) > seen) else {
        session.run("rollback")?;
        return Ok(Outcome::Restored);
    };
    fault::point("grant-looked");
    // LOCK-05: the ttl counts from here, where the wait is over.
    let until = session.clock.now_ms().saturating_add(request.ttl.get());
    let name = match permit {
        None => {
            for key in request.keys {
                write_lease(session, request, *key, fence, until, process)?;
            }
            reap::sometimes(session, fence.count().get(), request.keys.len())?;
            Name::Lease(fence)
        }
        Some(permit) => {
            for key in request.keys {
                reap::permits(session, *key, look.now)?;
                write_permit(session, request, *key, permit, until, process)?;
            }
            // A permit takes no count; its id is as good as dice.
            reap::sometimes(session, permit.dice(), request.keys.len())?;
            Name::Permit(permit)
        }
    };
    if look.has_line {
        // Whoever was written down before us is dead, or this would not be granted.
        line::close_up(session, request, place)?;
    }
    fault::point("grant-before-commit");
    session.run("commit")?;
    fault::point("grant-after-commit");
    Ok(Outcome::Granted(Granted { name, until }))
}

/// Looks at every key: its row, or its live permits, and its line.
fn look(session: &Session<'_>, request: &Request<'_>, place: &mut Place) -> rusqlite::Result<Look> {
    let mut look = Look {
        epoch: 0,
        count: 0,
        now: session.clock.now_ms(),
        busy: None,
        mends: Vec::new(),
        has_line: false,
    };
    for key in request.keys {
        let mut select = session.db.usual(Usual::Look, LOOK)?;
        let (has_line, term) = select.query_row(params![key.as_str(), request.limit.is_some()], |row| {
            look.epoch = row.get(0)?;
            look.count = row.get(1)?;
            Ok((row.get(2)?, standing_term(row)?))
        })?;
        look.has_line |= has_line;
        if has_line || place.stands() {
            let ahead = line::ahead(session, *key, request, place, look.now)?;
            if ahead > 0 {
                look.busy = Some(Attempt::Busy { ahead, ends_in: None });
                continue;
            }
        }
        let ends_in = match request.limit {
            Some(limit) => permits_left(session, *key, limit, &mut look)?,
            None => term.and_then(|term| {
                let (standing, mended) = term.at(look.now, |token| session.is_alive(token));
                look.mends.extend(mended.map(|term| (key.as_str().to_owned(), term)));
                match standing {
                    Standing::Held(left) | Standing::Closed(left) => Some(left),
                    Standing::Over => None,
                }
            }),
        };
        if ends_in.is_some() && look.busy.is_none() {
            look.busy = Some(Attempt::Busy { ahead: 0, ends_in });
        }
    }
    Ok(look)
}

/// The times of the key's row, if [`LOOK`] has found one.
fn standing_term(row: &Row<'_>) -> rusqlite::Result<Option<Term>> {
    let has_row = row.get_ref(3)? != ValueRef::Null;
    has_row.then(|| Term::read(row, 3)).transpose()
}

/// In how many milliseconds a permit becomes free, at the latest; nothing if one is free now. SEM-01: the live permits
/// are compared with the limit that this request names.
fn permits_left(session: &Session<'_>, key: Key<'_>, limit: Limit, look: &mut Look) -> rusqlite::Result<Option<i64>> {
    let mut live = 0;
    let mut first_end = i64::MAX;
    let mut select = session.db.prepare_cached(
        "select process, count(*), min(expires), max(not expires <= ?2 + min(max(ttl, 1), 31536000000))
           from leases where key = ?1 and permit > x'' and expires > ?2 group by process",
    )?;
    let mut rows = select.query(params![key.as_str(), look.now])?;
    while let Some(row) = rows.next()? {
        let process = term::number(row, 0)?;
        if process != 0 && !session.is_alive(process) {
            continue;
        }
        live += row.get::<_, i64>(1)?;
        first_end = first_end.min(term::number(row, 2)?);
        if row.get(3)? {
            // Somebody wrote a time by hand that no grant writes: no permit lasts beyond its own ttl after first sight.
            let now = look.now;
            look.mends.push((
                key.as_str().to_owned(),
                Term {
                    expires: now,
                    ttl: 0,
                    delay: 0,
                    process,
                },
            ));
        }
    }
    Ok((live >= limit.get()).then_some(first_end.saturating_sub(look.now)))
}

/// Writes down what [`look`] found that cannot stand. A ttl of 0 means a key's permits.
fn mend(session: &Session<'_>, key: &str, term: Term) -> rusqlite::Result<()> {
    if term.ttl == 0 {
        session
            .db
            .prepare_cached(
                "update leases set ttl = min(max(ttl, 1), 31536000000), expires = ?2 + min(max(ttl, 1), 31536000000)
                  where key = ?1 and permit > x'' and not expires <= ?2 + min(max(ttl, 1), 31536000000)",
            )?
            .execute(params![key, term.expires])?;
        return Ok(());
    }
    session
        .db
        .prepare_cached(
            "update leases set expires = ?2, ttl = ?3, delay = ?4, process = ?5 where key = ?1 and permit = x''",
        )?
        .execute(params![key, term.expires, term.ttl, term.delay, term.process])?;
    Ok(())
}

/// The fence after the last one; nothing if the row cannot be continued.
fn next_fence(epoch: i64, count: i64) -> Option<Fence> {
    let epoch = u64::try_from(epoch).ok()?;
    let count = u64::try_from(count).ok()?.checked_add(1)?;
    i64::try_from(count).ok()?;
    Some(Fence::new(Epoch::new(epoch), Count::new(count)))
}

fn write_lease(
    session: &Session<'_>,
    request: &Request<'_>,
    key: Key<'_>,
    fence: Fence,
    until: i64,
    process: i64,
) -> rusqlite::Result<()> {
    // LOCK-02, LOCK-03: the count that this transaction has read is bumped by the statement that writes the lease.
    session.db.usual(Usual::Write, WRITE)?.execute(params![
        key.as_str(),
        fence.epoch().get().cast_signed(),
        fence.count().get().cast_signed(),
        until,
        request.ttl.get(),
        request.delay.get(),
        session.pid,
        process,
        if request.several {
            request.keys.len().cast_signed()
        } else {
            0
        },
    ])?;
    Ok(())
}

fn write_permit(
    session: &Session<'_>,
    request: &Request<'_>,
    key: Key<'_>,
    permit: PermitId,
    until: i64,
    process: i64,
) -> rusqlite::Result<()> {
    session
        .db
        .prepare_cached(
            "insert into leases (key, permit, epoch, count, expires, ttl, delay, pid, process, several)
             values (?1, ?2, 0, 0, ?3, ?4, 0, ?5, ?6, 0)",
        )?
        .execute(params![
            key.as_str(),
            permit.as_bytes(),
            until,
            request.ttl.get(),
            session.pid,
            process,
        ])?;
    Ok(())
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(rusqlite::ErrorCode::DatabaseBusy))
}
