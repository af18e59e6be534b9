//! Who holds the key that we wait for: the line on a terminal that counts down, and the message at the end.

use std::cell::Cell;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use fence_core::{Hold, HoldKind, Limit, Store, Wait, shown};

/// How often the line is written anew.
const PACE: Duration = Duration::from_secs(1);
/// Back to the line's start, and nothing behind what is written there.
const CLEAR: &str = "\r\x1b[K";

/// Somebody who waits for keys, or for a permit.
pub struct Waiting<'a> {
    pub store: &'a Store,
    /// In the order of their bytes.
    pub keys: Vec<&'a str>,
    pub limit: Option<Limit>,
    pub wait: Wait,
    began: Instant,
    /// When the line is written next; nothing where there is no terminal to write it to.
    next: Cell<Option<Instant>>,
}

impl<'a> Waiting<'a> {
    /// Begins to wait now.
    pub fn begin(store: &'a Store, keys: &[&'a str], limit: Option<Limit>, wait: Wait) -> Self {
        let mut keys = keys.to_vec();
        keys.sort_unstable();
        let began = Instant::now();
        Self {
            store,
            keys,
            limit,
            wait,
            began,
            next: Cell::new(std::io::stderr().is_terminal().then_some(began)),
        }
    }

    /// Writes the line anew, once in a second. To be called often.
    pub fn tick(&self) {
        let now = Instant::now();
        match self.next.get() {
            Some(next) if now >= next => self.next.set(Some(now + PACE)),
            _ => return,
        }
        let left = self.wait.duration().saturating_sub(self.began.elapsed());
        let line = format!("{CLEAR}fence: {}; waiting, {} left", self.obstacle(), time(left));
        // A terminal that has gone away is told nothing.
        let _ = std::io::stderr().write_all(line.as_bytes());
    }

    /// Takes the line away, if there is one.
    pub fn end(&self) {
        if self.next.take().is_some_and(|next| next > self.began) {
            let _ = std::io::stderr().write_all(CLEAR.as_bytes());
        }
    }

    /// The message when the wait is over.
    pub fn in_vain(&self) -> String {
        let waited = match self.wait {
            Wait::MIN => String::new(),
            wait => format!(", after waiting {}", time(wait.duration())),
        };
        format!(
            "fence: {}{waited}: the command was not run; wait longer, or try again later",
            self.obstacle()
        )
    }

    /// Who is in the way.
    fn obstacle(&self) -> String {
        let Ok(holds) = self.store.holds() else {
            return format!("{} cannot be looked up", self.shown());
        };
        // They come in the order of their keys.
        let last = self.keys.last().copied().unwrap_or_default();
        let holds: Vec<Hold> = holds
            .map_while(Result::ok)
            .take_while(|hold| hold.key.as_str() <= last)
            .filter(|hold| self.keys.contains(&hold.key.as_str()))
            .filter(|hold| (hold.kind == HoldKind::Permit) == self.limit.is_some())
            .collect();
        let Some(first) = holds.iter().min_by_key(|hold| hold.remaining_ms) else {
            return format!("others wait for {} before us", self.shown());
        };
        let key = shown::text(first.key.as_bytes());
        let left = time(Duration::from_millis(first.remaining_ms.max(0).unsigned_abs()));
        match (first.kind, self.limit) {
            (HoldKind::Delay, _) => format!("{key} is closed for {left} more, for a lease of it ended without release"),
            (_, Some(limit)) => format!(
                "{} of {} permits of {key} are out, the first by process {} for {left} if it is not renewed",
                holds.len(),
                limit.get(),
                first.process
            ),
            (_, None) => format!(
                "{key} is held by process {} for {left} if it is not renewed",
                first.process
            ),
        }
    }

    fn shown(&self) -> String {
        let keys: Vec<_> = self.keys.iter().map(|key| shown::text(key.as_bytes())).collect();
        keys.join(", ")
    }
}

/// A length of time as people say it: to the second, below that to the millisecond.
fn time(length: Duration) -> String {
    match length.as_secs() {
        0 => format!("{} ms", length.as_millis()),
        seconds @ 1..=119 => format!("{seconds} s"),
        seconds @ 120..=7199 => format!("{} min", seconds / 60),
        seconds => format!("{} h", seconds / 3600),
    }
}
