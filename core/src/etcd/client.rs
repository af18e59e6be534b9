//! A small blocking client of etcd's v3 API, over its JSON gateway.
//!
//! # Why HTTP and JSON, and no gRPC
//!
//! The usual crate, `etcd-client`, stands on tonic and tokio. This library is loaded into programs that are not ours:
//! they fork (a runtime's threads are not there in the child, and its locks may be held for ever), they have threads of
//! their own, they may load and close us at any time, and they call from wherever SQLite calls. A request that is sent
//! and answered on the thread that asks for it needs none of that: no runtime, no thread, no handler. etcd's gateway
//! gives exactly that, on the port that clients use already: one POST for a transaction. It costs a base64 and a JSON of
//! a few hundred bytes, beside a write that a quorum syncs to its disks.
//!
//! `ureq` does HTTP/1.1 blocking, keeps connections open, has time-outs for each step, and lets us bring the transport
//! along. That is taken from its `unversioned` part, which may change between minor versions: it is all in three small
//! files (`http.rs`, `patience.rs`, `tls.rs`), and in exchange a wait can be interrupted, and a request that never left
//! is told from one whose answer was lost. TLS is `rustls` with `ring`: no OpenSSL, whose state a host may share with us.
//!
//! # What every call keeps
//!
//! * It ends soon after its deadline, whatever the members do. Each member gets a third of the time that is left, from
//!   100 ms to 2 s, so that one that is stopped takes no more; then the next is asked, and all of them again after a
//!   pause, for a new leader is elected within seconds.
//! * What only reads, or can be repeated without harm, is repeated. A transaction that writes is sent again only if it
//!   cannot have been done; else the answer is [`Error::UnknownOutcome`], and the caller looks for what it wrote.
//! * A token that is no longer valid is renewed within the call.
//!
//! A client belongs to the process that made it: after a fork the child makes one of its own.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustls::ClientConfig;
use serde_json::{Value, json};

use super::http::{Failed, Http, NO_TRUST};
use super::location::User;
use super::members::Members;
use super::said::{self, Said};
use super::tls;
use super::wire::{self, Answer};
use crate::error::{ClusterTrouble, Error, Result};

pub(crate) use super::location::Location;
pub(crate) use super::wire::{
    Compare, EventKind, Header, Is, KeyValue, Keys, LeaseGranted, LeaseLeft, Op, OpAnswer, Range, Ranged, SortOrder,
    SortTarget, Status, Target, Txn, TxnAnswer,
};

/// A member has this long to answer at least, and at most.
const LEAST_PATIENCE: Duration = Duration::from_millis(100);
const MOST_PATIENCE: Duration = Duration::from_secs(2);
/// How long to pause after all members were asked in vain, at first and at last.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(10);
pub(super) const LAST_PAUSE: Duration = Duration::from_millis(100);
/// How often a token is renewed within one call.
const RENEWALS: usize = 3;

/// A cluster, as one process talks to it.
#[derive(Debug)]
pub(crate) struct Client {
    location: Location,
    pub(super) http: Http,
    pub(super) members: Members,
    token: Mutex<Token>,
}

#[derive(Clone, Debug)]
enum Token {
    /// To be asked for.
    Unknown,
    /// There is no user, or the cluster knows none.
    None,
    Is(Arc<str>),
}

/// What came of ending a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Revoked {
    Ended,
    /// There was none.
    NotThere,
    /// There is none, and it was tried before and the answer lost: that try may have ended it.
    Perhaps,
}

/// What came of asking one member.
pub(super) enum Turn<T> {
    Done(T),
    /// Another member is to be asked. See [`Said::Later`].
    Next {
        said: String,
        uncertain: bool,
    },
    /// A new token is to be asked for.
    Renew(String),
    No(ClusterTrouble, String),
}

impl Client {
    /// A client of this cluster. Reads the certificates that it needs, and asks nobody yet.
    ///
    /// # Errors
    ///
    /// [`Error::Cluster`] if a certificate cannot be used.
    pub(crate) fn new(location: Location) -> Result<Self> {
        let tls = location.tls().then(tls::configuration).transpose();
        let tls = tls.map_err(|said| Error::Cluster {
            location: location.shown().to_owned(),
            doing: "preparing TLS",
            said,
            trouble: ClusterTrouble::Setup,
        })?;
        Ok(Self::over(location, tls))
    }

    fn over(location: Location, tls: Option<Arc<ClientConfig>>) -> Self {
        let token = location.user().map_or(Token::None, |_| Token::Unknown);
        Self {
            http: Http::new(tls),
            members: Members::new(location.urls()),
            token: Mutex::new(token),
            location,
        }
    }

    /// Reads keys.
    pub(crate) fn range(&self, range: &Range<'_>, deadline: Instant) -> Result<Ranged> {
        self.answer("kv/range", "reading", range.json(), false, deadline)
    }

    /// Does a transaction, at most once.
    pub(crate) fn txn(&self, txn: &Txn<'_>, deadline: Instant) -> Result<TxnAnswer> {
        let doing = if txn.writes() { "writing" } else { "reading" };
        self.answer("kv/txn", doing, txn.json(), txn.writes(), deadline)
    }

    /// Makes a lease of at least so many seconds, with an id that nobody else chooses: 1 or more, and random.
    pub(crate) fn lease_grant(&self, id: i64, ttl_s: i64, deadline: Instant) -> Result<LeaseGranted> {
        let body = json!({ "ID": id.to_string(), "TTL": ttl_s.to_string() });
        match self.answer("lease/grant", "making a lease", body, false, deadline) {
            // An earlier try's, whose answer was lost.
            Err(Error::Cluster { said, .. }) if said.contains(said::LEASE_EXISTS) => {
                let found = self.lease_time_to_live(id, deadline)?;
                let lease = found.ok_or_else(|| self.trouble("making a lease", said, ClusterTrouble::LeaseNotFound))?;
                let (header, ttl_s) = (lease.header, lease.granted_s);
                Ok(LeaseGranted { header, id, ttl_s })
            }
            answer => answer,
        }
    }

    /// Lets the lease last for its whole time again: its seconds, or nothing if there is no such lease.
    pub(crate) fn lease_keep_alive(&self, id: i64, deadline: Instant) -> Result<Option<i64>> {
        const DOING: &str = "renewing a lease";
        let body = json!({ "ID": id.to_string() });
        let answer = self.call("lease/keepalive", DOING, body, false, deadline)?;
        let lease = answer.get("result").and_then(LeaseGranted::read);
        let lease = lease.ok_or_else(|| self.not_understood(DOING, &answer))?;
        Ok((lease.ttl_s > 0).then_some(lease.ttl_s))
    }

    /// Ends the lease and the keys that were put with it.
    pub(crate) fn lease_revoke(&self, id: i64, deadline: Instant) -> Result<Revoked> {
        let body = json!({ "ID": id.to_string() });
        let mut lost = false;
        match self.call_telling(&mut lost, "lease/revoke", "ending a lease", body, false, deadline) {
            Ok(_) => Ok(Revoked::Ended),
            Err(Error::Cluster {
                trouble: ClusterTrouble::LeaseNotFound,
                ..
            }) => Ok(if lost { Revoked::Perhaps } else { Revoked::NotThere }),
            Err(error) => Err(error),
        }
    }

    /// How long the lease lasts still; nothing if there is no such lease.
    pub(crate) fn lease_time_to_live(&self, id: i64, deadline: Instant) -> Result<Option<LeaseLeft>> {
        let body = json!({ "ID": id.to_string() });
        let left: LeaseLeft = self.answer("lease/timetolive", "looking at a lease", body, false, deadline)?;
        Ok((left.left_s >= 0 && left.granted_s > 0).then_some(left))
    }

    /// How one member is: whichever answers.
    pub(crate) fn status(&self, deadline: Instant) -> Result<Status> {
        self.answer("maintenance/status", "asking how it is", json!({}), false, deadline)
    }

    fn answer<T: Answer>(
        &self,
        path: &str,
        doing: &'static str,
        body: Value,
        once: bool,
        deadline: Instant,
    ) -> Result<T> {
        let answer = self.call(path, doing, body, once, deadline)?;
        T::read(&answer).ok_or_else(|| self.not_understood(doing, &answer))
    }

    /// Asks the members in turn until one answers or the deadline has passed.
    fn call(&self, path: &str, doing: &'static str, body: Value, once: bool, deadline: Instant) -> Result<Value> {
        self.call_telling(&mut false, path, doing, body, once, deadline)
    }

    /// [`Client::call`], which tells whether an answer was lost on the way.
    fn call_telling(
        &self,
        lost: &mut bool,
        path: &str,
        doing: &'static str,
        body: Value,
        once: bool,
        deadline: Instant,
    ) -> Result<Value> {
        let body = body.to_string();
        let mut round = Round::new(self, doing, deadline);
        loop {
            let (member, patience) = round.next()?;
            let turn = self.with_token(member, patience, |token| self.ask(member, path, token, &body, patience));
            match turn {
                Turn::Done(answer) => {
                    self.members.answered(member);
                    return Ok(answer);
                }
                Turn::Next { said, uncertain: true } if once => {
                    self.members.failed(member);
                    return Err(Error::UnknownOutcome {
                        location: self.location.shown().to_owned(),
                        doing,
                        said: format!("{}: {said}", self.members.name(member)),
                    });
                }
                Turn::Next { said, uncertain } => {
                    *lost |= uncertain;
                    round.failed(member, said);
                }
                Turn::Renew(said) => round.renew(member, said)?,
                Turn::No(trouble, said) => {
                    self.members.answered(member);
                    let said = format!("{}: {said}", self.members.name(member));
                    return Err(self.trouble(doing, said, trouble));
                }
            }
        }
    }

    /// Asks one member, once.
    fn ask(&self, member: usize, path: &str, token: Option<&str>, body: &str, at_most: Duration) -> Turn<Value> {
        let url = format!("{}/v3/{path}", self.members.url(member));
        match self.http.ask(&url, token, body.as_bytes(), at_most) {
            Ok((status, body)) => said::read(status, &body).into(),
            Err(failed) => failed.into(),
        }
    }

    /// Does the work with the user's token, which is asked of the same member if it is not known.
    pub(super) fn with_token<T>(
        &self,
        member: usize,
        at_most: Duration,
        work: impl FnOnce(Option<&str>) -> Turn<T>,
    ) -> Turn<T> {
        let known = self.token.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let token = match (known, self.location.user()) {
            (Token::Is(token), _) => Some(token),
            (Token::Unknown, Some(user)) => match self.authenticate(member, at_most, user) {
                Turn::Done(token) => {
                    self.set_token(token.clone().map_or(Token::None, Token::Is));
                    token
                }
                // Nothing of the work was sent.
                Turn::Next { said, .. } => return Turn::Next { said, uncertain: false },
                Turn::Renew(said) => return Turn::No(ClusterTrouble::Refused, said),
                Turn::No(trouble, said) => return Turn::No(trouble, said),
            },
            (Token::None, _) | (Token::Unknown, None) => None,
        };
        work(token.as_deref())
    }

    /// Asks for the user's token; there is none where the cluster knows no users.
    fn authenticate(&self, member: usize, at_most: Duration, user: &User) -> Turn<Option<Arc<str>>> {
        let body = json!({ "name": user.name, "password": user.password }).to_string();
        match self.ask(member, "auth/authenticate", None, &body, at_most) {
            Turn::Done(answer) => match wire::text(&answer, "token") {
                Some(token) => Turn::Done(Some(Arc::from(token))),
                None => Turn::No(ClusterTrouble::Setup, "it gave no token".to_owned()),
            },
            Turn::No(_, said) if said.contains(said::NO_AUTH) => Turn::Done(None),
            Turn::Next { said, uncertain } => Turn::Next { said, uncertain },
            Turn::Renew(said) => Turn::Renew(said),
            Turn::No(trouble, said) => Turn::No(trouble, said),
        }
    }

    fn set_token(&self, token: Token) {
        *self.token.lock().unwrap_or_else(PoisonError::into_inner) = token;
    }

    pub(super) fn trouble(&self, doing: &'static str, said: String, trouble: ClusterTrouble) -> Error {
        Error::Cluster {
            location: self.location.shown().to_owned(),
            doing,
            said,
            trouble,
        }
    }

    pub(super) fn not_understood(&self, doing: &'static str, answer: &Value) -> Error {
        let said = format!("it answered {}", crate::shown::text(answer.to_string().as_bytes()));
        self.trouble(doing, said, ClusterTrouble::Setup)
    }
}

/// The members that one call asks: in turn, with pauses, until the deadline.
pub(super) struct Round<'a> {
    client: &'a Client,
    doing: &'static str,
    deadline: Instant,
    /// Who is to be asked before the next pause, in reverse.
    turn: Vec<usize>,
    pause: Option<Duration>,
    renewals: usize,
    /// What came of asking each member last.
    said: Vec<(usize, String)>,
}

impl<'a> Round<'a> {
    pub(super) fn new(client: &'a Client, doing: &'static str, deadline: Instant) -> Self {
        Self {
            client,
            doing,
            deadline,
            turn: Vec::new(),
            pause: None,
            renewals: 0,
            said: Vec::new(),
        }
    }

    /// Whom to ask next, and how long to wait for the answer.
    pub(super) fn next(&mut self) -> Result<(usize, Duration)> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(self.unavailable());
            }
            if let Some(member) = self.turn.pop() {
                return Ok((member, (left / 3).clamp(LEAST_PATIENCE, MOST_PATIENCE).min(left)));
            }
            if let Some(pause) = self.pause {
                sleep(pause.min(left));
            }
            self.pause = Some(self.pause.map_or(FIRST_PAUSE, |pause| (2 * pause).min(LAST_PAUSE)));
            self.turn = self.client.members.in_turn();
            self.turn.reverse();
        }
    }

    /// The member did not answer.
    pub(super) fn failed(&mut self, member: usize, said: String) {
        self.client.members.failed(member);
        // One that does not trust us hangs up, and does not always get to say why.
        let why = |(other, said): &(usize, String)| *other == member && said.starts_with(NO_TRUST);
        if self.said.iter().any(why) {
            return;
        }
        self.said.retain(|(other, _)| *other != member);
        self.said.push((member, said));
    }

    /// The member wants a new token: it is asked again, and for a token first.
    pub(super) fn renew(&mut self, member: usize, said: String) -> Result<()> {
        let has_user = self.client.location.user().is_some();
        if self.renewals == RENEWALS || !has_user {
            let said = format!("{}: {said}", self.client.members.name(member));
            return Err(self.client.trouble(self.doing, said, ClusterTrouble::Refused));
        }
        self.renewals += 1;
        self.client.set_token(Token::Unknown);
        self.turn.push(member);
        Ok(())
    }

    fn unavailable(&self) -> Error {
        let said = self
            .said
            .iter()
            .map(|(member, said)| format!("{}: {said}", self.client.members.name(*member)));
        let said = said.collect::<Vec<_>>().join("; ");
        let no_trust = self.said.iter().all(|(_, said)| said.starts_with(NO_TRUST));
        if no_trust && !said.is_empty() {
            return self.client.trouble(self.doing, said, ClusterTrouble::Setup);
        }
        let said = if said.is_empty() {
            "there was no time to ask".to_owned()
        } else {
            said
        };
        self.client.trouble(self.doing, said, ClusterTrouble::Unavailable)
    }
}

impl From<Said> for Turn<Value> {
    fn from(said: Said) -> Self {
        match said {
            Said::Done(answer) => Self::Done(answer),
            Said::Later { said, uncertain } => Self::Next { said, uncertain },
            Said::Renew(said) => Self::Renew(said),
            Said::No(trouble, said) => Self::No(trouble, said),
        }
    }
}

impl<T> From<Failed> for Turn<T> {
    fn from(failed: Failed) -> Self {
        let (said, uncertain) = match failed {
            Failed::NotSent(said) => (said, false),
            Failed::Lost(said) => (said, true),
            Failed::Stopped => ("told to stop".to_owned(), true),
        };
        Self::Next { said, uncertain }
    }
}

#[cfg(test)]
mod tests;
