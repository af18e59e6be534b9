//! The epoch: a key that says under which epoch fences are given, and for which life of the cluster.
//!
//! A fence's count is the revision of the transaction that granted it, and revisions only grow for as long as a cluster
//! lives. A cluster that was made from a snapshot begins a new life: its revisions go on from the snapshot's, and would be
//! given a second time. So the epoch's key names the life that it was written in, and whoever finds another one writes a
//! larger epoch before anything is granted. A new life shows in three ways, each enough:
//!
//! * *another cluster id*, which a snapshot gets that is restored with another token or other addresses;
//! * *the lead*: every write takes an entry of the cluster's log, and entries are made for other things too. So the log's
//!   index less the revision, the lead, never shrinks. A restored cluster begins a new log, whatever its id;
//! * *a revision lower than one that this process has seen*, also after a member's data was put back by hand.
//!
//! When it is looked at: at an opening, whenever an answer comes from another cluster id, with a lower revision, or from
//! another election (*term*) than the last look: restoring takes one. Every grant is made on the condition that the
//! epoch's key is as this process knows it, and its answer is looked at in these ways before its fence is handed out
//! (LOCK-02).

use std::sync::{Arc, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::client::{Compare, Header, Is, Keys, Op, Range, Target, Txn};
use super::record::EpochRecord;
use super::session::{Session, is_unknown};
use crate::error::{ClusterTrouble, Error, Result};
use crate::fence::{Count, Epoch, Fence};

/// The largest epoch: as large as a store on a file has it.
const LARGEST: u64 = i64::MAX.unsigned_abs();
/// How often a look is taken anew because the cluster changed meanwhile.
const ATTEMPTS: usize = 16;
/// How often the lead is read before it is believed to have shrunk: a member may be behind, or write between the two
/// numbers.
const LOOKS: usize = 3;
const BETWEEN_LOOKS: Duration = Duration::from_millis(20);

/// The epoch under which fences are given now.
#[derive(Debug)]
pub(super) struct Era {
    pub(super) epoch: Epoch,
    /// What stands in the epoch's key.
    pub(super) value: Vec<u8>,
    cluster: u64,
    term: u64,
}

/// What this process has seen of the cluster.
#[derive(Default)]
pub(super) struct Known {
    era: Option<Arc<Era>>,
    /// The cluster's id and the largest revision in an answer of it.
    seen: Option<Seen>,
    /// The largest epoch.
    epoch: Option<Epoch>,
    /// Whether the revision went back, so that the epoch must be lifted, whatever its key says.
    went_back: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    cluster: u64,
    revision: i64,
}

impl Session {
    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The epoch as this process knows it. Looks at the cluster if it does not.
    pub(super) fn era(&self, deadline: Instant) -> Result<Arc<Era>> {
        let known = self.known().era.clone();
        match known {
            Some(era) => Ok(era),
            None => self.look_at_epoch(None, deadline),
        }
    }

    /// What was seen before a question is asked, for [`Session::heard`].
    pub(super) fn asking(&self) -> Option<Seen> {
        self.known().seen
    }

    /// Takes note of an answer. Whether it comes from the life of the cluster that was asked: else the epoch is not known
    /// any more.
    pub(super) fn heard(&self, asked: Option<Seen>, header: &Header) -> bool {
        let mut known = self.known();
        let same_cluster = asked.is_none_or(|seen| seen.cluster == header.cluster_id);
        // Others may have answered meanwhile: what was seen *before* this was asked is what it must not be behind.
        let went_back = same_cluster && asked.is_some_and(|seen| header.revision < seen.revision);
        let revision = match known.seen {
            Some(seen) if seen.cluster == header.cluster_id && !went_back => seen.revision.max(header.revision),
            _ => header.revision,
        };
        known.seen = Some(Seen {
            cluster: header.cluster_id,
            revision,
        });
        known.went_back |= went_back;
        if !same_cluster || went_back {
            known.era = None;
        }
        same_cluster && !went_back
    }

    /// Whether the epoch stands that a grant was made under, now that this is its answer. Looks at the cluster again if
    /// there was an election since the last look.
    pub(super) fn still_stands(&self, era: &Era, header: &Header, deadline: Instant) -> Result<bool> {
        if header.cluster_id != era.cluster {
            return Ok(false);
        }
        if header.raft_term == era.term {
            return Ok(true);
        }
        Ok(self.look_at_epoch(None, deadline)?.value == era.value)
    }

    /// The epoch is not what it was thought to be.
    pub(super) fn forget_epoch(&self, era: &Arc<Era>) {
        let mut known = self.known();
        if known.era.as_ref().is_some_and(|known| Arc::ptr_eq(known, era)) {
            known.era = None;
        }
    }

    /// The epoch that stands in the cluster, if there is one. Writes nothing.
    pub(super) fn peek_epoch(&self, deadline: Instant) -> Result<Option<Epoch>> {
        let name = self.names.epoch();
        let found = self.client.range(&Range::of(Keys::One(&name)), deadline)?;
        let record = found.kvs.first().and_then(|kv| EpochRecord::read(&kv.value));
        Ok(record.map(|record| record.epoch))
    }

    /// Reads the epoch, and lifts it if the cluster began a new life, or if it is not past that of `floor`.
    pub(super) fn look_at_epoch(&self, floor: Option<Fence>, deadline: Instant) -> Result<Arc<Era>> {
        if let Some(floor) = floor.filter(|floor| floor.epoch().get() >= LARGEST) {
            return Err(Error::EpochExhausted { fence: floor });
        }
        let name = self.names.epoch();
        for _ in 0..ATTEMPTS {
            let asked = self.asking();
            let found = self.client.range(&Range::of(Keys::One(&name)), deadline)?;
            self.heard(asked, &found.header);
            let written = found.kvs.first();
            let record = written.and_then(|kv| EpochRecord::read(&kv.value));
            let Some((term, lead)) = self.lead(&found.header, record.as_ref(), deadline)? else {
                continue; // Another cluster answered.
            };

            let (went_back, seen_epoch) = {
                let known = self.known();
                (known.went_back, known.epoch)
            };
            let standing = record.filter(|record| {
                record.cluster == found.header.cluster_id
                    && !went_back
                    && record.lead.is_none_or(|least| lead.is_none_or(|lead| lead >= least))
                    && Some(record.epoch) >= seen_epoch
            });
            let passed = floor.map(Fence::epoch);
            let (epoch, value) = match (standing, written) {
                (Some(record), Some(kv)) if passed.is_none_or(|floor| record.epoch > floor) => {
                    (record.epoch, kv.value.clone())
                }
                _ => {
                    let before = written.and_then(|kv| EpochRecord::read(&kv.value)).map(|r| r.epoch);
                    let record = EpochRecord {
                        epoch: self.after(before.max(seen_epoch).max(passed))?,
                        cluster: found.header.cluster_id,
                        lead,
                    };
                    let value = record.write();
                    let revision = written.map_or(0, |kv| kv.mod_revision);
                    if !self.write_epoch(&name, revision, &value, deadline)? {
                        continue;
                    }
                    (record.epoch, value)
                }
            };

            let era = Arc::new(Era {
                epoch,
                value,
                cluster: found.header.cluster_id,
                term,
            });
            let mut known = self.known();
            if known.seen.is_none_or(|seen| seen.cluster != era.cluster) || known.went_back != went_back {
                continue; // Changed while it was looked at.
            }
            known.went_back = false;
            known.epoch = known.epoch.max(Some(epoch));
            known.era = Some(Arc::clone(&era));
            return Ok(era);
        }
        Err(Error::Replaced {
            path: self.path.clone(),
        })
    }

    /// The election that is known where it was looked, and the lead: nothing for a member that does not tell. Nothing at
    /// all if the member belongs to another cluster than the answer with this header.
    fn lead(
        &self,
        header: &Header,
        record: Option<&EpochRecord>,
        deadline: Instant,
    ) -> Result<Option<(u64, Option<i64>)>> {
        let least = record.and_then(|record| record.lead);
        let mut largest = None;
        let mut term = header.raft_term;
        for look in 0..LOOKS {
            if look > 0 {
                sleep(BETWEEN_LOOKS);
            }
            let status = match self.client.status(deadline) {
                Ok(status) => status,
                // Not every cluster lets every user ask.
                Err(Error::Cluster { trouble, .. }) if trouble != ClusterTrouble::Unavailable => {
                    return Ok(Some((term, largest)));
                }
                Err(error) => return Err(error),
            };
            if status.header.cluster_id != header.cluster_id {
                return Ok(None);
            }
            // The lower one, if there was an election between the two: then it is looked at again.
            term = term.min(status.header.raft_term);
            let index = i64::try_from(status.raft_applied_index).unwrap_or(i64::MAX);
            largest = largest.max(Some(index.saturating_sub(status.header.revision)));
            if least.is_none_or(|least| largest >= Some(least)) {
                break;
            }
        }
        Ok(Some((term, largest)))
    }

    /// The epoch after this one: the time in milliseconds, or one more.
    fn after(&self, before: Option<Epoch>) -> Result<Epoch> {
        let least = before.map_or(1, |epoch| epoch.get().saturating_add(1));
        if least > LARGEST {
            return Err(Error::EpochExhausted {
                fence: Fence::new(Epoch::new(LARGEST), Count::new(0)),
            });
        }
        let now = self.clock.wall_ms().max(0).unsigned_abs();
        Ok(Epoch::new(now.clamp(least, LARGEST)))
    }

    /// Writes the epoch's key if nobody has since that revision; 0 if it was not there. Whether it may have been done.
    fn write_epoch(&self, name: &[u8], revision: i64, value: &[u8], deadline: Instant) -> Result<bool> {
        let txn = Txn {
            compare: vec![Compare {
                keys: Keys::One(name),
                target: Target::Mod(revision),
                result: Is::Equal,
            }],
            success: vec![Op::Put {
                key: name,
                value: value.into(),
                lease: 0,
                prev_kv: false,
            }],
            failure: Vec::new(),
        };
        let asked = self.asking();
        match self.client.txn(&txn, deadline) {
            Ok(answer) => Ok(self.heard(asked, &answer.header) && answer.succeeded),
            // The next look tells.
            Err(error) if is_unknown(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
