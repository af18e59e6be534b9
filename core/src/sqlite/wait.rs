//! Waiting for a turn.
//!
//! A waiter asks again and again, and between two questions holds nothing: no transaction, no mutex. How often it asks
//! depends on how far it has to go: who is next asks every millisecond, so that the hand-over after a release takes
//! about that long. Who stands behind others asks less often, and half as often after each time that nobody before it has
//! left, down to ten times a second: most of what a question costs is the waking, and a long line is to cost little.
//!
//! Whoever is told to stop stops before its next question. What was granted in that very moment is given back, so an
//! interrupted wait has granted nothing.

use std::thread::sleep;
use std::time::{Duration, Instant};

use super::grant::Attempt;
use super::line::Place;
use super::{Engine, busy};
use crate::engine::{Granted, Request};
use crate::error::{Error, Result};
use crate::limits::Wait;

/// How often the first in line asks.
const NEXT: Duration = Duration::from_millis(1);
/// How seldom those far behind ask in a line that stands still, and how seldom whoever is next but one, two, ... does.
const FAR: Duration = Duration::from_millis(100);
const STEP: Duration = Duration::from_millis(10);

/// Asks until it is granted, the time is over, or `interrupted` says so. Nothing if the time is over.
pub(super) fn acquire(
    engine: &Engine,
    request: &Request<'_>,
    wait: Wait,
    interrupted: &dyn Fn() -> bool,
) -> Result<Option<Granted>> {
    let deadline = Instant::now() + wait.duration();
    let mut stand = Stand {
        engine,
        request,
        place: Place::default(),
    };
    let mut waited = false;
    let mut line = Line::default();
    loop {
        let (ahead, ends_in) = match busy::until(deadline, interrupted, || engine.attempt(request, &mut stand.place))? {
            Attempt::Granted(granted) if waited && interrupted() => {
                // What cannot be given back ends with its ttl.
                let _ = engine.give_back(request, granted.name);
                return Err(Error::Interrupted);
            }
            Attempt::Granted(granted) => return Ok(Some(granted)),
            Attempt::Busy { ahead, ends_in } => (ahead, ends_in),
        };
        waited = true;
        let now = Instant::now();
        if now >= deadline {
            return Ok(None);
        }
        if interrupted() {
            return Err(Error::Interrupted);
        }
        if busy::until(deadline, interrupted, || engine.stand(request, &mut stand.place))? {
            continue; // Newly in line: the key may have become free meanwhile.
        }
        sleep(pause(line.pace(ahead), ends_in).min(deadline - now));
    }
}

/// What a waiter has seen of the line before it.
#[derive(Default)]
struct Line {
    ahead: usize,
    /// How often in a row it was found as long as before.
    still: u32,
}

impl Line {
    /// How long to pause with so many ahead. A line that moves takes a millisecond or more for each of them.
    fn pace(&mut self, ahead: usize) -> Duration {
        self.still = if ahead == self.ahead { self.still + 1 } else { 0 };
        self.ahead = ahead;
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX / 4);
        if ahead == 0 {
            return NEXT;
        }
        let moving = NEXT * (1 + 2 * ahead);
        moving
            .saturating_mul(1 << self.still.min(8))
            .min(STEP.saturating_mul(1 + ahead))
            .min(FAR)
    }
}

/// The pause of this pace; shorter if the obstacle ends by itself before, in so many milliseconds.
fn pause(pace: Duration, ends_in: Option<i64>) -> Duration {
    let end = ends_in.and_then(|ms| u64::try_from(ms).ok()).map(Duration::from_millis);
    end.map_or(pace, |end| pace.min(end.max(Duration::from_micros(200))))
}

/// A place in line that is left however the waiting ends.
struct Stand<'a> {
    engine: &'a Engine,
    request: &'a Request<'a>,
    place: Place,
}

impl Drop for Stand<'_> {
    fn drop(&mut self) {
        // Who cannot leave because the store is not to be had is forgotten after a while.
        let _ = busy::briefly(|| self.engine.leave(self.request, &mut self.place));
    }
}
