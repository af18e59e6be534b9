//! Renewing and releasing: only the live lease can be, and only by its own fence (LOCK-04).
//!
//! Each is one statement that finds the row by its key *and* its fence and asks the clock while it holds the write lock:
//! a lease that ran out while the lock was waited for is over. Nothing is ever inserted, so nothing is revived. A permit
//! is the same row with an id in place of the fence.

use rusqlite::{OptionalExtension, params};

use super::term::{Standing, Term};
use super::usual::Usual;
use super::{Done, Engine, Session};
use crate::engine::{Name, Request};
use crate::error::Result;
use crate::fault;
use crate::fence::Fence;
use crate::key::Key;
use crate::limits::Ttl;

impl Name {
    /// Permit, epoch and count as the row has them; nothing if no row can.
    pub(super) fn columns(&self) -> Option<(&[u8], i64, i64)> {
        match self {
            Self::Lease(fence) => Some((
                &[],
                i64::try_from(fence.epoch().get()).ok()?,
                i64::try_from(fence.count().get()).ok()?,
            )),
            Self::Permit(id) => Some((id.as_bytes(), 0, 0)),
        }
    }
}

const RENEW: &str = "
    update leases set ttl = coalesce(?5, min(max(ttl, 1), 31536000000)),
                  expires = now_ms() + coalesce(?5, min(max(ttl, 1), 31536000000))
     where key = ?1 and permit = ?2 and epoch = ?3 and count = ?4 and expires > now_ms() and process in (0, ?6)";

const RELEASE: &str = "
    delete from leases
     where key = ?1 and permit = ?2 and epoch = ?3 and count = ?4 and expires > now_ms() and process in (0, ?5)
       and several <= ?6";

/// What the short way does not see to: the row is bound to a process, or one of several under one fence.
#[derive(Clone, Copy)]
struct Ties {
    process: i64,
    several: i64,
}

const UNTIED: Ties = Ties { process: 0, several: 0 };

impl Engine {
    /// Lets the lease last for `ttl` from now, or for as long as it was last given. Whether it is live.
    pub(super) fn renew(&self, key: Key<'_>, name: Name, ttl: Option<Ttl>) -> Result<bool> {
        let Some((permit, epoch, count)) = name.columns() else {
            return Ok(false); // No store gave such a fence.
        };
        let ttl = ttl.map(Ttl::get);
        self.call(|session, _| {
            let renew = |ties: Ties| {
                let mut renew = session.db.prepare_cached(RENEW)?;
                renew.execute(params![key.as_str(), permit, epoch, count, ttl, ties.process])
            };
            let run = || -> rusqlite::Result<bool> {
                if renew(UNTIED)? > 0 {
                    return Ok(true);
                }
                match ties(session, key, name)? {
                    Some(ties) => Ok(renew(ties)? > 0),
                    None => Ok(false),
                }
            };
            run().map(Done::Written).map_err(session.failed("renewing a lease"))
        })
    }

    /// Ends the lease. Whether it was live.
    pub(super) fn release(&self, key: Key<'_>, name: Name) -> Result<bool> {
        let Some((permit, epoch, count)) = name.columns() else {
            return Ok(false);
        };
        // Whether an earlier try, after which the files were seen to have changed, has released it: then it is released.
        let mut before = false;
        self.call(|session, _| {
            let release = |ties: Ties| {
                let mut delete = session.db.usual(Usual::Release, RELEASE)?;
                delete.execute(params![key.as_str(), permit, epoch, count, ties.process, ties.several])
            };
            let run = || -> rusqlite::Result<bool> {
                if release(UNTIED)? > 0 {
                    return Ok(true);
                }
                let Some(ties) = ties(session, key, name)? else {
                    return Ok(false);
                };
                session.run("begin immediate")?;
                let released = release(ties)? > 0;
                if released && ties.several > 0 {
                    // Given up, not lost: the others go on without it, see `renew_all`.
                    session
                        .db
                        .prepare_cached(
                            "update leases set several = several - 1 where several > 0 and epoch = ?1 and count = ?2",
                        )?
                        .execute(params![epoch, count])?;
                }
                session.run("commit")?;
                Ok(released)
            };
            // A release that a file gets within LOOK_MS of its end is one that came just before it.
            let released = run().map_err(session.failed("releasing a lease"))?;
            fault::point("release-after-commit");
            before |= released;
            Ok(if before { Done::Read(true) } else { Done::Written(false) })
        })
    }

    /// Ends what was granted, for whoever does not want it after all.
    pub(super) fn give_back(&self, request: &Request<'_>, name: Name) -> Result<bool> {
        match (name, request.keys) {
            (Name::Lease(fence), _) if request.several => self.release_all(fence),
            (_, [key]) => self.release(*key, name),
            _ => Ok(false),
        }
    }

    /// Lets every key of a lease of several last for `ttl` from now. Whether all of them are live; else nothing changes.
    /// One that was released by itself is no longer of them. One that was lost is, also when its row is another's by now:
    /// so the rows that are left are counted.
    pub(super) fn renew_all(&self, fence: Fence, ttl: Option<Ttl>) -> Result<bool> {
        self.end_all(fence, "renewing a lease of several keys", |session, keys| {
            let live = !keys.is_empty()
                && keys
                    .iter()
                    .all(|key| key.live && key.several == keys.len().cast_signed());
            if live {
                session
                    .db
                    .prepare_cached(
                        "update leases set ttl = coalesce(?3, min(max(ttl, 1), 31536000000)),
                                       expires = now_ms() + coalesce(?3, min(max(ttl, 1), 31536000000))
                          where several > 0 and epoch = ?1 and count = ?2",
                    )?
                    .execute(params![
                        fence.epoch().get().cast_signed(),
                        fence.count().get().cast_signed(),
                        ttl.map(Ttl::get)
                    ])?;
            }
            Ok(live)
        })
    }

    /// Ends a lease of several keys. Whether any of them was live.
    pub(super) fn release_all(&self, fence: Fence) -> Result<bool> {
        // As of one key: what an earlier try has released is released.
        let mut before = false;
        self.end_all(fence, "releasing a lease of several keys", |session, keys| {
            let mut delete = session
                .db
                .prepare_cached("delete from leases where key = ?1 and permit = x'' and epoch = ?2 and count = ?3")?;
            for part in keys.iter().filter(|part| part.live) {
                delete.execute(params![
                    part.key,
                    fence.epoch().get().cast_signed(),
                    fence.count().get().cast_signed()
                ])?;
            }
            before |= keys.iter().any(|part| part.live);
            Ok(before)
        })
    }

    /// Runs the work in a write transaction on the keys that a lease of several still has.
    fn end_all(
        &self,
        fence: Fence,
        doing: &'static str,
        mut work: impl FnMut(&Session<'_>, &[Part]) -> rusqlite::Result<bool>,
    ) -> Result<bool> {
        let name = Name::Lease(fence);
        let Some((_, epoch, count)) = name.columns() else {
            return Ok(false);
        };
        self.call(|session, _| {
            let mut run = || -> rusqlite::Result<bool> {
                session.run("begin immediate")?;
                let now = session.clock.now_ms();
                let keys = session
                    .db
                    .prepare_cached(
                        "select key, expires, ttl, delay, process, several from leases
                          where several > 0 and epoch = ?1 and count = ?2",
                    )?
                    .query_map(params![epoch, count], |row| {
                        let term = Term::read(row, 1)?;
                        let (standing, _) = term.at(now, |token| session.is_alive(token));
                        Ok(Part {
                            key: row.get(0)?,
                            several: row.get(5)?,
                            live: matches!(standing, Standing::Held(_)),
                        })
                    })?
                    .collect::<rusqlite::Result<Vec<_>>>()?;
                let done = work(session, &keys)?;
                session.run("commit")?;
                fault::point("release-after-commit");
                Ok(done)
            };
            run().map(Done::Written).map_err(session.failed(doing))
        })
    }
}

/// One key of a lease of several.
struct Part {
    key: String,
    /// How many keys the lease has.
    several: isize,
    live: bool,
}

/// The ties of a live lease; nothing if there is no such lease, or it ended with the process that it is bound to.
fn ties(session: &Session<'_>, key: Key<'_>, name: Name) -> rusqlite::Result<Option<Ties>> {
    let Some((permit, epoch, count)) = name.columns() else {
        return Ok(None);
    };
    let found = session
        .db
        .prepare_cached(
            "select process, several from leases
              where key = ?1 and permit = ?2 and epoch = ?3 and count = ?4 and expires > now_ms()",
        )?
        .query_row(params![key.as_str(), permit, epoch, count], |row| {
            Ok(Ties {
                process: row.get(0)?,
                several: row.get(1)?,
            })
        })
        .optional()?;
    Ok(found.filter(|ties| ties.process == 0 || session.is_alive(ties.process)))
}
