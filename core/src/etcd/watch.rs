//! Watching keys: an answer without an end, a line for each message.
//!
//! A member that is stopped, or cut off, says nothing, and so does one to which nothing happens. So no stream is trusted
//! for longer than [`TRUST`] in silence: another member is asked from the same revision on, and what the silent one kept
//! to itself comes from there. A member that loses its leader ends the stream by itself.
//!
//! Nothing is missed and nothing comes twice: the next stream begins with the revision after the last one that was seen,
//! and etcd never parts the events of one revision.

use std::cell::Cell;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::client::{Client, Round, Turn};
use super::http::{Failed, Stream};
use super::patience::while_asking;
use super::said::{self, Said};
use super::wire::{self, Answer, Event, Header, Keys, WatchMessage};
use crate::error::{ClusterTrouble, Error, Result};

/// How long a stream may be silent.
const TRUST: Duration = Duration::from_secs(2);
const DOING: &str = "watching";

/// How a watch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Watched {
    /// The one who listened has heard enough.
    Stopped,
    TimeIsOver,
    /// What happened since the revision to begin from is no longer kept; the oldest revision that is.
    Compacted {
        at: i64,
    },
}

/// What one stream came to.
enum Streamed {
    Ended(Watched),
    Interrupted,
    /// It was silent for too long.
    Silent,
}

/// Who listens, and until when.
struct Listener<'a> {
    deadline: Instant,
    interrupted: &'a dyn Fn() -> bool,
    on_events: &'a mut dyn FnMut(&Header, &[Event]) -> ControlFlow<()>,
    /// The revision to begin from; 0: whatever comes.
    from: i64,
}

impl Client {
    /// Hands over what befalls the keys from `start_revision` on (0: from now on) until `on_events` says to stop, the
    /// deadline has passed, or `interrupted`, which is asked about every 20 ms and may use this client, says so.
    ///
    /// # Errors
    ///
    /// [`Error::Interrupted`]; [`Error::Cluster`] if the cluster refuses. A cluster without a quorum is waited for.
    pub(crate) fn watch(
        &self,
        keys: &Keys<'_>,
        start_revision: i64,
        deadline: Instant,
        interrupted: &dyn Fn() -> bool,
        on_events: &mut dyn FnMut(&Header, &[Event]) -> ControlFlow<()>,
    ) -> Result<Watched> {
        let mut listener = Listener {
            deadline,
            interrupted,
            on_events,
            from: start_revision,
        };
        let mut round = Round::new(self, DOING, deadline);
        loop {
            if interrupted() {
                return Err(Error::Interrupted);
            }
            let (member, patience) = match round.next() {
                Ok(next) => next,
                Err(_) => return Ok(Watched::TimeIsOver),
            };
            let turn = self.with_token(member, patience, |token| {
                self.stream(member, token, keys, patience, &mut listener)
            });
            match turn {
                Turn::Done(Streamed::Ended(watched)) => return Ok(watched),
                Turn::Done(Streamed::Interrupted) => return Err(Error::Interrupted),
                Turn::Done(Streamed::Silent) => {}
                Turn::Next { said, .. } => round.failed(member, said),
                Turn::Renew(said) => round.renew(member, said)?,
                Turn::No(trouble, said) => {
                    let said = format!("{}: {said}", self.members.name(member));
                    return Err(self.trouble(DOING, said, trouble));
                }
            }
        }
    }

    /// Listens to one member.
    fn stream(
        &self,
        member: usize,
        token: Option<&str>,
        keys: &Keys<'_>,
        patience: Duration,
        listener: &mut Listener<'_>,
    ) -> Turn<Streamed> {
        let url = format!("{}/v3/watch", self.members.url(member));
        let mut request = wire::keys_json(*keys);
        if listener.from > 0 {
            request.insert("start_revision".to_owned(), listener.from.to_string().into());
        }
        let body = json!({ "create_request": request }).to_string();
        // Until the stream has begun the member's patience counts, then silence does.
        let heard = Cell::new(Instant::now() + patience);
        let (deadline, interrupted) = (listener.deadline, listener.interrupted);
        let stop = || interrupted() || Instant::now() >= deadline.min(heard.get());
        let mut began = false;
        let ended = while_asking(&stop, || {
            let (status, mut stream) = self.http.listen(&url, token, body.as_bytes(), patience)?;
            loop {
                let Some(line) = next_message(&mut stream)? else {
                    return Err(Failed::Lost("the stream ended".to_owned()));
                };
                heard.set(Instant::now() + TRUST);
                began = true;
                if let ControlFlow::Break(turn) = listener.hear(said::read(status, &line)) {
                    return Ok(turn);
                }
            }
        });
        match ended {
            Ok(turn) => turn,
            Err(Failed::Stopped) if Instant::now() >= deadline => Turn::Done(Streamed::Ended(Watched::TimeIsOver)),
            Err(Failed::Stopped) if Instant::now() < heard.get() => Turn::Done(Streamed::Interrupted),
            Err(Failed::Stopped) if began => Turn::Done(Streamed::Silent),
            Err(Failed::Stopped) => Failed::Lost(format!("no answer within {} ms", patience.as_millis())).into(),
            Err(failed) => failed.into(),
        }
    }
}

/// The next line that is not empty.
fn next_message(stream: &mut Stream) -> std::result::Result<Option<Vec<u8>>, Failed> {
    loop {
        match stream.line()? {
            Some(line) if line.iter().all(u8::is_ascii_whitespace) => {}
            line => return Ok(line),
        }
    }
}

impl Listener<'_> {
    /// One message.
    fn hear(&mut self, said: Said) -> ControlFlow<Turn<Streamed>> {
        let json = match said {
            Said::Done(json) => json,
            other => {
                return ControlFlow::Break(match Turn::<Value>::from(other) {
                    Turn::Next { said, uncertain } => Turn::Next { said, uncertain },
                    Turn::Renew(said) => Turn::Renew(said),
                    Turn::No(trouble, said) => Turn::No(trouble, said),
                    Turn::Done(_) => return ControlFlow::Continue(()),
                });
            }
        };
        let Some(message) = json.get("result").and_then(WatchMessage::read) else {
            let said = format!("it said {}", crate::shown::text(json.to_string().as_bytes()));
            return ControlFlow::Break(Turn::No(ClusterTrouble::Setup, said));
        };
        if message.compact_revision > 0 {
            let at = message.compact_revision;
            return ControlFlow::Break(Turn::Done(Streamed::Ended(Watched::Compacted { at })));
        }
        if message.canceled {
            return ControlFlow::Break(canceled(message.cancel_reason));
        }
        let Some(last) = message.events.last() else {
            if self.from == 0 {
                self.from = message.header.revision + 1;
            }
            return ControlFlow::Continue(());
        };
        self.from = last.kv.mod_revision + 1;
        match (self.on_events)(&message.header, &message.events) {
            ControlFlow::Continue(()) => ControlFlow::Continue(()),
            ControlFlow::Break(()) => ControlFlow::Break(Turn::Done(Streamed::Ended(Watched::Stopped))),
        }
    }
}

/// Why the cluster ended a watch. To a watch it does not say that a token is no longer valid, only that this is not
/// permitted.
fn canceled(reason: String) -> Turn<Streamed> {
    if reason.contains("permission denied") || reason.contains("auth") {
        return Turn::Renew(reason);
    }
    let said = if reason.is_empty() {
        "the stream was ended".to_owned()
    } else {
        reason
    };
    Turn::Next { said, uncertain: false }
}
