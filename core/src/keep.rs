//! Keeping a lease or a permit alive while work is done under it: the primitive that [`Lock`] and [`Semaphore`] stand on.
//!
//! A thread renews at a third of the ttl. When the store says that the lease is over, or the ttl has passed since the
//! last renewal that worked, it is *lost*, and stays lost: it is never renewed into a new one. A process that stood still
//! beyond the ttl finds that out at its next question, not only when the thread has run again, for the question looks at
//! the clock.
//!
//! [`Lock`]: crate::Lock
//! [`Semaphore`]: crate::Semaphore

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::key::Key;
use crate::limits::Ttl;
use crate::shown;
use crate::sqlite::{Engine, Granted, Name};

/// The shortest pause between two renewals, so that a ttl of a few milliseconds does not spin.
const SHORTEST: Duration = Duration::from_millis(1);

/// Something that is held and renewed until it is let go.
pub(crate) struct Kept {
    shared: Arc<Shared>,
    renewer: Option<JoinHandle<()>>,
    /// The process that holds it. A child made by fork has a copy of this value, but neither the thread nor the lease.
    process: u32,
}

struct Shared {
    engine: Arc<Engine>,
    key: String,
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
    pub(crate) fn begin(engine: &Arc<Engine>, key: &str, granted: Granted, ttl: Ttl) -> Result<Self> {
        let shared = Arc::new(Shared {
            engine: Arc::clone(engine),
            key: key.to_owned(),
            name: granted.name,
            ttl,
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
                key: shown::text(key.as_bytes()),
                source,
            }),
        }
    }

    pub(crate) fn key(&self) -> &str {
        &self.shared.key
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
        let key = shown::text(self.shared.key.as_bytes());
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
        let released = Key::new(&self.shared.key).and_then(|key| self.shared.engine.release(key, self.shared.name));
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
            let renewed = Key::new(&self.key).and_then(|key| self.engine.renew(key, self.name, Some(self.ttl)));
            match renewed {
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
            call();
        }
    }
}
