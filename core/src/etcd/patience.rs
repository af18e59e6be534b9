//! Waiting for a member's answer, and being told to stop meanwhile.
//!
//! A read from a socket blocks, and whoever wants to stop it is not heard. So a thread that has been given something to
//! ask ([`while_asking`]) reads in slices of [`SLICE`] and asks between two of them. What it asks may itself talk to the
//! cluster: for that time nothing is asked.

use std::cell::Cell;
use std::time::{Duration, Instant};

use ureq::unversioned::transport::{Buffers, NextTimeout, Transport};

/// For how long nobody asks.
const SLICE: Duration = Duration::from_millis(20);

/// The error of a read that was told to stop.
#[derive(Debug, thiserror::Error)]
#[error("told to stop")]
pub(super) struct Stopped;

thread_local! {
    /// What this thread asks while it waits.
    static ASKED: Cell<Option<&'static dyn Fn() -> bool>> = const { Cell::new(None) };
}

/// Puts back what was asked before.
struct Before(Option<&'static dyn Fn() -> bool>);

impl Drop for Before {
    fn drop(&mut self) {
        ASKED.set(self.0.take());
    }
}

/// Runs the work. Whatever it waits for ends with [`Stopped`] soon after `stop` says so.
pub(super) fn while_asking<T>(stop: &dyn Fn() -> bool, work: impl FnOnce() -> T) -> T {
    // SAFETY: only the lifetime changes. `stop` outlives this function, and `Before` takes it out of ASKED before the
    // function is left, also by unwinding.
    let stop = unsafe { std::mem::transmute::<&dyn Fn() -> bool, &'static dyn Fn() -> bool>(stop) };
    let _before = Before(ASKED.replace(Some(stop)));
    work()
}

/// Whether to stop. While it is found out nothing else is asked.
fn told_to_stop() -> bool {
    let before = Before(ASKED.take());
    before.0.is_some_and(|stop| stop())
}

/// A transport that asks while it waits.
#[derive(Debug)]
pub(super) struct Patient<T>(pub(super) T);

impl<T: Transport> Transport for Patient<T> {
    fn buffers(&mut self) -> &mut dyn Buffers {
        self.0.buffers()
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        self.0.transmit_output(amount, timeout)
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        let before = Before(ASKED.take());
        let asks = before.0.is_some();
        drop(before);
        if !asks {
            return self.0.await_input(timeout);
        }
        let started = Instant::now();
        loop {
            let left = timeout.after.saturating_sub(started.elapsed());
            if left.is_zero() {
                return Err(ureq::Error::Timeout(timeout.reason));
            }
            let slice = NextTimeout {
                after: left.min(SLICE).into(),
                ..timeout
            };
            match self.0.await_input(slice) {
                Err(ureq::Error::Timeout(_)) if told_to_stop() => return Err(ureq::Error::Other(Box::new(Stopped))),
                Err(ureq::Error::Timeout(_)) => {}
                done => return done,
            }
        }
    }

    fn is_open(&mut self) -> bool {
        self.0.is_open()
    }

    fn is_tls(&self) -> bool {
        self.0.is_tls()
    }
}
