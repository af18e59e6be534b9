//! Renewing and releasing: only the live lease can be, and only by its own fence (LOCK-04).
//!
//! Each is one statement that finds the row by its key *and* its fence and asks the clock while it holds the write lock:
//! a lease that ran out while the lock was waited for is over. Nothing is ever inserted, so nothing is revived. A permit
//! is the same row with an id in place of the fence.

use rusqlite::{OptionalExtension, params};

use super::term::{Standing, Term};
use super::{Done, Engine, Session};
use crate::error::Result;
use crate::fence::Fence;
use crate::key::Key;
use crate::limits::Ttl;
use crate::permit::PermitId;

/// What a lease or permit is named by, besides its key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name {
    Lease(Fence),
    Permit(PermitId),
}

impl Name {
    /// Permit, epoch and count as the row has them; nothing if no row can.
    fn columns(&self) -> Option<(&[u8], i64, i64)> {
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
     where key = ?1 and permit = ?2 and epoch = ?3 and count = ?4 and expires > now_ms() and process in (0, ?6)
       and ?5 is null";

impl Engine {
    /// Lets the lease last for `ttl` from now, or for as long as it was last given. Whether it is live.
    pub(crate) fn renew(&self, key: Key<'_>, name: Name, ttl: Option<Ttl>) -> Result<bool> {
        self.end(RENEW, "renewing a lease", key, name, ttl)
    }

    /// Ends the lease. Whether it was live.
    pub(crate) fn release(&self, key: Key<'_>, name: Name) -> Result<bool> {
        self.end(RELEASE, "releasing a lease", key, name, None)
    }

    fn end(&self, sql: &str, doing: &'static str, key: Key<'_>, name: Name, ttl: Option<Ttl>) -> Result<bool> {
        let Some((permit, epoch, count)) = name.columns() else {
            return Ok(false); // No store gave such a fence.
        };
        self.call(|session, _| {
            let run = |process: i64| -> rusqlite::Result<bool> {
                let changed = session.db.prepare_cached(sql)?.execute(params![
                    key.as_str(),
                    permit,
                    epoch,
                    count,
                    ttl.map(Ttl::get),
                    process
                ])?;
                Ok(changed > 0)
            };
            let done = run(0)
                .and_then(|done| match bound_to(session, done, key, permit, epoch, count)? {
                    // It is bound to a process. The statement takes that as its own if the process lives.
                    Some(process) if session.is_alive(process) => run(process),
                    _ => Ok(done),
                })
                .map_err(session.failed(doing))?;
            Ok(Done::Written(done))
        })
    }

    /// Lets every key of a lease of several last for `ttl` from now. Whether all of them were live; else nothing changes.
    pub(crate) fn renew_all(&self, fence: Fence, ttl: Option<Ttl>) -> Result<bool> {
        self.end_all(fence, "renewing a lease of several keys", |session, keys| {
            let live = !keys.is_empty() && keys.iter().all(|(_, live)| *live);
            if live {
                session
                    .db
                    .prepare_cached(
                        "update leases set ttl = coalesce(?3, min(max(ttl, 1), 31536000000)),
                                       expires = now_ms() + coalesce(?3, min(max(ttl, 1), 31536000000))
                          where several = 1 and epoch = ?1 and count = ?2",
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
    pub(crate) fn release_all(&self, fence: Fence) -> Result<bool> {
        self.end_all(fence, "releasing a lease of several keys", |session, keys| {
            let mut delete = session
                .db
                .prepare_cached("delete from leases where key = ?1 and permit = x'' and epoch = ?2 and count = ?3")?;
            for (key, _) in keys.iter().filter(|(_, live)| *live) {
                delete.execute(params![
                    key,
                    fence.epoch().get().cast_signed(),
                    fence.count().get().cast_signed()
                ])?;
            }
            Ok(keys.iter().any(|(_, live)| *live))
        })
    }

    /// Runs the work in a write transaction on the keys that a lease of several still has, each with whether it is live.
    fn end_all(
        &self,
        fence: Fence,
        doing: &'static str,
        work: impl Fn(&Session<'_>, &[(String, bool)]) -> rusqlite::Result<bool>,
    ) -> Result<bool> {
        let Some((_, epoch, count)) = Name::Lease(fence).columns().map(|(_, epoch, count)| ((), epoch, count)) else {
            return Ok(false);
        };
        self.call(|session, _| {
            let run = || -> rusqlite::Result<bool> {
                session.run("begin immediate")?;
                let now = session.clock.now_ms();
                let keys = session
                    .db
                    .prepare_cached(
                        "select key, expires, ttl, delay, process from leases
                          where several = 1 and epoch = ?1 and count = ?2",
                    )?
                    .query_map(params![epoch, count], |row| {
                        let term = Term {
                            expires: row.get(1)?,
                            ttl: row.get(2)?,
                            delay: row.get(3)?,
                            process: row.get(4)?,
                        };
                        let (standing, _) = term.at(now, |token| session.is_alive(token));
                        Ok((row.get(0)?, matches!(standing, Standing::Held(_))))
                    })?
                    .collect::<rusqlite::Result<Vec<_>>>()?;
                let done = work(session, &keys)?;
                session.run("commit")?;
                Ok(done)
            };
            run().map(Done::Written).map_err(session.failed(doing))
        })
    }
}

/// The process that a live lease is bound to, if the unbound form of a statement has not found it.
fn bound_to(
    session: &Session<'_>,
    done: bool,
    key: Key<'_>,
    permit: &[u8],
    epoch: i64,
    count: i64,
) -> rusqlite::Result<Option<i64>> {
    if done {
        return Ok(None);
    }
    session
        .db
        .prepare_cached(
            "select process from leases
              where key = ?1 and permit = ?2 and epoch = ?3 and count = ?4 and expires > now_ms() and process <> 0",
        )?
        .query_row(params![key.as_str(), permit, epoch, count], |row| row.get(0))
        .optional()
}
