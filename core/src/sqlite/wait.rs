//! Waiting for a turn.
//!
//! A waiter asks again and again, and between two questions holds nothing: no transaction, no mutex. How often it asks
//! depends on how far it has to go: who is next asks every millisecond, so that the hand-over after a release takes
//! about that long; who stands far behind asks forty times a second, so that a long line costs little.
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
/// How often those far behind ask.
const FAR: Duration = Duration::from_millis(25);

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
        sleep(pause(ahead, ends_in).min(deadline - now));
    }
}

/// How long to pause with so many ahead, when the obstacle ends by itself in so many milliseconds.
fn pause(ahead: usize, ends_in: Option<i64>) -> Duration {
    let pace = (NEXT * (1 + 2 * u32::try_from(ahead).unwrap_or(u32::MAX / 4))).min(FAR);
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
