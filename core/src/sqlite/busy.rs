//! How long another process's write lock is waited for.
//!
//! SQLite's own busy timeout sleeps for up to 100 ms at a time, so that a writer who lost the lock by microseconds comes
//! back long after it is free: four processes that acquire and release saw waits of 0.6 to 0.9 s. This handler sleeps
//! for 50 µs, then longer, and gives up after 5 s by the monotonic clock.

use std::cell::Cell;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long the lock is waited for. It is held for microseconds, so that whoever holds it this long was stopped.
const PATIENCE: Duration = Duration::from_secs(5);

thread_local! {
    /// When this thread began to wait. SQLite hands a handler nothing but how often it was called.
    static BEGAN: Cell<Option<Instant>> = const { Cell::new(None) };
    /// Whether this thread does not wait at all.
    static NEVER: Cell<bool> = const { Cell::new(false) };
}

/// Runs the work without waiting for anybody.
pub(super) fn never_mind<T>(work: impl FnOnce() -> T) -> T {
    let before = NEVER.replace(true);
    let done = work();
    NEVER.set(before);
    done
}

/// Sleeps a little and tells SQLite to try again, until the patience is over.
pub(super) fn handler(calls: i32) -> bool {
    if NEVER.get() {
        return false;
    }
    let now = Instant::now();
    let began = match (calls, BEGAN.get()) {
        (1.., Some(since)) => since,
        _ => {
            BEGAN.set(Some(now));
            now
        }
    };
    if now.duration_since(began) >= PATIENCE {
        return false;
    }
    sleep(match calls {
        ..40 => Duration::from_micros(50),
        40..200 => Duration::from_micros(200),
        _ => Duration::from_millis(1),
    });
    true
}
