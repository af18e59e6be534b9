//! Waiting: for an event with a deadline, never for a time.
//!
//! The deadline says that something hangs; it is no measure of speed. It is long, so that a busy machine fails no test.

use std::time::{Duration, Instant};

/// How long one step of a host may take before the test says that it hangs.
pub const DEADLINE: Duration = Duration::from_secs(120);

/// Waits until `done` answers true, for what sends no event that one could wait for. `what` completes the sentence
/// 'waited in vain until …'.
///
/// # Panics
///
/// When [`DEADLINE`] has passed.
#[track_caller]
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < DEADLINE, "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}
