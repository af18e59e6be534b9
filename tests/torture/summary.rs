//! What a run prints about what was done and survived.

use std::collections::{BTreeMap, BTreeSet};

use crate::MS;
use crate::check::History;
use crate::history::{Answer, What};
use crate::run::Torture;

impl Torture {
    /// Prints what came of the calls, and what befell those who made them.
    pub fn print(&self, history: &History, notes: &[String]) {
        let mut done: BTreeMap<&str, u64> = BTreeMap::new();
        let mut errors: BTreeMap<i32, u64> = BTreeMap::new();
        let mut longest = 0;
        for op in history.ops.iter().flatten() {
            let Some((end, answer)) = &op.end else {
                *done.entry("calls cut off by a death").or_default() += 1;
                continue;
            };
            longest = longest.max(end - op.began);
            let what = match (&op.what, answer) {
                (_, Answer::Error(code)) => {
                    *errors.entry(*code).or_default() += 1;
                    "calls that gave an error"
                }
                (What::Acquire { limit: 0, .. }, Answer::Name(_)) => "leases granted",
                (What::Acquire { .. }, Answer::Name(_)) => "permits granted",
                (What::Acquire { .. }, _) => "answers 'held'",
                (What::Renew { .. }, Answer::Yes) => "renewals",
                (What::Renew { .. }, _) => "renewals refused",
                (What::Release { .. }, Answer::Yes) => "releases",
                (What::Release { .. }, _) => "releases refused",
                (What::Write { .. }, Answer::Yes) => "writes",
                (What::Write { .. }, _) => "stale writes refused",
            };
            *done.entry(what).or_default() += 1;
        }
        let forks = history
            .ops
            .iter()
            .flatten()
            .filter(|op| op.worker.contains('.'))
            .map(|op| &op.worker);
        let forks = forks.collect::<BTreeSet<_>>().len();
        println!("what was done:");
        for (what, count) in &done {
            println!("  {count:>8} {what}");
        }
        println!("what befell it:");
        println!("  {:>8} workers started", self.started);
        println!("  {forks:>8} children forked");
        for (what, count) in &self.counts {
            println!("  {count:>8} {what}");
        }
        if !errors.is_empty() {
            println!("errors by result code: {errors:?}");
            let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
            for note in notes {
                *kinds.entry(kind_of(note)).or_default() += 1;
            }
            for (kind, count) in kinds {
                println!("  {count:>8} {kind}");
            }
        }
        if !self.has_disk && !self.plan.etcd {
            println!("left out: full disks, for they need root");
        }
        if self.faketime.is_none() {
            println!("left out: stepped clocks, for libfaketime is not there");
        }
        println!("the longest call took {} ms", longest / MS);
    }
}

/// A message without the path at its beginning.
fn kind_of(note: &str) -> String {
    let kind = note
        .split_once("\" ")
        .or_else(|| note.split_once("\": "))
        .map_or(note, |(_, kind)| kind);
    let kind: String = kind.chars().take(100).collect();
    kind
}
