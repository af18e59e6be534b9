//! How long another process's write lock is waited for.
//!
//! SQLite's own busy timeout sleeps for up to 100 ms at a time, so that a writer who lost the lock by microseconds comes
//! back long after it is free: four processes that acquire and release saw waits of 0.6 to 0.9 s. This handler sleeps
//! for 50 µs, then longer, and gives up after 5 s by the monotonic clock.
//!
//! A call that may be interrupted waits for it in slices, and looks between two of them whether it was.

use std::cell::Cell;
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::error::{Error, Result};

/// How long the lock is waited for. It is held for microseconds, so that whoever holds it this long was stopped.
const PATIENCE: Duration = Duration::from_secs(5);
/// For how long nobody looks whether the call was interrupted.
const SLICE: Duration = Duration::from_millis(25);

thread_local! {
    /// When this thread began to wait. SQLite hands a handler nothing but how often it was called.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
    /// How long this thread waits.
    static PATIENCE_NOW: Cell<Duration> = const { Cell::new(PATIENCE) };
}

/// Runs the work without waiting for anybody.
pub(super) fn never_mind<T>(work: impl FnOnce() -> T) -> T {
    for_at_most(Duration::ZERO, work)
}

/// Runs the work, and does not wait for anybody much longer than it takes to notice an interrupt.
pub(crate) fn briefly<T>(work: impl FnOnce() -> T) -> T {
    for_at_most(SLICE, work)
}

/// Runs the work, which may be run again while it comes to [`Error::Busy`], until the patience is over and the deadline
/// has passed, or `interrupted` says so. Who would wait for a key for longer than 5 s waits so long for the lock as well.
pub(crate) fn until<T>(
    deadline: Instant,
    interrupted: &dyn Fn() -> bool,
    mut work: impl FnMut() -> Result<T>,
) -> Result<T> {
    let began = Instant::now();
    loop {
        match briefly(&mut work) {
            Err(Error::Busy { .. }) if interrupted() => return Err(Error::Interrupted),
            // Where waiting could deadlock SQLite does not wait, but says so at once.
            Err(Error::Busy { .. }) if began.elapsed() < PATIENCE || Instant::now() < deadline => {
                sleep(Duration::from_millis(1));
            }
            done => return done,
        }
    }
}

fn for_at_most<T>(patience: Duration, work: impl FnOnce() -> T) -> T {
    let before = PATIENCE_NOW.replace(patience);
    let done = work();
    PATIENCE_NOW.set(before);
    done
}

/// Sleeps a little and tells SQLite to try again, until the patience is over.
pub(super) fn handler(calls: i32) -> bool {
    let now = Instant::now();
    let began = match (calls, BEGAN.get()) {
        (1.., Some(since)) => since,
        _ => {
            BEGAN.set(Some(now));
            now
        }
    };
    if now.duration_since(began) >= PATIENCE_NOW.get() {
        return false;
    }
    sleep(match calls {
        ..40 => Duration::from_micros(50),
        40..200 => Duration::from_micros(200),
        _ => Duration::from_millis(1),
    });
    true
}
