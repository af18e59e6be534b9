//! What one process has of a cluster: the connections, what it has seen, and the leases that end with it.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::bound::{self, Bound};
use super::client::{Client, Header, Op, OpAnswer, Range, Ranged, Revoked, Txn};
use super::epoch::Known;
use super::location::Location;
use super::names::Names;
use crate::clock::Clock;
use crate::error::{ClusterTrouble, Error, Result};
use crate::limits::{Delay, Ttl};

/// For how long a cluster that does not answer is asked again, beside the caller's own wait.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);
/// For how long what is not needed any more is taken back. What cannot be ends with its etcd lease.
const PARTING: Duration = Duration::from_millis(500);
/// By how much an etcd lease is longer than the ttl at least, in milliseconds: it begins a little before the grant.
const MARGIN_MS: i64 = 500;
/// By how much the key that keeps a delay outlives the lease at least, besides the delay, in milliseconds: the two are
/// kept alive one after the other.
const APART_MS: i64 = 2_000;

/// See above.
pub(super) struct Session {
    pub(super) client: Client,
    pub(super) names: Names,
    pub(super) path: PathBuf,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) known: Mutex<Known>,
    pub(super) bound: Bound,
}

/// An etcd lease: keys that were written with it vanish when it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct EtcdLease {
    pub(super) id: i64,
    /// For how long it lasts from each time that it is kept alive, in milliseconds.
    pub(super) lasts_ms: i64,
    /// When it was last kept alive for certain, by [`Session::now_ms`].
    pub(super) since: i64,
}

impl EtcdLease {
    /// One of which only the id is known.
    pub(super) const fn known(id: i64) -> Self {
        Self {
            id,
            lasts_ms: 0,
            since: i64::MIN,
        }
    }
}

impl Session {
    pub(super) fn new(location: Location, path: PathBuf, clock: Arc<dyn Clock>) -> Result<Self> {
        Ok(Self {
            names: Names::new(location.prefix()),
            client: Client::new(location)?,
            path,
            clock,
            known: Mutex::default(),
            bound: Bound::default(),
        })
    }

    pub(super) fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    /// A new etcd lease of so many milliseconds at least.
    pub(super) fn new_lease(&self, at_least_ms: i64, deadline: Instant) -> Result<EtcdLease> {
        let id = random_id()?;
        let since = self.now_ms();
        let granted = self.client.lease_grant(id, seconds(at_least_ms), deadline)?;
        Ok(EtcdLease {
            id,
            lasts_ms: granted.ttl_s.saturating_mul(1000),
            since,
        })
    }

    /// The one that was made before, kept alive, or a new one.
    pub(super) fn begin(&self, made: &mut Option<EtcdLease>, at_least_ms: i64, deadline: Instant) -> Result<EtcdLease> {
        if let Some(lease) = made
            && self.keep_alive(lease, deadline)?
        {
            return Ok(*lease);
        }
        Ok(*made.insert(self.new_lease(at_least_ms, deadline)?))
    }

    /// Lets it last anew. Whether it is there.
    pub(super) fn keep_alive(&self, lease: &mut EtcdLease, deadline: Instant) -> Result<bool> {
        let now = self.now_ms();
        let Some(lasts_s) = self.client.lease_keep_alive(lease.id, deadline)? else {
            return Ok(false);
        };
        lease.since = now;
        lease.lasts_ms = lasts_s.saturating_mul(1000);
        Ok(true)
    }

    /// Lets a lease last anew, and with it the key that keeps its delay, which must outlive it. Whether they are there.
    pub(super) fn keep_both(
        &self,
        lease: &mut EtcdLease,
        delay: Option<&mut EtcdLease>,
        deadline: Instant,
    ) -> Result<bool> {
        let Some(delay) = delay else {
            return self.keep_alive(lease, deadline);
        };
        // The delay first: should the process end between the two, it is not the shorter one.
        if !self.keep_alive(delay, deadline)? || !self.keep_alive(lease, deadline)? {
            return Ok(false);
        }
        let apart = self.now_ms() - delay.since;
        Ok(apart <= APART_MS || self.keep_alive(delay, deadline)?)
    }

    /// What stands in these ranges, at one revision; nothing if the cluster began a new life since it was last asked.
    pub(super) fn read(&self, ranges: Vec<Range<'_>>, deadline: Instant) -> Result<Option<(Header, Vec<Ranged>)>> {
        let txn = Txn {
            success: ranges.into_iter().map(Op::Range).collect(),
            ..Txn::default()
        };
        let asked = self.asking();
        let answer = self.client.txn(&txn, deadline)?;
        if !self.heard(asked, &answer.header) {
            return Ok(None);
        }
        let found = answer.answers.into_iter().filter_map(|answer| match answer {
            OpAnswer::Range(ranged) => Some(ranged),
            _ => None,
        });
        Ok(Some((answer.header, found.collect())))
    }

    /// Ends it and its keys. Whether this call may have been what ended it.
    pub(super) fn end(&self, lease: i64, deadline: Instant) -> Result<bool> {
        Ok(self.client.lease_revoke(lease, deadline)? != Revoked::NotThere)
    }

    /// Ends leases that nobody needs any more, as far as that is soon done.
    pub(super) fn discard(&self, leases: impl IntoIterator<Item = i64>) {
        let deadline = Instant::now() + PARTING;
        for lease in leases.into_iter().filter(|lease| *lease != 0) {
            let _ = self.client.lease_revoke(lease, deadline);
        }
    }
}

/// When a call without a wait of its own gives up.
pub(super) fn patience() -> Instant {
    Instant::now() + PATIENCE
}

/// For how long the etcd lease of a lease with this ttl is asked for, in milliseconds. One that is bound to its process
/// is short, and kept alive for as long as the process lives.
pub(super) fn lasting(ttl: Ttl, bound: bool) -> i64 {
    let lasting = ttl.get().saturating_add(MARGIN_MS);
    if bound { lasting.min(bound::LASTS_MS) } else { lasting }
}

/// For how long the etcd lease of the key that keeps a delay is asked for, in milliseconds.
pub(super) fn outliving(lease: &EtcdLease, delay: Delay) -> i64 {
    lease.lasts_ms.saturating_add(delay.get()).saturating_add(APART_MS)
}

/// Whole seconds, rounded up: etcd counts in no other.
pub(super) fn seconds(ms: i64) -> i64 {
    ms.saturating_add(999) / 1000
}

/// Whether nobody knows what came of a write.
pub(super) fn is_unknown(error: &Error) -> bool {
    matches!(error, Error::UnknownOutcome { .. })
}

/// Whether a key was to be written with an etcd lease that has ended.
pub(super) fn is_without_lease(error: &Error) -> bool {
    matches!(
        error,
        Error::Cluster {
            trouble: ClusterTrouble::LeaseNotFound,
            ..
        }
    )
}

/// A positive number like no other.
fn random_id() -> Result<i64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|source| Error::Random { source })?;
    Ok((i64::from_be_bytes(bytes) & i64::MAX).max(1))
}
