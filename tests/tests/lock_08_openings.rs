//! LOCK-08: the files are changed while a process is inside its opening, and others wait for their turn.
//!
//! The process stands still at a step of its opening, with the right to open in its hand. The files are changed, and a
//! process that comes then makes a new kv.db if there is none, and waits. Perhaps that happens twice. Then the one that
//! stood still goes on, with an old kv.db in its hand. Whatever it does now, there is one lease table afterwards, and the
//! fences grow.

use std::fs;
use std::path::{Path, PathBuf};

use fence_tests::{Worker, folder, wait_until};
use rusqlite::Connection;

const WORKER: &str = env!("CARGO_BIN_EXE_worker");
/// More than any test takes, in milliseconds.
const LONG: u64 = 3_600_000;

/// The steps of every opening.
const STEPS: [&str; 7] = [
    "opening-begins",
    "opening-looked",
    "opening-put-right",
    "opening-read",
    "epoch-before-commit",
    "epoch-after-commit",
    "opening-noted",
];

/// What is done to the files.
#[derive(Clone, Copy, Debug)]
enum Change {
    /// These are removed: kv.db with these suffixes.
    Removed(&'static [&'static str]),
    /// An older kv.db is moved over it, the WAL stays.
    MovedOver,
    /// An older kv.db and its WAL are moved over them.
    MovedOverWithWal,
    /// The WAL is removed, and another program that opens kv.db makes it anew.
    WalMadeAnew,
}

const CHANGES: [Change; 7] = [
    Change::Removed(&[""]),
    Change::Removed(&["", "-wal", "-shm"]),
    Change::Removed(&["", "-fence"]),
    Change::Removed(&["-wal"]),
    Change::MovedOver,
    Change::MovedOverWithWal,
    Change::WalMadeAnew,
];

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// How the store stands when the opening begins.
#[derive(Clone, Copy, Debug)]
enum Before {
    /// A process has it open.
    Open,
    /// A process has it open, and the file beside the store, which told what belongs together, is gone.
    NothingNoted,
    /// Nobody has it open, and there is no WAL.
    Closed,
}

impl Change {
    /// Makes the change; gives what another program has open from then on.
    fn make(self, store: &Path) -> Option<Connection> {
        let older = store.with_file_name("older.db");
        let put = |suffix| {
            let new = beside(store, "-new");
            fs::copy(beside(&older, suffix), &new).expect("a copy");
            fs::rename(new, beside(store, suffix)).expect("moved");
        };
        match self {
            Self::Removed(suffixes) => {
                for suffix in suffixes {
                    // One may not be made yet.
                    drop(fs::remove_file(beside(store, suffix)));
                }
            }
            Self::MovedOver => put(""),
            Self::MovedOverWithWal => {
                put("-wal");
                put("");
            }
            Self::WalMadeAnew => {
                drop(fs::remove_file(beside(store, "-wal")));
                let other = Connection::open(store).expect("it opens");
                // What it finds is its own affair.
                drop(other.query_row("select count(*) from leases", [], |_| Ok(())));
                return Some(other);
            }
        }
        None
    }

    /// Of an older copy that was put in place nobody knows more than the copy does.
    #[track_caller]
    fn has_won(self, leases: &str, what: &str) {
        let has = |key: &str| leases.split(' ').any(|lease| lease.starts_with(&format!("{key}=")));
        if matches!(self, Self::MovedOver | Self::MovedOverWithWal) {
            assert!(has("k3") && !has("k18"), "{what}: {leases}");
        }
    }
}

/// A worker whose checkpoints come often, so that the WAL alone is no whole store.
fn start(store: &Path, fault: &str) -> Worker {
    let plan = Worker::plan(WORKER, store).env("FENCE_CHECKPOINT_PAGES", "8");
    plan.env("FENCE_FAULT", fault).start()
}

/// A store with some leases, a copy of it from an earlier time with its WAL, and a process that has it open.
fn store(folder: &Path) -> (PathBuf, Worker) {
    let store = folder.join("kv.db");
    let mut worker = start(&store, "");
    for n in 0..20 {
        worker.acquire(&format!("k{n}"), LONG);
        if n == 10 {
            for suffix in ["", "-wal"] {
                // Not opened here: it is a copy of files that another process has open.
                fs::copy(beside(&store, suffix), beside(&folder.join("older.db"), suffix)).expect("a copy");
            }
        }
    }
    (store, worker)
}

/// Stops a process at the step of its opening when it comes there for this time, and makes the change so many times.
#[track_caller]
fn try_it(step: &str, pass: u32, before: Before, change: Change, times: usize) {
    let what = format!("{step} {pass} {before:?} {change:?} {times}");
    let folder = folder();
    let (store, mut old) = store(folder.path());
    match before {
        Before::Open => {}
        Before::NothingNoted => fs::remove_file(beside(&store, "-fence")).expect("the file beside the store"),
        // It brings its WAL into the file.
        Before::Closed => assert_eq!(old.ask("drop"), "ok"),
    }
    let mut inside = start(&store, &format!("stop:{step}:{pass}"));
    inside.tell(&format!("acquire inside {LONG}"));
    inside.process().wait_until_stopped();
    let mut all = vec![old, inside];
    let mut others = Vec::new();
    for n in 0..times {
        others.push(change.make(&store));
        let mut worker = start(&store, "");
        worker.tell(&format!("acquire key{} {LONG}", n + 2));
        // It makes the file before it waits.
        wait_until("kv.db is made anew", || store.exists());
        all.push(worker);
    }
    all[0].tell(&format!("acquire key0 {LONG}"));
    all[1].process().go_on();
    let mut keys = vec!["inside".to_owned()];
    keys.extend((0..all.len()).filter(|n| *n != 1).map(|n| format!("key{n}")));
    let fence = |answer: String| answer.parse::<u128>().unwrap_or_else(|_| panic!("{what}: {answer}"));
    let first = all.iter_mut().map(|worker| fence(worker.answer()));
    let mut largest = first.max().expect("a fence");
    for round in 0..9 {
        for (n, worker) in all.iter_mut().enumerate() {
            let key = format!("new{round}.{n}");
            let given = fence(worker.ask(&format!("acquire {key} {LONG}")));
            assert!(given > largest, "{what}: {given} came after {largest}");
            largest = given;
            keys.push(key);
        }
    }
    all.push(start(&store, ""));
    for key in &keys {
        for (n, worker) in all.iter_mut().enumerate() {
            assert_eq!(
                worker.ask(&format!("acquire {key} 1000")),
                "held",
                "{what}: {key} for {n}"
            );
        }
    }
    drop(all);
    // Whoever reads all of it anew finds the same.
    let mut last = start(&store, "");
    for key in &keys {
        assert_eq!(
            last.ask(&format!("acquire {key} 1000")),
            "held",
            "{what}: {key} at the end"
        );
    }
    assert!(last.acquire("last", LONG) > largest, "{what}");
    change.has_won(&last.ask("leases"), &what);
}

#[test]
fn lock_08_the_files_are_changed_while_a_process_is_inside_its_opening() {
    for change in CHANGES {
        for step in STEPS {
            try_it(step, 1, Before::Open, change, 1);
        }
    }
}

#[test]
fn lock_08_the_files_are_changed_twice_while_a_process_is_inside_its_opening() {
    for change in CHANGES {
        for step in STEPS {
            try_it(step, 1, Before::Open, change, 2);
        }
    }
}

#[test]
fn lock_08_the_files_are_changed_while_a_process_is_inside_an_opening_that_finds_nothing_noted() {
    for change in CHANGES {
        // Before these nobody can tell yet which WAL belongs to which kv.db.
        for step in ["epoch-before-commit", "epoch-after-commit", "opening-noted"] {
            try_it(step, 1, Before::NothingNoted, change, 1);
        }
    }
}

#[test]
fn lock_08_the_files_are_changed_while_an_opening_makes_what_was_missing() {
    for change in CHANGES {
        for (step, pass) in [
            ("opening-put-right", 1),
            ("opening-read", 1),
            ("opening-put-right", 2),
            ("opening-read", 2),
            ("epoch-before-commit", 1),
            ("epoch-after-commit", 1),
        ] {
            try_it(step, pass, Before::Closed, change, 1);
        }
    }
}

#[test]
fn lock_08_a_wal_that_was_set_apart_is_not_laid_over_another_kv_db() {
    for change in CHANGES {
        let folder = folder();
        let (store, mut old) = store(folder.path());
        fs::remove_file(beside(&store, "-shm")).expect("the index");
        let mut inside = start(&store, "stop:opening-sets-apart");
        inside.tell("acquire k19 1000");
        inside.process().wait_until_stopped();
        let _other = change.make(&store);
        inside.process().go_on();
        let answer = inside.answer();
        let fence = old.ask(&format!("acquire after {LONG}"));
        assert!(fence.parse::<u128>().is_ok(), "{change:?}: {answer} {fence}");
        change.has_won(&old.ask("leases"), &format!("{change:?}"));
        assert_eq!(inside.ask("acquire after 1000"), "held", "{change:?}");
    }
}

#[test]
fn lock_08_an_opening_that_lost_the_file_beside_the_store_puts_nothing_right_any_more() {
    for removed in [&["-fence"][..], &["", "-fence"]] {
        for (before, step) in [
            (Change::Removed(&["-shm"]), "opening-puts-right"),
            (Change::Removed(&["-shm"]), "opening-sets-apart"),
            // Here it is about to remove the WAL.
            (Change::MovedOver, "opening-puts-right"),
        ] {
            let what = format!("{before:?} {step} {removed:?}");
            let folder = folder();
            let (store, mut other) = store(folder.path());
            drop(before.make(&store));
            let mut inside = start(&store, &format!("stop:{step}"));
            inside.tell(&format!("acquire inside {LONG}"));
            inside.process().wait_until_stopped();
            drop(Change::Removed(removed).make(&store));
            // It makes a file of its own beside the store, so it waits for nobody, puts everything right, and grants.
            let first = other.acquire("first", LONG);
            inside.process().go_on();
            let answer = inside.answer();
            let fence = answer.parse::<u128>().unwrap_or_else(|_| panic!("{what}: {answer}"));
            assert!(fence > first, "{what}: {fence} came after {first}");
            for key in ["first", "inside"] {
                for worker in [&mut other, &mut inside] {
                    assert_eq!(worker.ask(&format!("acquire {key} 1000")), "held", "{what}: {key}");
                }
            }
            let litter = fs::read_dir(folder.path()).expect("the folder").flatten();
            let copies = litter.filter(|found| found.file_name().to_string_lossy().contains("copy"));
            assert_eq!(copies.count(), 0, "{what}: a copy of the WAL stays behind");
        }
    }
}
