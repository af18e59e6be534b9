//! Leases that end with this process (LOCK-11).
//!
//! The etcd lease of a bound lease is short, [`LASTS_MS`], and a thread of this process keeps it alive until the ttl is
//! over. When the process ends, however it does, the thread ends with it and the lease soon after. A child made by fork
//! has no such thread: what its parent bound ends with the parent.
//!
//! Another process may renew a bound lease. It says so in the lease's record, which the thread reads before it lets the
//! lease run out.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::client::{Keys, Range};
use super::record::Record;
use super::session::{EtcdLease, Session};
use crate::error::{Error, Result};
use crate::limits::Ttl;

/// For how long a bound lease lasts without its process, in milliseconds. A cluster may make more of it.
pub(super) const LASTS_MS: i64 = 3_000;
/// How often it is kept alive, and for how long the cluster has to answer.
const BEAT: Duration = Duration::from_millis(1_000);

/// What this process keeps alive.
#[derive(Default)]
pub(super) struct Bound {
    state: Mutex<State>,
    /// Told when there is more or less to keep alive.
    changed: Condvar,
}

#[derive(Default)]
struct State {
    kept: Vec<Kept>,
    /// Whether the thread runs.
    running: bool,
}

#[derive(Clone)]
struct Kept {
    /// The first of the keys that it holds in the cluster.
    name: Vec<u8>,
    lease: EtcdLease,
    delay: Option<EtcdLease>,
    /// When the ttl is over.
    until: i64,
    /// How often others have renewed it, as far as is known here.
    renewed: i64,
}

impl Bound {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps a lease alive that was granted just now.
    ///
    /// # Errors
    ///
    /// [`Error::Thread`]: it will run out.
    pub(super) fn keep(
        session: &Arc<Session>,
        name: Vec<u8>,
        lease: EtcdLease,
        delay: Option<EtcdLease>,
        ttl: Ttl,
    ) -> Result<()> {
        let mut state = session.bound.state();
        if !state.running {
            let own = Arc::clone(session);
            let thread = thread::Builder::new().name("fence-bound".to_owned());
            thread
                .spawn(move || own.bound.run(&own))
                .map_err(|source| Error::Thread {
                    key: crate::shown::text(&name),
                    source,
                })?;
            state.running = true;
        }
        state.kept.push(Kept {
            name,
            lease,
            delay,
            until: session.now_ms().saturating_add(ttl.get()),
            renewed: 0,
        });
        Ok(())
    }

    /// Its ttl counts anew, to this time. Whether it is this process that keeps it alive.
    pub(super) fn renew(&self, lease: i64, until: i64) -> bool {
        let mut state = self.state();
        let kept = state.kept.iter_mut().find(|kept| kept.lease.id == lease);
        kept.map(|kept| kept.until = until).is_some()
    }

    /// It was released.
    pub(super) fn forget(&self, lease: i64) {
        self.state().kept.retain(|kept| kept.lease.id != lease);
        self.changed.notify_all();
    }

    /// Keeps alive what there is until nothing is left.
    fn run(&self, session: &Session) {
        loop {
            let mut state = self.state();
            if !state.kept.is_empty() {
                let waited = self
                    .changed
                    .wait_timeout_while(state, BEAT, |state| !state.kept.is_empty());
                (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            }
            let kept = state.kept.clone();
            if kept.is_empty() {
                state.running = false;
                return;
            }
            drop(state);
            for before in kept {
                let mut after = before.clone();
                // Trouble may pass before the lease does.
                let is_there = after.beat(session).unwrap_or(true);
                let mut state = self.state();
                if !is_there {
                    state.kept.retain(|kept| kept.lease.id != before.lease.id);
                } else if let Some(kept) = state.kept.iter_mut().find(|kept| kept.lease.id == before.lease.id) {
                    if after.renewed == before.renewed {
                        // This process may have renewed it meanwhile.
                        after.until = kept.until;
                    }
                    *kept = after;
                }
            }
        }
    }
}

impl Kept {
    /// Keeps it alive if it would run out before its ttl. Whether it is there.
    fn beat(&mut self, session: &Session) -> Result<bool> {
        let deadline = Instant::now() + BEAT;
        if self.outlasts_ttl() {
            let found = session.client.range(&Range::of(Keys::One(&self.name)), deadline)?;
            let standing = found.kvs.first().filter(|kv| kv.lease == self.lease.id);
            let Some(record) = standing.and_then(|kv| Record::read(&kv.value)) else {
                return Ok(false);
            };
            if record.renewed != self.renewed {
                self.renewed = record.renewed;
                self.until = session.now_ms().saturating_add(record.ttl.get());
            }
        }
        Ok(self.outlasts_ttl() || session.keep_both(&mut self.lease, self.delay.as_mut(), deadline)?)
    }

    fn outlasts_ttl(&self) -> bool {
        self.lease.since.saturating_add(self.lease.lasts_ms) >= self.until
    }
}
