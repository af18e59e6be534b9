//! LOCK-08: kv.db, its WAL or its index is deleted, replaced or restored while two processes have the store open.
//!
//! Each test does one thing to the files behind the processes' backs. Then the next grant is one of the files that stand
//! there now: what one process holds the other is refused, and the fences go on growing.

use std::path::{Path, PathBuf};
use std::process::Command;

use fence_tests::{Worker, folder};

const WORKER: &str = env!("CARGO_BIN_EXE_worker");
/// More than any test takes, in milliseconds.
const LONG: u64 = 3_600_000;

/// A store that two processes have open, a copy of it from an earlier time, and the largest fence given since.
struct Scene {
    _folder: tempfile::TempDir,
    store: PathBuf,
    copy: PathBuf,
    a: Worker,
    b: Worker,
    largest: u128,
}

/// Runs a command of the system, as a process of its own: a file that is opened by hand where SQLite has it open loses its
/// locks.
fn run(command: &str, arguments: &[&Path]) {
    let status = Command::new(command).args(arguments).status().expect("it starts");
    assert!(status.success(), "{command} {arguments:?}");
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

impl Scene {
    /// Both have taken leases; the copy knows the first of them only.
    fn new() -> Self {
        Self::with_checkpoints_every("1000000")
    }

    /// After checkpoints the WAL holds only the pages that were written last.
    fn with_checkpoints_every(pages: &str) -> Self {
        let folder = folder();
        let store = folder.path().join("kv.db");
        let copy = folder.path().join("copy.db");
        let start = || {
            Worker::plan(WORKER, &store)
                .env("FENCE_CHECKPOINT_PAGES", pages)
                .start()
        };
        let (mut a, mut b) = (start(), start());
        a.acquire("old", LONG);
        for suffix in ["", "-wal"] {
            run("cp", &[&beside(&store, suffix), &beside(&copy, suffix)]);
        }
        let mut largest = 0;
        for n in 0..50 {
            largest = b.acquire(&format!("b{n}"), LONG);
        }
        largest = largest.max(a.acquire("a", LONG));
        Self {
            _folder: folder,
            store,
            copy,
            a,
            b,
            largest,
        }
    }

    fn wal(&self) -> PathBuf {
        beside(&self.store, "-wal")
    }

    fn index(&self) -> PathBuf {
        beside(&self.store, "-shm")
    }

    /// Two processes have one lease table, and larger fences than ever before.
    #[track_caller]
    fn goes_on(mut self) {
        let first = self.a.acquire("new", LONG);
        assert!(first > self.largest, "{first} came after {}", self.largest);
        assert_eq!(self.b.ask("acquire new 1000"), "held");
        let second = self.b.acquire("newer", LONG);
        assert!(second > first, "{second} came after {first}");
        assert_eq!(self.a.ask("acquire newer 1000"), "held");
        assert_eq!(self.a.ask(&format!("renew new {first}")), "1");
        assert_eq!(self.a.ask(&format!("release new {first}")), "1");
        let third = self.b.acquire("new", LONG);
        assert!(third > second);
        // Whoever comes anew finds the same table.
        let mut c = Worker::start(WORKER, &self.store);
        assert_eq!(c.ask("acquire new 1000"), "held");
        assert!(c.acquire("newest", LONG) > third);
        for worker in [&mut self.a, &mut self.b] {
            assert_eq!(worker.ask("acquire newest 1000"), "held");
        }
    }
}

#[test]
fn lock_08_kv_db_and_all_that_belongs_to_it_is_deleted() {
    let scene = Scene::new();
    run(
        "rm",
        &[
            &scene.store,
            &scene.wal(),
            &scene.index(),
            &beside(&scene.store, "-fence"),
        ],
    );
    scene.goes_on();
}

#[test]
fn lock_08_kv_db_alone_is_deleted_and_its_wal_stays() {
    let scene = Scene::new();
    run("rm", &[&scene.store]);
    scene.goes_on();
}

#[test]
fn lock_08_the_wal_alone_is_deleted() {
    let scene = Scene::new();
    run("rm", &[&scene.wal()]);
    scene.goes_on();
}

#[test]
fn lock_08_the_index_of_the_wal_is_deleted_and_no_lease_is_lost() {
    let mut scene = Scene::new();
    run("rm", &[&scene.index()]);
    assert_eq!(scene.b.ask("acquire a 1000"), "held");
    assert_eq!(scene.a.ask("acquire b49 1000"), "held");
    scene.goes_on();
}

#[test]
fn lock_08_an_older_copy_is_moved_over_kv_db_and_the_wal_stays() {
    let scene = Scene::new();
    run("mv", &[&scene.copy, &scene.store]);
    scene.goes_on();
}

#[test]
fn lock_08_an_older_copy_is_moved_over_kv_db_with_its_wal() {
    let scene = Scene::new();
    run("mv", &[&beside(&scene.copy, "-wal"), &scene.wal()]);
    run("mv", &[&scene.copy, &scene.store]);
    scene.goes_on();
}

#[test]
fn lock_08_an_older_copy_is_moved_over_kv_db_and_the_wal_is_deleted() {
    let scene = Scene::new();
    run("rm", &[&scene.wal(), &scene.index()]);
    run("mv", &[&scene.copy, &scene.store]);
    scene.goes_on();
}

#[test]
fn lock_08_an_older_copy_is_written_into_kv_db_and_the_wal_is_deleted() {
    let scene = Scene::new();
    run("rm", &[&scene.wal()]);
    run("cp", &[&scene.copy, &scene.store]);
    scene.goes_on();
}

#[test]
fn lock_08_an_older_copy_is_written_into_kv_db_and_into_its_wal() {
    let scene = Scene::new();
    run("cp", &[&scene.copy, &scene.store]);
    run("cp", &[&beside(&scene.copy, "-wal"), &scene.wal()]);
    scene.goes_on();
}

#[test]
fn lock_08_the_wal_of_another_kv_db_is_not_laid_over_the_one_that_stands_there_now() {
    let mut scene = Scene::with_checkpoints_every("8");
    let other = scene.store.with_file_name("other.db");
    let mut worker = Worker::start(WORKER, &other);
    for n in 0..100 {
        worker.acquire(&format!("other{n}"), LONG);
    }
    // The last one to close brings its WAL into the file.
    assert_eq!(worker.ask("drop"), "ok");
    assert!(!beside(&other, "-wal").exists());
    run("mv", &[&other, &scene.store]);
    let listed = scene.a.ask("leases");
    let listed: Vec<_> = listed
        .split(' ')
        .map(|lease| lease.split('=').next().unwrap_or(lease))
        .collect();
    let mut theirs: Vec<_> = (0..100).map(|n| format!("other{n}")).collect();
    theirs.sort();
    assert_eq!(listed, theirs);
    scene.goes_on();
}

#[test]
fn lock_08_kv_db_is_written_over_in_place_and_everybody_opens_anew() {
    let mut scene = Scene::new();
    let epoch = |worker: &mut Worker| worker.ask("epoch").parse::<u64>().expect("an epoch");
    let before = epoch(&mut scene.a);
    // Byte by byte what it was, as far as anybody can tell.
    run("cp", &[&scene.store, &scene.copy]);
    run("cp", &[&scene.copy, &scene.store]);
    scene.b.acquire("noticed", LONG);
    let after = epoch(&mut scene.b);
    assert!(after > before, "{after} after {before}");
    assert_eq!(scene.a.ask("acquire noticed 1000"), "held");
    scene.goes_on();
}

#[test]
fn lock_08_who_was_inside_a_grant_when_the_index_was_deleted_writes_to_what_nobody_reads() {
    let folder = folder();
    let store = folder.path().join("kv.db");
    let mut b = Worker::start(WORKER, &store);
    b.acquire("before", LONG);
    let mut a = Worker::plan(WORKER, &store)
        .env("FENCE_FAULT", "stop:grant-before-commit")
        .start();
    a.tell(&format!("acquire a {LONG}"));
    a.process().wait_until_stopped();
    run("rm", &[&beside(&store, "-shm")]);
    let mut largest = 0;
    for n in 0..30 {
        largest = b.acquire(&format!("b{n}"), LONG);
    }
    a.process().go_on();
    let fence: u128 = a.answer().parse().expect("a fence");
    assert!(fence > largest);
    a.process().kill();
    b.process().kill();
    // Whoever reads the WAL anew finds every grant.
    run("rm", &[&beside(&store, "-shm")]);
    let mut c = Worker::start(WORKER, &store);
    for n in 0..30 {
        assert_eq!(c.ask(&format!("acquire b{n} 1000")), "held", "b{n}");
    }
    for key in ["a", "before"] {
        assert_eq!(c.ask(&format!("acquire {key} 1000")), "held", "{key}");
    }
}

#[test]
fn lock_08_the_folder_is_renamed_and_another_stands_in_its_place() {
    let mut scene = Scene::new();
    let folder = scene.store.parent().expect("a folder").to_owned();
    let moved = folder.with_extension("moved");
    run("mv", &[&folder, &moved]);
    let answer = scene.a.ask("acquire k 1000");
    assert!(answer.starts_with("error 14 fence: "), "{answer}");
    assert!(answer.contains("its folder does not exist"), "{answer}");
    // Back again, everything is as it was.
    run("mv", &[&moved, &folder]);
    assert_eq!(scene.b.ask("acquire a 1000"), "held");
    // A new folder is a new store, and the fences grow on.
    run("mv", &[&folder, &moved]);
    std::fs::create_dir(&folder).expect("a folder");
    scene.goes_on();
    std::fs::remove_dir_all(moved).expect("a folder of ours");
}

#[test]
fn lock_08_a_process_that_closed_the_store_and_opens_it_again_gives_larger_fences_whatever_stands_there() {
    let folder = folder();
    let store = folder.path().join("kv.db");
    let clock = folder.path().join("clock");
    std::fs::write(&clock, "+0").expect("a file");
    let mut worker = Worker::plan(WORKER, &store).clock(&clock).start();
    let before = worker.acquire("k", LONG);
    assert_eq!(worker.ask("drop"), "ok");
    std::fs::write(&clock, "-1h").expect("a file");
    run("rm", &[&store]);
    assert!(worker.acquire("k", LONG) > before);
}

#[test]
fn lock_01_a_bound_lease_outlives_the_file_beside_the_store() {
    let mut scene = Scene::new();
    let fence = scene.a.ask("acquire bound 3600000 0 bound");
    assert!(fence.parse::<u128>().is_ok(), "{fence}");
    run("rm", &[&beside(&scene.store, "-fence")]);
    // Neither a process that has the store open nor one that opens it now can tell that the holder lives.
    let mut c = Worker::start(WORKER, &scene.store);
    assert_eq!(c.ask("acquire bound 1000"), "held");
    assert_eq!(scene.b.ask("acquire bound 1000"), "held");
    // A lease that is bound by the new file: those who still have the old one open see its holder live.
    assert!(c.ask("acquire other 3600000 0 bound").parse::<u128>().is_ok());
    assert_eq!(scene.b.ask("acquire other 1000"), "held");
    assert_eq!(scene.a.ask(&format!("release bound {fence}")), "1");
}

#[test]
fn lock_01_a_grant_is_bound_by_the_file_that_stands_beside_the_store_when_it_is_committed() {
    let folder = folder();
    let store = folder.path().join("kv.db");
    let mut other = Worker::start(WORKER, &store);
    other.acquire("k", LONG);
    let mut holder = Worker::plan(WORKER, &store)
        .env("FENCE_FAULT", "stop:grant-begins")
        .start();
    holder.tell(&format!("acquire bound {LONG} 0 bound"));
    holder.process().wait_until_stopped();
    run("rm", &[&beside(&store, "-fence")]);
    // Its opening is the one that lets bound leases last for their ttl.
    let mut fresh = Worker::start(WORKER, &store);
    fresh.acquire("fresh", LONG);
    holder.process().go_on();
    let answer = holder.answer();
    assert!(answer.parse::<u128>().is_ok(), "{answer}");
    for worker in [&mut fresh, &mut other] {
        assert_eq!(worker.ask("acquire bound 1000"), "held");
    }
}

#[test]
fn lock_04_a_release_after_which_the_files_changed_has_released() {
    for suffix in ["-fence", "-shm"] {
        for (acquire, release) in [("acquire k", "release k"), ("acquire-all k+l", "release-all")] {
            let folder = folder();
            let store = folder.path().join("kv.db");
            let mut other = Worker::start(WORKER, &store);
            let mut holder = Worker::plan(WORKER, &store)
                .env("FENCE_FAULT", "stop:release-after-commit")
                .start();
            let fence: u128 = holder.ask(&format!("{acquire} {LONG}")).parse().expect("a fence");
            holder.tell(&format!("{release} {fence}"));
            holder.process().wait_until_stopped();
            // Until a look at the files from before this is no longer believed.
            assert!(other.acquire("k", 30) > fence);
            assert!(other.ask("acquire k 1 60000").parse::<u128>().is_ok());
            run("rm", &[&beside(&store, suffix)]);
            holder.process().go_on();
            assert_eq!(holder.answer(), "1", "{release} {suffix}");
            assert_eq!(holder.ask(&format!("{release} {fence}")), "0", "{release} {suffix}");
        }
    }
}
