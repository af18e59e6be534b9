//! Which member is asked next.
//!
//! The one that answered last is asked first, by all threads. One that failed is asked last for [`SHUNNED`], so that a
//! member that is stopped costs the callers of a process one time-out and not one for each call.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// For how long a member that failed stands behind all others.
const SHUNNED: Duration = Duration::from_secs(10);

/// The members of a cluster, by their place in the location.
#[derive(Debug)]
pub(super) struct Members {
    urls: Vec<String>,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// The one that answered last.
    good: usize,
    /// When each failed last, if it has not answered since.
    failed: Vec<Option<Instant>>,
}

impl Members {
    pub(super) fn new(urls: Vec<String>) -> Self {
        let failed = vec![None; urls.len()];
        let state = Mutex::new(State { good: 0, failed });
        Self { urls, state }
    }

    /// All of them, in the order in which to ask them.
    pub(super) fn in_turn(&self) -> Vec<usize> {
        let state = self.state();
        let mut members: Vec<usize> = (0..self.urls.len()).collect();
        members.rotate_left(state.good.min(self.urls.len()));
        let is_shunned = |member: &usize| {
            let failed = state.failed.get(*member).copied().flatten();
            failed.is_some_and(|since| since.elapsed() < SHUNNED)
        };
        members.sort_by_key(is_shunned);
        members
    }

    /// `http://host:port`.
    pub(super) fn url(&self, member: usize) -> &str {
        self.urls.get(member).map_or("", String::as_str)
    }

    /// `host:port`.
    pub(super) fn name(&self, member: usize) -> &str {
        let url = self.url(member);
        url.split_once("://").map_or(url, |(_, name)| name)
    }

    pub(super) fn answered(&self, member: usize) {
        let mut state = self.state();
        state.good = member;
        if let Some(failed) = state.failed.get_mut(member) {
            *failed = None;
        }
    }

    pub(super) fn failed(&self, member: usize) {
        if let Some(failed) = self.state().failed.get_mut(member) {
            *failed = Some(Instant::now());
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_answered_last_is_asked_first_and_who_failed_last() {
        let members = Members::new(["http://a:1", "http://b:2", "http://c:3"].map(str::to_owned).to_vec());
        assert_eq!(members.in_turn(), [0, 1, 2]);
        members.answered(1);
        assert_eq!(members.in_turn(), [1, 2, 0]);
        members.failed(1);
        assert_eq!(members.in_turn(), [2, 0, 1]);
        members.answered(0);
        assert_eq!(members.in_turn(), [0, 2, 1]);
        members.answered(1);
        assert_eq!(members.in_turn(), [1, 2, 0]);
        assert_eq!(members.name(2), "c:3");
    }
}
