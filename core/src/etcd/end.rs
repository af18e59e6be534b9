//! Renewing and releasing: only the live lease can be, and only by its own fence (LOCK-04).
//!
//! Each begins with a read that finds the key as it was granted: created in the revision that is the fence's count, under
//! the fence's epoch. What follows names the etcd lease of that grant, which nothing else was granted with, or stands on
//! the condition that the key is still the same. So nothing is ever revived: an etcd lease that ended cannot be kept
//! alive, and no key is written that is not there.
//!
//! etcd changes no lease's time. A renewal for another time makes a new etcd lease and moves the keys to it, in one
//! transaction; they keep the revision in which they were created, and so their fence.

use std::time::Instant;

use super::client::{Compare, Is, KeyValue, Keys, Op, Range, Target, Txn};
use super::names::Part;
use super::record::Record;
use super::session::{EtcdLease, Session, is_unknown, is_without_lease, lasting, outliving, patience, seconds};
use crate::engine::{Name, Request};
use crate::error::Result;
use crate::fault;
use crate::fence::Fence;
use crate::key::Key;
use crate::limits::Ttl;

/// A key that is held.
struct Row {
    kv: KeyValue,
    record: Record,
}

impl Session {
    /// Lets it last for `ttl` from now, or for as long as it was last given. Whether it is live.
    pub(super) fn renew(&self, key: Key<'_>, name: Name, ttl: Option<Ttl>) -> Result<bool> {
        let deadline = patience();
        self.renew_rows(
            || Ok(self.find(key, name, deadline)?.into_iter().collect()),
            ttl,
            deadline,
        )
    }

    /// Lets every key of a lease of several last for `ttl` from now. Whether it is live.
    pub(super) fn renew_all(&self, fence: Fence, ttl: Option<Ttl>) -> Result<bool> {
        let deadline = patience();
        self.renew_rows(|| self.find_all(fence, deadline), ttl, deadline)
    }

    /// Ends it. Whether it was live.
    pub(super) fn release(&self, key: Key<'_>, name: Name) -> Result<bool> {
        let deadline = patience();
        self.release_rows(
            || Ok(self.find(key, name, deadline)?.into_iter().collect()),
            false,
            deadline,
        )
    }

    /// Ends a lease of several keys. Whether any of them was live.
    pub(super) fn release_all(&self, fence: Fence) -> Result<bool> {
        let deadline = patience();
        self.release_rows(|| self.find_all(fence, deadline), true, deadline)
    }

    /// Ends what was granted, for whoever does not want it after all.
    pub(super) fn give_back(&self, request: &Request<'_>, name: Name) -> Result<bool> {
        match (name, request.keys) {
            (Name::Lease(fence), _) if request.several => self.release_all(fence),
            (_, [key]) => self.release(*key, name),
            _ => Ok(false),
        }
    }

    /// The live lease or permit of that name.
    fn find(&self, key: Key<'_>, name: Name, deadline: Instant) -> Result<Option<Row>> {
        let key = match name {
            Name::Lease(_) => self.names.held(key),
            Name::Permit(id) => self.names.permit(key, id),
        };
        let found = self.client.range(&Range::of(Keys::One(&key)), deadline)?;
        let row = found.kvs.into_iter().find_map(Row::read);
        Ok(row.filter(|row| match name {
            Name::Lease(fence) => row.has(fence),
            Name::Permit(_) => true,
        }))
    }

    /// The keys that a lease of several has.
    fn find_all(&self, fence: Fence, deadline: Instant) -> Result<Vec<Row>> {
        let Ok(revision @ 1..) = i64::try_from(fence.count().get()) else {
            return Ok(Vec::new());
        };
        let all = self.names.all();
        let range = Range {
            min_create_revision: revision,
            max_create_revision: revision,
            ..Range::of(Keys::Prefix(&all))
        };
        let found = self.client.range(&range, deadline)?.kvs.into_iter();
        let held = found.filter(|kv| matches!(self.names.read(&kv.key), Some((_, Part::Held))));
        Ok(held
            .filter_map(Row::read)
            .filter(|row| row.record.several && row.has(fence))
            .collect())
    }

    fn renew_rows(&self, find: impl Fn() -> Result<Vec<Row>>, ttl: Option<Ttl>, deadline: Instant) -> Result<bool> {
        // Made for a renewal for another time. Once the keys are moved to them they are kept.
        let mut moving: Option<(EtcdLease, Option<EtcdLease>)> = None;
        let renewed = loop {
            let rows = find()?;
            let Some(first) = rows.first() else { break false };
            if let Some((lease, _)) = moving
                && first.kv.lease == lease.id
            {
                // The answer was lost, and it was done.
                moving = None;
                break true;
            }
            let ttl = ttl.unwrap_or(first.record.ttl);
            if first.record.bound {
                match self.renew_bound(&rows, ttl, deadline)? {
                    Some(renewed) => break renewed,
                    None => continue,
                }
            }
            if seconds(lasting(ttl, false)) == seconds(lasting(first.record.ttl, false)) {
                let mut lease = first.etcd_lease();
                let mut delay = first.delay_lease();
                break self.keep_both(&mut lease, delay.as_mut(), deadline)?;
            }
            let (lease, delay) = match moving {
                Some(made) => made,
                None => {
                    let lease = self.new_lease(lasting(ttl, false), deadline)?;
                    let of_delay = || self.new_lease(outliving(&lease, first.record.delay), deadline);
                    let delay = first.delay_lease().map(|_| of_delay()).transpose();
                    if delay.is_err() {
                        self.discard([lease.id]);
                    }
                    *moving.insert((lease, delay?))
                }
            };
            let record = Record {
                ttl,
                delay_lease: delay.map_or(0, |delay| delay.id),
                ..first.record.clone()
            };
            let before = [first.kv.lease, first.record.delay_lease];
            match self.rewrite(&rows, &record, lease.id, deadline) {
                Ok(true) => {
                    // They hold nothing any more.
                    self.discard(before);
                    moving = None;
                    break true;
                }
                // Renewed or released by another call meanwhile, or nobody knows.
                Ok(false) => {}
                Err(error) if is_without_lease(&error) => moving = None,
                Err(error) => {
                    self.discard(moving.into_iter().flat_map(ids));
                    return Err(error);
                }
            }
        };
        self.discard(moving.into_iter().flat_map(ids));
        Ok(renewed)
    }

    /// Lets a bound lease last anew. Whether it is live; nothing if it changed meanwhile.
    fn renew_bound(&self, rows: &[Row], ttl: Ttl, deadline: Instant) -> Result<Option<bool>> {
        let Some(first) = rows.first() else {
            return Ok(Some(false));
        };
        let (mut lease, mut delay) = (first.etcd_lease(), first.delay_lease());
        if !self.keep_both(&mut lease, delay.as_mut(), deadline)? {
            return Ok(Some(false));
        }
        let until = self.now_ms().saturating_add(ttl.get());
        if self.bound.renew(lease.id, until) && ttl == first.record.ttl {
            return Ok(Some(true));
        }
        let record = Record {
            ttl,
            renewed: first.record.renewed.wrapping_add(1),
            ..first.record.clone()
        };
        Ok(self.rewrite(rows, &record, lease.id, deadline)?.then_some(true))
    }

    /// Writes the rows anew if none of them has changed: nothing is inserted, so nothing revived. Whether it was done for
    /// certain.
    fn rewrite(&self, rows: &[Row], record: &Record, lease: i64, deadline: Instant) -> Result<bool> {
        let value = record.write();
        let delays: Vec<_> = rows.iter().filter_map(|row| self.delay_of(row)).collect();
        let put = |key, lease| Op::Put {
            key,
            value: value.as_slice().into(),
            lease,
            prev_kv: false,
        };
        let rows_put = rows.iter().map(|row| put(&row.kv.key, lease));
        let txn = Txn {
            compare: rows.iter().map(Row::is_unchanged).collect(),
            success: rows_put
                .chain(delays.iter().map(|delay| put(delay, record.delay_lease)))
                .collect(),
            failure: Vec::new(),
        };
        match self.client.txn(&txn, deadline) {
            Ok(answer) => Ok(answer.succeeded),
            Err(error) if is_unknown(&error) && Instant::now() < deadline => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn release_rows(&self, find: impl Fn() -> Result<Vec<Row>>, all: bool, deadline: Instant) -> Result<bool> {
        // Whether an earlier try may have released it: then it was live.
        let mut tried = false;
        loop {
            let rows = find()?;
            let Some(first) = rows.first() else { return Ok(tried) };
            let (lease, delay) = (first.kv.lease, first.record.delay_lease);
            // Of several keys, the others keep the etcd lease.
            let is_whole = all || !first.record.several;
            if is_whole && delay == 0 {
                let released = self.end(lease, deadline)?;
                fault::point("release-after-commit");
                self.bound.forget(lease);
                return Ok(released || tried);
            }
            // Keys and delays go at once, so that what was released is free.
            match self.delete(&rows, deadline) {
                Ok(true) => {
                    fault::point("release-after-commit");
                    if is_whole {
                        self.bound.forget(lease);
                        self.discard([lease, delay]);
                    }
                    return Ok(true);
                }
                Ok(false) => {}
                Err(error) if is_unknown(&error) && Instant::now() < deadline => tried = true,
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes the rows and their delays if none of the rows has changed. Whether it was done.
    fn delete(&self, rows: &[Row], deadline: Instant) -> Result<bool> {
        let delays: Vec<_> = rows.iter().filter_map(|row| self.delay_of(row)).collect();
        let delete = |key| Op::Delete {
            keys: Keys::One(key),
            prev_kv: false,
        };
        let txn = Txn {
            compare: rows.iter().map(Row::is_unchanged).collect(),
            success: rows
                .iter()
                .map(|row| row.kv.key.as_slice())
                .chain(delays.iter().map(Vec::as_slice))
                .map(delete)
                .collect(),
            failure: Vec::new(),
        };
        Ok(self.client.txn(&txn, deadline)?.succeeded)
    }

    /// The name of the key that keeps a row's delay, if it has one.
    fn delay_of(&self, row: &Row) -> Option<Vec<u8>> {
        let (key, _) = self.names.read(&row.kv.key).filter(|_| row.record.delay_lease != 0)?;
        Some(self.names.delay(Key::new(key).ok()?))
    }
}

impl Row {
    fn read(kv: KeyValue) -> Option<Self> {
        let record = Record::read(&kv.value)?;
        Some(Self { kv, record })
    }

    /// Whether its fence is that one.
    fn has(&self, fence: Fence) -> bool {
        self.record.epoch == fence.epoch() && u64::try_from(self.kv.create_revision) == Ok(fence.count().get())
    }

    fn is_unchanged(&self) -> Compare<'_> {
        Compare {
            keys: Keys::One(&self.kv.key),
            target: Target::Mod(self.kv.mod_revision),
            result: Is::Equal,
        }
    }

    fn etcd_lease(&self) -> EtcdLease {
        EtcdLease::known(self.kv.lease)
    }

    fn delay_lease(&self) -> Option<EtcdLease> {
        Some(self.record.delay_lease)
            .filter(|id| *id != 0)
            .map(EtcdLease::known)
    }
}

fn ids((lease, delay): (EtcdLease, Option<EtcdLease>)) -> impl Iterator<Item = i64> {
    [Some(lease), delay].into_iter().flatten().map(|lease| lease.id)
}
