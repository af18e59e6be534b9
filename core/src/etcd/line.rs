//! Waiting for a turn (LOCK-07).
//!
//! Whoever waits writes its name into the line of each key that it asks for, leases and permits apart, in one
//! transaction: all its places have one revision, and the line is in the order of revisions. It is served when nobody with
//! a lower revision stands in any of these lines and all keys are free, which the transaction that grants sees to. A
//! newcomer who would not wait is sent away while anybody waits. Of all who wait, the one with the lowest revision is first
//! in every line that it stands in: several keys cannot deadlock.
//!
//! Nobody asks again and again. A waiter watches the one key whose deletion it waits for: the place of who stands before
//! it, or if it is first what holds the key. A deletion so wakes one waiter, not all.
//!
//! A place stands for as long as its etcd lease is kept alive, which its waiter does itself while it watches. Of one that
//! died or was stopped it runs out after [`LASTS_MS`], or what the cluster makes of that.

use std::cell::{Cell, RefCell};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::thread::sleep;
use std::time::{Duration, Instant};

use super::client::{EventKind, Keys, Op, OpAnswer, Range, Txn};
use super::grant::{Attempt, Obstacle, Outcome};
use super::patience::while_asking;
use super::session::{PATIENCE, Session, is_unknown, is_without_lease};
use crate::engine::{Granted, Request};
use crate::error::{ClusterTrouble, Error, Result};
use crate::limits::Wait;

/// For how long a place stands without its waiter, in milliseconds. Clusters have a least time, usually 2 s.
const LASTS_MS: i64 = 2_000;
/// How often a waiter keeps its place alive, and for how long the cluster has to answer.
const BEAT: Duration = Duration::from_millis(600);
/// How long the last look may take, when the wait is over.
const LAST_LOOK: Duration = Duration::from_secs(1);
/// The pause after trouble with the cluster.
const BREATH: Duration = Duration::from_millis(25);

/// A place in every line that was asked for.
pub(super) struct Place {
    /// Its etcd lease.
    pub(super) lease: i64,
    /// In which it was taken.
    pub(super) revision: i64,
}

/// Asks until it is granted, the time is over, or `interrupted` says so. Nothing if the time is over.
pub(super) fn acquire(
    session: &Arc<Session>,
    request: &Request<'_>,
    wait: Wait,
    interrupted: &dyn Fn() -> bool,
) -> Result<Option<Granted>> {
    let begun = Instant::now();
    let deadline = begun + wait.duration();
    // Who would wait for a key for longer than that waits so long for the cluster as well.
    let patience = deadline.max(begun + PATIENCE);
    let mut attempt = Attempt::new(session, request)?;
    let mut waited = false;
    loop {
        // At the end of the wait there is time for one more look.
        let until = patience.max(Instant::now() + LAST_LOOK);
        match while_asking(interrupted, || attempt.run(until)) {
            Ok(Outcome::Granted(granted)) if waited && interrupted() => {
                // What cannot be given back ends with its ttl.
                let _ = session.give_back(request, granted.name);
                return Err(Error::Interrupted);
            }
            Ok(Outcome::Granted(granted)) => return Ok(Some(granted)),
            Ok(Outcome::Busy(obstacle)) => {
                if Instant::now() >= deadline {
                    return Ok(None);
                }
                if interrupted() {
                    return Err(Error::Interrupted);
                }
                waited = true;
                if attempt.place.is_none() {
                    // Then the key may have become free meanwhile.
                    while_asking(interrupted, || attempt.enlist(until))?;
                } else if !attempt.watch(&obstacle, deadline, interrupted)? {
                    attempt.place = None;
                }
            }
            Err(error) if is_passing(&error) && interrupted() => return Err(Error::Interrupted),
            Err(error) if is_passing(&error) && Instant::now() + BREATH < patience => sleep(BREATH),
            Err(error) => return Err(error),
        }
    }
}

/// Whether to try again is of use while there is time.
fn is_passing(error: &Error) -> bool {
    let unavailable = matches!(
        error,
        Error::Cluster {
            trouble: ClusterTrouble::Unavailable,
            ..
        }
    );
    unavailable || is_unknown(error)
}

impl Attempt<'_> {
    /// Takes a place in every line.
    fn enlist(&mut self, deadline: Instant) -> Result<()> {
        let lease = self.session.new_lease(LASTS_MS, deadline)?.id;
        let mut success: Vec<Op<'_>> = Vec::new();
        for of in &self.keys {
            success.push(Op::Put {
                key: &of.place,
                value: self.holder().into(),
                lease,
                prev_kv: false,
            });
        }
        // Written twice, it still has the revision of the first time.
        success.extend(self.keys.first().map(|of| Op::Range(Range::of(Keys::One(&of.place)))));
        let txn = Txn {
            success,
            ..Txn::default()
        };
        let revision = loop {
            match self.session.client.txn(&txn, deadline) {
                Ok(answer) => {
                    break answer.answers.iter().find_map(|answer| match answer {
                        OpAnswer::Range(ranged) => ranged.kvs.first().map(|kv| kv.create_revision),
                        _ => None,
                    });
                }
                Err(error) if is_unknown(&error) && Instant::now() < deadline => {}
                Err(error) if is_without_lease(&error) => break None,
                Err(error) => {
                    self.session.discard([lease]);
                    return Err(error);
                }
            }
        };
        self.place = revision.map(|revision| Place { lease, revision });
        Ok(())
    }

    /// Who stands there, for people.
    fn holder(&self) -> Vec<u8> {
        format!("{{\"process\":{}}}", std::process::id()).into_bytes()
    }

    /// Waits until the obstacle may be gone. Whether we still stand in line.
    fn watch(&self, obstacle: &Obstacle, deadline: Instant, interrupted: &dyn Fn() -> bool) -> Result<bool> {
        let Some(place) = &self.place else { return Ok(false) };
        let beaten = Cell::new(Instant::now());
        let stands = Cell::new(true);
        let trouble = RefCell::new(None);
        let stop = || {
            if interrupted() {
                return true;
            }
            if beaten.get().elapsed() >= BEAT {
                match self.session.client.lease_keep_alive(place.lease, Instant::now() + BEAT) {
                    Ok(Some(_)) => beaten.set(Instant::now()),
                    Ok(None) => stands.set(false),
                    // It may pass before the place does.
                    Err(error) => drop(trouble.replace(Some(error))),
                }
            }
            !stands.get()
        };
        let watched = self.session.client.watch(
            &Keys::Prefix(&obstacle.keys),
            obstacle.revision + 1,
            deadline,
            &stop,
            &mut |_, events| {
                if events.iter().any(|event| event.kind == EventKind::Delete) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            },
        );
        match watched {
            Err(Error::Interrupted) if !stands.get() => Ok(false),
            // The next attempt tells whether it has passed.
            Err(error) if is_passing(&error) => Ok(true),
            watched => watched.map(|_| true),
        }
    }
}
