//! Checks a history: what must never have happened.
//!
//! Nobody sees a grant at its own moment, only that it was made between the beginning and the end of a call. So a lease
//! is *surely live* from the end of its acquire until its ttl has passed since the *beginning* of the acquire or of the
//! last renewal that worked; it is *surely over* when its ttl has passed since the *end* of that call. A violation is
//! what no order of the moments can explain. Operations without an end may have had their effect or not.
//!
//! A *swap* (kv.db deleted, replaced, restored) loses the leases: what LOCK-08 promises is that it is noticed before the
//! next grant. So the leases are those of one *table*, from one swap to the next; a call that spans a swap may have gone
//! to either. A process's own fences grow nevertheless, and so do those of one table. After each swap the store is
//! advanced past the largest fence that was read in the logs, as after any restore (LOCK-10): from then on all fences of
//! the new table are larger than that. Until then a restored copy under a clock that stands before it may give a fence
//! that another table gave to somebody else, who then renews and releases what is not its own: that is not covered.
//!
//! On a cluster leases *outlast* their ttl, nobody knows by how much: none is surely over. One that is revived shows when
//! another was given meanwhile.
//!
//! Removing the WAL's index loses no lease, but a release that comes at that moment may be undone: it trusts a look at
//! the files that is up to 10 ms old.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::MS;
use crate::history::{Answer, Op, What};

/// For how long after the removal of an index a release may be undone, in milliseconds: until the process that releases
/// has looked at the files once more.
const UNDONE_MS: u64 = 100;

/// A change of kv.db behind the processes' backs, that loses the leases.
#[derive(Clone, Copy, Debug)]
pub struct Swap {
    pub began: u64,
    pub ended: u64,
    /// When the store had been advanced past `floor`.
    pub advanced: u64,
    pub floor: u128,
}

/// What is to be checked.
#[derive(Default)]
pub struct History {
    /// Of each process, its operations in their order.
    pub ops: Vec<Vec<Op>>,
    /// Whether leases may outlast their ttl.
    pub outlast: bool,
    pub swaps: Vec<Swap>,
    /// When the WAL's index was removed.
    pub indexes_removed: Vec<u64>,
    /// Until when each process lived for certain, of those that have died.
    pub deaths: HashMap<String, u64>,
    /// The fences that each row of app.db was given, in their order, as the database itself noted them.
    pub rows: BTreeMap<String, Vec<String>>,
}

/// A lease or permit with what is known of its end.
#[derive(Debug)]
struct Held {
    worker: String,
    name: String,
    ended: u64,
    /// Before this it is surely live.
    sure_end: u64,
    /// After this it is surely over.
    last_end: u64,
    released: Option<u64>,
    limit: u64,
    /// The table that it is in; nothing if that is not known.
    table: Option<usize>,
}

/// All violations, as sentences.
pub fn check(history: &History) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut by_key: BTreeMap<String, Vec<Held>> = BTreeMap::new();
    let shared = history.shared();
    for ops in &history.ops {
        for (i, op) in ops.iter().enumerate() {
            if let (What::Acquire { key, .. }, Some((_, Answer::Name(_)))) = (&op.what, &op.end) {
                let held = follow(op, &ops[i + 1..], history, &shared, &mut wrong);
                for key in key.split('+') {
                    by_key.entry(key.to_owned()).or_default().push(held.copy());
                }
            }
        }
    }
    for (key, held) in &mut by_key {
        held.sort_by_key(|held| held.ended);
        if held.first().is_some_and(|held| held.limit > 0) {
            too_many(key, held, &mut wrong);
        } else {
            two_at_once(key, held, &mut wrong);
        }
    }
    fences(history, &mut wrong);
    writes(history, &mut wrong);
    wrong
}

impl Held {
    fn copy(&self) -> Self {
        Self {
            worker: self.worker.clone(),
            name: self.name.clone(),
            ..*self
        }
    }
}

impl History {
    /// The names that two tables gave to two processes. Whether that may be is seen to by [`twice`].
    fn shared(&self) -> HashSet<&str> {
        let mut first: HashMap<&str, &str> = HashMap::new();
        let given = self.ops.iter().flatten().filter_map(|op| match (&op.what, &op.end) {
            (What::Acquire { .. }, Some((_, Answer::Name(name)))) => Some((name.as_str(), op.worker.as_str())),
            _ => None,
        });
        given
            .filter(|(name, worker)| first.entry(name).or_insert(worker) != worker)
            .map(|(name, _)| name)
            .collect()
    }

    /// When a lease of this ttl is surely over that was given or renewed before this time.
    fn over(&self, given: u64, ttl_ms: u64) -> u64 {
        if self.outlast {
            u64::MAX
        } else {
            given.saturating_add((ttl_ms + 1) * MS)
        }
    }
}

/// The table that a call between these times went to.
fn table(history: &History, began: u64, ended: u64) -> Option<usize> {
    let low = history.swaps.iter().filter(|swap| swap.ended <= began).count();
    let high = history.swaps.iter().filter(|swap| swap.began < ended).count();
    (low == high).then_some(low)
}

/// Whether a release between these times may have gone to a WAL that nobody reads any more.
fn is_undone(history: &History, began: u64, ended: u64) -> bool {
    let near = |removed: &u64| began < removed + UNDONE_MS * MS && *removed < ended;
    history.indexes_removed.iter().any(near)
}

/// Follows a lease through what its holder did with it (LOCK-04).
fn follow(op: &Op, later: &[Op], history: &History, shared: &HashSet<&str>, wrong: &mut Vec<String>) -> Held {
    let (
        What::Acquire {
            key,
            limit,
            ttl_ms,
            bound,
        },
        Some((ended, Answer::Name(name))),
    ) = (&op.what, &op.end)
    else {
        unreachable!("called with a grant");
    };
    let mut held = Held {
        worker: op.worker.clone(),
        name: name.clone(),
        ended: *ended,
        sure_end: op.began + (ttl_ms - 1) * MS,
        last_end: history.over(*ended, *ttl_ms),
        released: None,
        limit: *limit,
        table: table(history, op.began, *ended),
    };
    let same_table = |until: u64| table(history, op.began, until).is_some();
    let is_own = !shared.contains(name.as_str());
    for next in later {
        let (next_key, next_name, ttl_ms) = match &next.what {
            What::Renew { key, name, ttl_ms } => (key, name, Some(*ttl_ms)),
            What::Release { key, name } => (key, name, None),
            _ => continue,
        };
        if (next_key, next_name) != (key, name) {
            continue;
        }
        let doing = if ttl_ms.is_some() { "renewed" } else { "released" };
        match &next.end {
            Some((end, Answer::Yes)) => {
                if next.began > held.last_end && is_own {
                    wrong.push(format!(
                        "LOCK-04: {} {doing} {key} with {name} {} ms after its end",
                        op.worker,
                        (next.began - held.last_end) / MS
                    ));
                }
                if held.released.is_some() && same_table(*end) && is_own {
                    wrong.push(format!(
                        "LOCK-04: {} {doing} {key} with {name} after its release",
                        op.worker
                    ));
                }
                // In another table it is what a restored copy knows of it.
                let ours = same_table(*end);
                match ttl_ms {
                    Some(ttl_ms) => {
                        held.sure_end = if ours {
                            next.began + (ttl_ms - 1) * MS
                        } else {
                            held.sure_end
                        };
                        held.last_end = history.over(*end, ttl_ms);
                    }
                    None => {
                        held.sure_end = held.sure_end.min(next.began);
                        held.released = (ours && !is_undone(history, next.began, *end)).then_some(*end);
                    }
                }
            }
            Some((end, Answer::No)) => {
                if *end < held.sure_end && same_table(*end) && held.released.is_none() && is_own {
                    wrong.push(format!(
                        "LOCK-04: {key} could not be {doing} at {end} by {} with {name}, {} ms before its end",
                        op.worker,
                        (held.sure_end - end) / MS
                    ));
                }
                held.sure_end = held.sure_end.min(next.began);
            }
            end => {
                let end = end.as_ref().map_or(u64::MAX / 2, |(end, _)| *end);
                match ttl_ms {
                    Some(ttl_ms) => {
                        held.sure_end = held.sure_end.min(next.began + (ttl_ms - 1) * MS);
                        held.last_end = held.last_end.max(history.over(end, ttl_ms));
                    }
                    None => held.sure_end = held.sure_end.min(next.began),
                }
            }
        }
    }
    if !is_own {
        // The other one may have released it.
        held.sure_end = held.sure_end.min(*ended);
    }
    if *bound && let Some(death) = history.deaths.get(&op.worker) {
        held.sure_end = held.sure_end.min(*death);
    }
    held
}

/// LOCK-01: two leases of one key in one table, of which neither can have ended before the other was given.
fn two_at_once(key: &str, held: &[Held], wrong: &mut Vec<String>) {
    let mut longest: HashMap<usize, &Held> = HashMap::new();
    for next in held {
        let Some(table) = next.table else { continue };
        if let Some(before) = longest.get(&table)
            && before.sure_end > next.ended
            && next.sure_end > before.ended
        {
            wrong.push(format!(
                "LOCK-01: {key} was given to {} with {} and at {} to {} with {}, {} ms before the end of the first",
                before.worker,
                before.name,
                next.ended,
                next.worker,
                next.name,
                (before.sure_end - next.ended) / MS
            ));
        }
        let longest = longest.entry(table).or_insert(next);
        if next.sure_end > longest.sure_end {
            *longest = next;
        }
    }
}

/// SEM-01: more permits of one semaphore live at one moment than its limit.
fn too_many(key: &str, held: &[Held], wrong: &mut Vec<String>) {
    let mut live: Vec<&Held> = Vec::new();
    for next in held {
        live.retain(|held| held.sure_end > next.ended);
        if next.table.is_none() {
            continue;
        }
        if next.sure_end > next.ended {
            live.push(next);
        }
        let count = live.iter().filter(|held| held.table == next.table).count() as u64;
        if count > next.limit {
            wrong.push(format!(
                "SEM-01: {count} permits of {key} were live when {} got {}, of at most {}",
                next.worker, next.name, next.limit
            ));
        }
    }
}

/// A lease's fence, and when and where it was given.
struct Grant<'a> {
    worker: &'a str,
    began: u64,
    ended: u64,
    fence: u128,
    table: Option<usize>,
}

/// LOCK-02, LOCK-03, LOCK-08, LOCK-10: fences are unique and grow.
fn fences(history: &History, wrong: &mut Vec<String>) {
    let mut grants = Vec::new();
    for op in history.ops.iter().flatten() {
        if let (What::Acquire { limit: 0, .. }, Some((ended, Answer::Name(name)))) = (&op.what, &op.end) {
            grants.push(Grant {
                worker: &op.worker,
                began: op.began,
                ended: *ended,
                fence: name.parse().expect("a fence"),
                table: table(history, op.began, *ended),
            });
        }
    }
    grants.sort_by_key(|grant| grant.began);
    twice(&grants, wrong);
    let mut ended: Vec<_> = grants.iter().collect();
    ended.sort_by_key(|grant| grant.ended);
    let mut ended = ended.into_iter().peekable();
    // The largest of all that ended before the grant began: of each process, of each table.
    let mut of_worker: HashMap<&str, &Grant<'_>> = HashMap::new();
    let mut of_table: HashMap<usize, &Grant<'_>> = HashMap::new();
    for grant in &grants {
        while let Some(before) = ended.next_if(|before| before.ended < grant.began) {
            let larger = |known: Option<&Grant<'_>>| known.is_none_or(|known| known.fence < before.fence);
            if larger(of_worker.get(before.worker).copied()) {
                of_worker.insert(before.worker, before);
            }
            if let Some(table) = before.table
                && larger(of_table.get(&table).copied())
            {
                of_table.insert(table, before);
            }
        }
        let own = of_worker.get(grant.worker).map(|before| ("LOCK-08", *before));
        let same = grant.table.and_then(|table| of_table.get(&table));
        for (promise, before) in own.into_iter().chain(same.map(|before| ("LOCK-02", *before))) {
            if before.fence >= grant.fence {
                wrong.push(format!(
                    "{promise}: {} got {} at {}, {} us after {} had got {}",
                    grant.worker,
                    grant.fence,
                    grant.began,
                    (grant.began - before.ended) / 1_000,
                    before.worker,
                    before.fence
                ));
            }
        }
        let swap = grant.table.and_then(|table| history.swaps.get(table.checked_sub(1)?));
        if let Some(swap) = swap
            && swap.advanced < grant.began
            && swap.floor >= grant.fence
        {
            wrong.push(format!(
                "LOCK-10: {} got {} at {} from a store that was advanced past {}",
                grant.worker, grant.fence, grant.began, swap.floor
            ));
        }
    }
}

/// LOCK-03: a fence that was given twice by one table, or to one process. Across tables the floors tell.
fn twice(grants: &[Grant<'_>], wrong: &mut Vec<String>) {
    let mut seen: HashMap<u128, &Grant<'_>> = HashMap::new();
    for grant in grants {
        if let Some(before) = seen.insert(grant.fence, grant)
            && (before.worker == grant.worker || (before.table == grant.table && grant.table.is_some()))
        {
            wrong.push(format!(
                "LOCK-03: {} was given to {} and to {}",
                grant.fence, before.worker, grant.worker
            ));
        }
    }
}

/// No stale write: of two writes that were accepted, the later one's fence is not lower; and the row's never goes down.
fn writes(history: &History, wrong: &mut Vec<String>) {
    let mut by_key: BTreeMap<&str, Vec<(&Op, u64, u128)>> = BTreeMap::new();
    for op in history.ops.iter().flatten() {
        if let (What::Write { key, name }, Some((ended, Answer::Yes))) = (&op.what, &op.end) {
            by_key
                .entry(key)
                .or_default()
                .push((op, *ended, name.parse().expect("a fence")));
        }
    }
    for (key, mut accepted) in by_key {
        let mut ended = accepted.clone();
        ended.sort_by_key(|(_, ended, _)| *ended);
        accepted.sort_by_key(|(op, _, _)| op.began);
        let mut ended = ended.into_iter().peekable();
        let mut largest = 0;
        for (op, _, fence) in accepted {
            while let Some((_, _, before)) = ended.next_if(|(_, ended, _)| *ended < op.began) {
                largest = largest.max(before);
            }
            if fence < largest {
                wrong.push(format!(
                    "stale write: {} wrote {key} with {fence} after {largest}",
                    op.worker
                ));
            }
        }
    }
    for (key, fences) in &history.rows {
        for pair in fences.windows(2) {
            if pair[1] < pair[0] {
                wrong.push(format!(
                    "stale write: the fence of row {key} went from {} down to {}",
                    pair[0], pair[1]
                ));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(worker: &str, began: u64, ended: u64, what: What, answer: Answer) -> Op {
        Op {
            worker: worker.to_owned(),
            began: began * MS,
            end: Some((ended * MS, answer)),
            what,
        }
    }

    fn acquire(worker: &str, began: u64, ended: u64, fence: u64) -> Op {
        let what = What::Acquire {
            key: "k".to_owned(),
            limit: 0,
            ttl_ms: 100,
            bound: false,
        };
        op(worker, began, ended, what, Answer::Name(fence.to_string()))
    }

    fn of(ops: Vec<Vec<Op>>) -> History {
        History {
            ops,
            ..History::default()
        }
    }

    fn renew(worker: &str, began: u64, ended: u64, fence: u64, answer: Answer) -> Op {
        let what = What::Renew {
            key: "k".to_owned(),
            name: fence.to_string(),
            ttl_ms: 100,
        };
        op(worker, began, ended, what, answer)
    }

    #[test]
    fn a_grant_after_the_end_of_the_last_is_no_violation() {
        let history = of(vec![vec![acquire("a", 0, 1, 1)], vec![acquire("b", 50, 102, 2)]]);
        assert_eq!(check(&history), Vec::<String>::new());
    }

    #[test]
    fn a_grant_before_the_end_of_the_last_is_one() {
        let history = of(vec![vec![acquire("a", 0, 1, 1)], vec![acquire("b", 50, 98, 2)]]);
        assert!(check(&history)[0].starts_with("LOCK-01"), "{:?}", check(&history));
        let renewed = of(vec![
            vec![acquire("a", 0, 1, 1), renew("a", 60, 61, 1, Answer::Yes)],
            vec![acquire("b", 50, 102, 2)],
        ]);
        assert!(check(&renewed)[0].starts_with("LOCK-01"));
    }

    #[test]
    fn where_leases_outlast_their_ttl_a_revived_one_shows_by_the_one_that_was_given_meanwhile() {
        let late = renew("a", 1_100, 1_101, 1, Answer::Yes);
        let mut history = of(vec![vec![acquire("a", 0, 1, 1), late.clone()]]);
        history.outlast = true;
        assert_eq!(check(&history), Vec::<String>::new());
        history.ops.push(vec![acquire("b", 1_060, 1_062, 2)]);
        assert!(check(&history)[0].starts_with("LOCK-01"), "{:?}", check(&history));
    }

    #[test]
    fn a_renewal_after_the_end_and_a_refusal_before_it_are_violations() {
        let late = of(vec![vec![acquire("a", 0, 1, 1), renew("a", 103, 104, 1, Answer::Yes)]]);
        assert!(check(&late)[0].starts_with("LOCK-04"), "{:?}", check(&late));
        let early = of(vec![vec![acquire("a", 0, 1, 1), renew("a", 50, 60, 1, Answer::No)]]);
        assert!(check(&early)[0].starts_with("LOCK-04"));
    }

    #[test]
    fn a_fence_given_twice_and_a_fence_that_falls_are_violations() {
        let twice = of(vec![vec![acquire("a", 0, 1, 7)], vec![acquire("b", 200, 201, 7)]]);
        assert!(check(&twice).iter().any(|wrong| wrong.starts_with("LOCK-03")));
        let falls = of(vec![vec![acquire("a", 0, 1, 7)], vec![acquire("b", 200, 201, 6)]]);
        assert!(check(&falls).iter().any(|wrong| wrong.starts_with("LOCK-02")));
    }

    #[test]
    fn a_swap_loses_the_leases_and_keeps_the_order_of_what_one_process_has_seen() {
        let swap = Swap {
            began: 10 * MS,
            ended: 20 * MS,
            advanced: 500 * MS,
            floor: 7,
        };
        let mut history = of(vec![vec![acquire("a", 0, 1, 7)], vec![acquire("b", 30, 31, 6)]]);
        history.swaps.push(swap);
        assert_eq!(check(&history), Vec::<String>::new());
        let mut history = of(vec![vec![acquire("a", 0, 1, 7), acquire("a", 30, 31, 6)]]);
        history.swaps.push(swap);
        assert!(check(&history)[0].starts_with("LOCK-08"));
        let mut history = of(vec![vec![acquire("a", 30, 31, 7)], vec![acquire("b", 40, 41, 8)]]);
        history.swaps.push(swap);
        assert!(
            check(&history)[0].starts_with("LOCK-01"),
            "after the swap there is one table again"
        );
    }

    #[test]
    fn a_fence_that_the_store_was_advanced_past_is_a_violation() {
        let mut history = of(vec![vec![acquire("a", 0, 1, 7)], vec![acquire("b", 600, 601, 7)]]);
        history.swaps.push(Swap {
            began: 10 * MS,
            ended: 20 * MS,
            advanced: 500 * MS,
            floor: 7,
        });
        assert!(check(&history)[0].starts_with("LOCK-10"), "{:?}", check(&history));
        history.swaps[0].advanced = 600 * MS;
        assert_eq!(check(&history), Vec::<String>::new(), "it may have come before");
    }

    #[test]
    fn who_renews_what_a_restored_copy_gave_to_another_under_the_same_fence_revives_nothing() {
        let mut history = of(vec![
            vec![acquire("a", 0, 1, 7), renew("a", 300, 301, 7, Answer::Yes)],
            vec![acquire("b", 290, 291, 7), renew("b", 310, 311, 7, Answer::No)],
        ]);
        assert!(check(&history).iter().any(|wrong| wrong.starts_with("LOCK-03")));
        history.swaps.push(Swap {
            began: 280 * MS,
            ended: 281 * MS,
            advanced: 500 * MS,
            floor: 7,
        });
        assert_eq!(check(&history), Vec::<String>::new());
        let release = What::Release {
            key: "k".to_owned(),
            name: "7".to_owned(),
        };
        history.ops[0].push(op("a", 320, 321, release, Answer::Yes));
        history.ops.push(vec![acquire("c", 330, 331, 8)]);
        assert_eq!(check(&history), Vec::<String>::new());
        history.ops.truncate(1);
        assert!(check(&history)[0].starts_with("LOCK-04"), "{:?}", check(&history));
    }

    #[test]
    fn a_renewal_after_a_release_is_a_violation_unless_the_index_was_removed_then() {
        let release = What::Release {
            key: "k".to_owned(),
            name: "1".to_owned(),
        };
        let mut history = of(vec![vec![
            acquire("a", 0, 1, 1),
            op("a", 10, 11, release, Answer::Yes),
            renew("a", 20, 21, 1, Answer::Yes),
        ]]);
        assert!(check(&history)[0].starts_with("LOCK-04"), "{:?}", check(&history));
        history.indexes_removed.push(5 * MS);
        assert_eq!(check(&history), Vec::<String>::new());
    }

    #[test]
    fn one_permit_too_many_and_a_stale_write_are_violations() {
        let permit = |worker: &str, at: u64| {
            let what = What::Acquire {
                key: "s".to_owned(),
                limit: 1,
                ttl_ms: 100,
                bound: false,
            };
            op(worker, at, at + 1, what, Answer::Name(format!("permit-{at}")))
        };
        assert!(check(&of(vec![vec![permit("a", 0)], vec![permit("b", 10)]]))[0].starts_with("SEM-01"));
        assert!(check(&of(vec![vec![permit("a", 0)], vec![permit("b", 110)]])).is_empty());
        let write = |worker: &str, at: u64, fence: u64| {
            let what = What::Write {
                key: "k".to_owned(),
                name: fence.to_string(),
            };
            op(worker, at, at + 1, what, Answer::Yes)
        };
        assert!(check(&of(vec![vec![write("a", 0, 8)], vec![write("b", 10, 7)]]))[0].starts_with("stale write"));
        let mut history = History::default();
        history
            .rows
            .insert("k".to_owned(), vec!["8".to_owned(), "7".to_owned()]);
        assert!(check(&history)[0].starts_with("stale write"));
    }
}
