//! A grant, from top to bottom.
//!
//! A look reads, at one revision, all that could stand against the grant: whoever finds a key held has written nothing. If
//! nothing does, an etcd lease is made, and one transaction writes the keys with it on the condition that the epoch is the
//! one that is known (LOCK-02), that nothing holds the keys (LOCK-01) and that nobody stands before us (LOCK-07). Its
//! revision is the fence's count: nobody else's transaction has it (LOCK-03).
//!
//! An answer may be lost, by a time-out or a change of leaders, and the transaction may be carried out even later. So a
//! request has an id, which stands in what it writes. The next look finds it, and it is granted once; and whatever comes
//! after the call has ended finds its etcd lease ended, and is not carried out.

use std::sync::Arc;
use std::time::Instant;

use super::bound::Bound;
use super::client::{Compare, Header, Is, KeyValue, Keys, Op, Range, SortOrder, SortTarget, Target, Txn};
use super::epoch::Era;
use super::line::Place;
use super::record::Record;
use super::session::{EtcdLease, Session, is_unknown, is_without_lease, lasting, outliving};
use crate::engine::{Granted, Name, Request};
use crate::error::Result;
use crate::fault;
use crate::fence::{Count, Epoch, Fence};
use crate::permit::PermitId;

/// What is asked for, and what was made for it so far. Dropped, it takes back what is not needed.
pub(super) struct Attempt<'a> {
    pub(super) session: &'a Arc<Session>,
    pub(super) request: &'a Request<'a>,
    /// By which a grant is found whose answer was lost. Of a permit its own.
    id: PermitId,
    pub(super) keys: Vec<OfKey>,
    /// The etcd lease to grant with, and that of the delay.
    lease: Option<EtcdLease>,
    delay: Option<EtcdLease>,
    pub(super) place: Option<Place>,
}

/// The names of one key that is asked for.
pub(super) struct OfKey {
    held: Vec<u8>,
    delay: Vec<u8>,
    permits: Vec<u8>,
    permit: Vec<u8>,
    pub(super) line: Vec<u8>,
    pub(super) place: Vec<u8>,
}

impl OfKey {
    /// What is written of what is granted.
    fn name(&self, is_permit: bool) -> &[u8] {
        if is_permit { &self.permit } else { &self.held }
    }
}

/// What came of one attempt.
pub(super) enum Outcome {
    Granted(Granted),
    /// Something stands against it.
    Busy(Obstacle),
}

/// What stands against a grant: it is gone at the earliest when a key that begins with `keys` is deleted, after `revision`.
pub(super) struct Obstacle {
    pub(super) keys: Vec<u8>,
    pub(super) revision: i64,
}

/// What a look found.
enum Look {
    /// An earlier try of ours was carried out.
    Ours(Written),
    /// Nothing stands against it as of this revision.
    Free(i64),
    Busy(Obstacle),
    /// The epoch is another than was thought.
    Lifted,
}

/// A grant that was carried out.
struct Written {
    /// Of the answer that tells.
    header: Header,
    /// In which revision.
    revision: i64,
    /// Under which epoch.
    epoch: Epoch,
}

impl<'a> Attempt<'a> {
    pub(super) fn new(session: &'a Arc<Session>, request: &'a Request<'a>) -> Result<Self> {
        let id = PermitId::random()?;
        let names = &session.names;
        let semaphore = request.limit.is_some();
        let keys = request.keys.iter().map(|&key| OfKey {
            held: names.held(key),
            delay: names.delay(key),
            permits: names.permits(key),
            permit: names.permit(key, id),
            line: names.line(key, semaphore),
            place: names.place(key, semaphore, id),
        });
        Ok(Self {
            session,
            request,
            id,
            keys: keys.collect(),
            lease: None,
            delay: None,
            place: None,
        })
    }

    /// Tries to get what is asked for, until it is granted or something stands against it.
    pub(super) fn run(&mut self, deadline: Instant) -> Result<Outcome> {
        loop {
            let era = self.session.era(deadline)?;
            let written = match self.look(&era, deadline)? {
                Look::Busy(obstacle) => return Ok(Outcome::Busy(obstacle)),
                Look::Ours(written) => Some(written),
                Look::Free(revision) => self.write(&era, revision, deadline)?,
                Look::Lifted => {
                    self.session.forget_epoch(&era);
                    None
                }
            };
            if let Some(written) = written {
                match self.hand_out(&era, &written, deadline)? {
                    Some(granted) => return Ok(Outcome::Granted(granted)),
                    None => self.take_back(),
                }
            }
        }
    }

    /// Reads all that could stand against the grant.
    fn look(&self, era: &Era, deadline: Instant) -> Result<Look> {
        let epoch = self.session.names.epoch();
        let mut ranges = vec![Range::of(Keys::One(&epoch))];
        for of in &self.keys {
            if self.request.limit.is_some() {
                ranges.push(Range {
                    count_only: true,
                    ..Range::of(Keys::Prefix(&of.permits))
                });
                ranges.push(Range::of(Keys::One(&of.permit)));
            } else {
                ranges.push(Range::of(Keys::Prefix(&of.held)));
            }
            // The last of those before us.
            ranges.push(Range {
                limit: 1,
                keys_only: true,
                order: Some((SortTarget::Create, SortOrder::Descend)),
                max_create_revision: self.place.as_ref().map_or(0, |place| place.revision - 1),
                ..Range::of(Keys::Prefix(&of.line))
            });
        }
        let Some((header, found)) = self.session.read(ranges, deadline)? else {
            return Ok(Look::Lifted);
        };
        let Some((stands, found)) = found.split_first() else {
            return Ok(Look::Lifted);
        };
        if stands.kvs.first().is_none_or(|kv| kv.value != era.value) {
            return Ok(Look::Lifted);
        }
        let mut busy = None;
        for (of, found) in self.keys.iter().zip(found.chunks(found.len() / self.keys.len().max(1))) {
            let (own, obstacle, line) = match (found, self.request.limit) {
                ([held, line], None) => (held, (!held.kvs.is_empty()).then_some(&of.held), line),
                // SEM-01: compared with the limit that this request names.
                ([permits, own, line], Some(limit)) => {
                    (own, (permits.count >= limit.get()).then_some(&of.permits), line)
                }
                _ => return Ok(Look::Lifted),
            };
            if let Some(written) = own.kvs.iter().find_map(|kv| self.ours(kv, header)) {
                return Ok(Look::Ours(written));
            }
            // Who stands before us waits for the obstacle as well.
            let before = line.kvs.first().map(|kv| &kv.key);
            if let (None, Some(keys)) = (&busy, before.or(obstacle)) {
                busy = Some(Obstacle {
                    keys: keys.clone(),
                    revision: header.revision,
                });
            }
        }
        Ok(busy.map_or(Look::Free(header.revision), Look::Busy))
    }

    /// What this request has written, if it is that.
    fn ours(&self, kv: &KeyValue, header: Header) -> Option<Written> {
        let record = Record::read(&kv.value).filter(|record| record.id == self.id)?;
        Some(Written {
            header,
            revision: kv.create_revision,
            epoch: record.epoch,
        })
    }

    /// Writes the keys if nothing stands against it that [`look`](Self::look) has not seen. Nothing if something does, or
    /// if nobody knows, which the next look tells.
    fn write(&mut self, era: &Era, looked_at: i64, deadline: Instant) -> Result<Option<Written>> {
        let (lease, delay_lease) = self.leases(deadline)?;
        let value = Record {
            id: self.id,
            epoch: era.epoch,
            ttl: self.request.ttl,
            delay: self.request.delay,
            delay_lease,
            process: std::process::id().into(),
            bound: self.request.bound,
            several: self.request.several,
            renewed: 0,
        }
        .write();
        let epoch = self.session.names.epoch();
        let txn = self.txn(&epoch, era, looked_at, &value, (lease, delay_lease));
        fault::point("grant-before-commit");
        let asked = self.session.asking();
        let answer = match self.session.client.txn(&txn, deadline) {
            Ok(answer) => answer,
            Err(error) if is_unknown(&error) && Instant::now() < deadline => return Ok(None),
            Err(error) if is_without_lease(&error) => {
                // It ran out while it lay ready.
                self.take_back();
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        fault::point("grant-after-commit");
        let heard = self.session.heard(asked, &answer.header);
        if !answer.succeeded {
            return Ok(None);
        }
        // The transaction has taken us out of the line; its etcd lease holds nothing and soon runs out.
        self.place = None;
        if !heard {
            self.take_back();
            return Ok(None);
        }
        Ok(Some(Written {
            header: answer.header,
            revision: answer.header.revision,
            epoch: era.epoch,
        }))
    }

    /// The transaction that grants.
    fn txn<'t>(
        &'t self,
        epoch: &'t [u8],
        era: &'t Era,
        looked_at: i64,
        value: &'t [u8],
        (lease, delay_lease): (i64, i64),
    ) -> Txn<'t> {
        let is = |keys, target, result| Compare { keys, target, result };
        let put = |key, lease| Op::Put {
            key,
            value: value.into(),
            lease,
            prev_kv: false,
        };
        // LOCK-02: no grant under an epoch that was lifted.
        let stands = Target::Value(era.value.as_slice().into());
        let mut compare = vec![is(Keys::One(epoch), stands, Is::Equal)];
        let mut success = Vec::new();
        for of in &self.keys {
            if self.request.limit.is_some() {
                // SEM-01: no permit was given since they were counted.
                let since = Target::Create(looked_at.saturating_add(1));
                compare.push(is(Keys::Prefix(&of.permits), since, Is::Less));
                success.push(put(&of.permit, lease));
            } else {
                // LOCK-01, LOCK-06: neither a lease nor a delay.
                compare.push(is(Keys::Prefix(&of.held), Target::Create(0), Is::Equal));
                success.push(put(&of.held, lease));
                if delay_lease != 0 {
                    success.push(put(&of.delay, delay_lease));
                }
            }
            // LOCK-07: nobody in line, or nobody before us.
            let line = Keys::Prefix(&of.line);
            match &self.place {
                None => compare.push(is(line, Target::Create(0), Is::Equal)),
                Some(place) => {
                    compare.push(is(line, Target::Create(place.revision - 1), Is::Greater));
                    success.push(Op::Delete {
                        keys: Keys::One(&of.place),
                        prev_kv: false,
                    });
                }
            }
        }
        Txn {
            compare,
            success,
            failure: Vec::new(),
        }
    }

    /// The etcd leases to grant with, begun or kept alive just now: their ids, that of the delay 0 if there is none.
    fn leases(&mut self, deadline: Instant) -> Result<(i64, i64)> {
        let (session, request) = (self.session, self.request);
        let lease = session.begin(&mut self.lease, lasting(request.ttl, request.bound), deadline)?;
        if request.delay.get() == 0 {
            return Ok((lease.id, 0));
        }
        let delay = session.begin(&mut self.delay, outliving(&lease, request.delay), deadline)?;
        Ok((lease.id, delay.id))
    }

    /// Hands out what was granted. Nothing if it may not be: the epoch has been lifted, or it is over already.
    fn hand_out(&mut self, era: &Era, written: &Written, deadline: Instant) -> Result<Option<Granted>> {
        let (session, request) = (self.session, self.request);
        let Some(lease) = &mut self.lease else {
            return Ok(None); // Nothing of ours is written without one.
        };
        if written.epoch != era.epoch || !session.still_stands(era, &written.header, deadline)? {
            return Ok(None);
        }
        let name = match request.limit {
            Some(_) => Name::Permit(self.id),
            None => Name::Lease(Fence::new(
                era.epoch,
                Count::new(written.revision.max(0).unsigned_abs()),
            )),
        };
        if request.bound {
            let key = self.keys.first().map(|of| of.name(request.limit.is_some()).to_vec());
            Bound::keep(session, key.unwrap_or_default(), *lease, self.delay, request.ttl)?;
        } else if session.now_ms() - lease.since > lease.lasts_ms - request.ttl.get()
            && !session.keep_both(lease, self.delay.as_mut(), deadline)?
        {
            // LOCK-05: the ttl counts from the grant, and its etcd lease began before it.
            return Ok(None);
        }
        let until = lease.since.saturating_add(request.ttl.get());
        // What is held is not taken back.
        (self.lease, self.delay) = (None, None);
        Ok(Some(Granted { name, until }))
    }

    /// Ends what may have been granted and must not be.
    fn take_back(&mut self) {
        let leases = [self.lease.take(), self.delay.take()];
        self.session.discard(leases.into_iter().flatten().map(|lease| lease.id));
    }
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let place = self.place.take().map(|place| place.lease);
        let made = [self.lease.take(), self.delay.take()];
        let made = made.into_iter().flatten().map(|lease| lease.id);
        self.session.discard(place.into_iter().chain(made));
    }
}
