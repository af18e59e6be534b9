//! Keeping a lease or a permit alive while work is done under it: the primitive that [`Lock`], [`Semaphore`] and
//! [`Store::keep`] stand on.
//!
//! A thread renews at a third of the ttl. When the store says that the lease is over, or the ttl has passed since the
//! last renewal that worked, it is *lost*, and stays lost: it is never renewed into a new one. A process that stood still
//! beyond the ttl finds that out at its next question, not only when the thread has run again, for the question looks at
//! the clock.
//!
//! [`Lock`]: crate::Lock
//! [`Semaphore`]: crate::Semaphore
//! [`Store::keep`]: crate::Store::keep

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::engine::{Engine, Granted, Name, Request};
use crate::error::{Error, Result};
use crate::key::Key;
use crate::limits::Ttl;
use crate::shown;

/// The shortest pause between two renewals, so that a ttl of a few milliseconds does not spin.
const SHORTEST: Duration = Duration::from_millis(1);
/// How many keys a message names.
const SHOWN_KEYS: usize = 3;

/// Something that is held and renewed until it is let go.
pub(crate) struct Kept {
    shared: Arc<Shared>,
    renewer: Option<JoinHandle<()>>,
    /// The process that holds it. A child made by fork has a copy of this value, but neither the thread nor the lease.
    process: u32,
}

struct Shared {
    engine: Arc<dyn Engine>,
    /// What is held under the name: one key, or several under one fence.
    keys: Vec<String>,
    several: bool,
    name: Name,
    ttl: Ttl,
    lost: AtomicBool,
    /// Until when it is live for certain, by the store's clock.
    live_until: AtomicI64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    let_go: bool,
    /// What to call when it is lost.
    on_lost: Vec<Box<dyn FnOnce() + Send>>,
}

impl Kept {
    /// Begins to renew what was granted just now.
    pub(crate) fn begin(engine: &Arc<dyn Engine>, request: &Request<'_>, granted: Granted) -> Result<Self> {
        let shared = Arc::new(Shared {
            engine: Arc::clone(engine),
            keys: request.keys.iter().map(|key| key.as_str().to_owned()).collect(),
            several: request.several,
            name: granted.name,
            ttl: request.ttl,
            lost: AtomicBool::new(false),
            live_until: AtomicI64::new(granted.until),
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        let mut kept = Self {
            shared,
            renewer: None,
            process: std::process::id(),
        };
        let shared = Arc::clone(&kept.shared);
        let thread = thread::Builder::new()
            .name("fence-renew".to_owned())
            .spawn(move || shared.renew_until_let_go());
        match thread {
            Ok(renewer) => {
                kept.renewer = Some(renewer);
                Ok(kept)
            }
            // Dropping it releases it.
            Err(source) => Err(Error::Thread {
                key: kept.shared.shown(),
                source,
            }),
        }
    }

    /// The keys that are held: one, or those of a lease of several.
    pub(crate) fn keys(&self) -> &[String] {
        &self.shared.keys
    }

    pub(crate) fn name(&self) -> Name {
        self.shared.name
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.shared.is_lost()
    }

    /// Has `call` run once it is lost, on the thread that renews; at once if it is lost already.
    pub(crate) fn on_lost(&self, call: impl FnOnce() + Send + 'static) {
        let mut state = self.shared.state();
        if self.shared.lost.load(Ordering::Acquire) {
            drop(state);
            call();
        } else {
            state.on_lost.push(Box::new(call));
        }
    }

    /// Stops renewing and releases it.
    ///
    /// # Errors
    ///
    /// [`Error::LeaseLost`] or [`Error::PermitLost`] when it was not live to the end.
    pub(crate) fn let_go(mut self) -> Result<()> {
        if self.process == std::process::id() && self.end() {
            return Ok(());
        }
        let key = self.shared.shown();
        Err(match self.shared.name {
            Name::Lease(fence) => Error::LeaseLost { key, fence },
            Name::Permit(permit) => Error::PermitLost { key, permit },
        })
    }

    fn end(&mut self) -> bool {
        self.shared.state().let_go = true;
        self.shared.changed.notify_all();
        if let Some(renewer) = self.renewer.take() {
            // A callback of the caller's that panicked has had its effect already.
            let _ = renewer.join();
        }
        let live = !self.shared.is_lost();
        let released = self.shared.release();
        // Where the store cannot be asked, the clock has answered; the lease then ends with its ttl.
        live && released.unwrap_or(true)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        if self.process != std::process::id() {
            std::mem::forget(self.renewer.take());
        } else if self.renewer.is_some() || !self.shared.state().let_go {
            self.end();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Once answered with yes, always: who was told so may have given up already.
    fn is_lost(&self) -> bool {
        if self.engine.now_ms() >= self.live_until.load(Ordering::Acquire) {
            self.lost.store(true, Ordering::Release);
        }
        self.lost.load(Ordering::Acquire)
    }

    fn renew(&self) -> Result<bool> {
        match self.name {
            Name::Lease(fence) if self.several => self.engine.renew_all(fence, Some(self.ttl)),
            name => self.engine.renew(self.key()?, name, Some(self.ttl)),
        }
    }

    fn release(&self) -> Result<bool> {
        match self.name {
            Name::Lease(fence) if self.several => self.engine.release_all(fence),
            name => self.engine.release(self.key()?, name),
        }
    }

    /// The key, where there is but one.
    fn key(&self) -> Result<Key<'_>> {
        Key::new(self.keys.first().map_or("", String::as_str))
    }

    /// The keys as messages show them.
    fn shown(&self) -> String {
        let mut shown: Vec<_> = self
            .keys
            .iter()
            .take(SHOWN_KEYS)
            .map(|key| shown::text(key.as_bytes()))
            .collect();
        if self.keys.len() > SHOWN_KEYS {
            shown.push(format!("… ({} keys)", self.keys.len()));
        }
        shown.join(", ")
    }

    fn renew_until_let_go(&self) {
        let third = (self.ttl.duration() / 3).max(SHORTEST);
        let mut pause = third;
        loop {
            let state = self.state();
            let (state, _) = self
                .changed
                .wait_timeout_while(state, pause, |state| !state.let_go)
                .unwrap_or_else(PoisonError::into_inner);
            if state.let_go {
                return;
            }
            drop(state);
            if self.is_lost() {
                return self.lose();
            }
            let asked_at = self.engine.now_ms();
            match self.renew() {
                Ok(true) => {
                    // Counted from before the question: never longer than the store's own count.
                    self.live_until
                        .store(asked_at.saturating_add(self.ttl.get()), Ordering::Release);
                    pause = third;
                }
                Ok(false) => return self.lose(),
                Err(_) if self.is_lost() => return self.lose(),
                // Trouble with the store may pass before the lease does.
                Err(_) => pause = (third / 8).max(SHORTEST),
            }
        }
    }

    fn lose(&self) {
        let calls = {
            let mut state = self.state();
            self.lost.store(true, Ordering::Release);
            std::mem::take(&mut state.on_lost)
        };
        for call in calls {
            // One that panics keeps no other from being told; its message was printed.
            let _ = catch_unwind(AssertUnwindSafe(call));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicI64, Ordering};
    use std::sync::mpsc::channel;

    use crate::clock::Clock;
    use crate::error::{Error, Result};
    use crate::limits::Ttl;
    use crate::store::{AcquireOptions, Store};

    /// Stands still but for what the test adds.
    #[derive(Clone, Default)]
    struct Stepped(Arc<AtomicI64>);

    impl Clock for Stepped {
        fn wall_ms(&self) -> i64 {
            self.now_ms()
        }

        fn now_ms(&self) -> i64 {
            self.0.load(Ordering::SeqCst)
        }

        fn boot(&self) -> Result<String> {
            Ok(String::new())
        }
    }

    #[test]
    fn several_keys_are_renewed_together_and_lost_together() -> std::result::Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let clock = Stepped::default();
        let store = Store::with_clock(folder.path().join("kv.db"), clock.clone())?;
        let options = AcquireOptions {
            ttl: Ttl::new(60)?,
            ..AcquireOptions::default()
        };
        let held = store.keep(&["b", "a", "b"], &options, &|| false)?.ok_or("held")?;
        assert_eq!(held.keys(), ["a", "b"]);
        let (tell, lost) = channel();
        held.on_lost(move || tell.send(()).unwrap_or(()));

        // Far past the first ttl. A renewal shows in the store before its own thread knows of it: hence steps of less than
        // half a ttl.
        for _ in 0..10 {
            clock.0.fetch_add(20, Ordering::SeqCst);
            let renewed = || -> Result<bool> {
                let holds = store.holds()?.collect::<Result<Vec<_>>>()?;
                Ok(holds.len() == 2 && holds.iter().all(|hold| hold.remaining_ms == 60))
            };
            let begun = std::time::Instant::now();
            while !renewed()? {
                assert!(!held.is_lost());
                assert!(begun.elapsed().as_secs() < 60, "waited in vain for a renewal");
                std::thread::yield_now();
            }
        }

        // As if it had run out.
        assert!(store.release_all(held.fence())?);
        lost.recv()?;
        assert!(held.is_lost());
        assert!(matches!(held.release(), Err(Error::LeaseLost { key, .. }) if key == "'a', 'b'"));
        Ok(())
    }
}
