//! Reading what is live, a page at a time: a listing that is left open for an hour keeps no transaction open.

use rusqlite::params;

use super::term::{Standing, Term};
use super::{Done, Engine};
use crate::engine::PageMark;
use crate::error::Result;
use crate::fence::{Count, Epoch, Fence};
use crate::lease::{Hold, HoldKind};
use crate::permit::PermitId;

/// How many rows are read at once.
const PAGE: i64 = 256;

impl Engine {
    /// The next page of live leases and permits and of keys in delay, in the order of their keys. Nothing after the last.
    pub(super) fn page(&self, mark: &mut PageMark) -> Result<Option<Vec<Hold>>> {
        self.call(|session, _| {
            let mut read = || -> rusqlite::Result<Option<Vec<Hold>>> {
                let now = session.clock.now_ms();
                let mut select = session.db.prepare_cached(
                    "select key, permit, epoch, count, expires, ttl, delay, process, pid from leases
                      where (key, permit) > (?1, ?2) order by key, permit limit ?3",
                )?;
                let mut rows = select.query(params![mark.key, mark.permit, PAGE])?;
                let mut page = Vec::new();
                let mut read = false;
                while let Some(row) = rows.next()? {
                    read = true;
                    mark.key = row.get(0)?;
                    mark.permit = row.get(1)?;
                    let term = Term::read(row, 4)?;
                    let permit = <[u8; 16]>::try_from(mark.permit.as_slice())
                        .ok()
                        .map(PermitId::from_bytes);
                    let (standing, _) = term.at(now, |token| session.is_alive(token));
                    let (kind, remaining_ms) = match (standing, permit) {
                        (Standing::Over, _) => continue,
                        (Standing::Closed(left), _) => (HoldKind::Delay, left),
                        (Standing::Held(left), None) => (HoldKind::Lease, left),
                        (Standing::Held(left), Some(_)) => (HoldKind::Permit, left),
                    };
                    let (epoch, count): (i64, i64) = (row.get(2)?, row.get(3)?);
                    page.push(Hold {
                        key: mark.key.clone(),
                        kind,
                        fence: permit
                            .is_none()
                            .then(|| Fence::new(Epoch::new(epoch.cast_unsigned()), Count::new(count.cast_unsigned()))),
                        permit,
                        remaining_ms,
                        delay_ms: term.delay.max(0),
                        process: row.get(8)?,
                        bound: term.process != 0,
                    });
                }
                Ok(read.then_some(page))
            };
            read().map(Done::Read).map_err(session.failed("listing the leases"))
        })
    }
}
