//! LOCK-01 and LOCK-03 when the store cannot be had: an error with the right result code, no grant that is half done, no
//! transaction left open, and the next call works. And what spelling finds which store.

use std::path::{Path, PathBuf};
use std::process::Command;

use fence_tests::worker::Plan;
use fence_tests::{Shell, Worker, folder, wait_until};

const WORKER: &str = env!("CARGO_BIN_EXE_worker");
const LONG: u64 = 3_600_000;
const NOBODY: &str = "65534";

#[track_caller]
fn is_error(answer: &str, code: u8, part: &str) {
    assert!(answer.starts_with(&format!("error {code} fence: ")), "{answer}");
    assert!(answer.contains(part), "{answer}");
}

/// The program where everybody may run it: the target folder may be closed to others.
fn program(folder: &Path) -> PathBuf {
    let program = folder.join("worker");
    if !program.exists() {
        std::fs::copy(WORKER, &program).expect("a copy");
    }
    run("chmod", &["755", &folder.display().to_string()]);
    program
}

fn run(command: &str, arguments: &[&str]) {
    let status = Command::new(command).args(arguments).status().expect("it starts");
    assert!(status.success(), "{command} {arguments:?}");
}

/// A worker without root's rights: root may write everywhere.
fn as_nobody(folder: &Path, store: &Path) -> Plan {
    let program = program(folder);
    if !rustix::process::geteuid().is_root() {
        return Worker::plan(program.to_str().expect("UTF-8"), store);
    }
    let mut command = Command::new("setpriv");
    command.args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]);
    command.arg(program).arg(store);
    Plan::of(command)
}

/// A worker with a small file system of its own, whose store is on it; and the path by which we reach that.
fn on_a_small_disk(folder: &Path, kib: u64) -> (Worker, PathBuf) {
    let disk = folder.join("disk");
    std::fs::create_dir(&disk).expect("a folder");
    let mut command = Command::new("unshare");
    command.args(["--map-root-user", "--mount", "sh", "-c"]);
    command.arg("mount -t tmpfs -o size=\"$1\"k none \"$0\" && exec \"$2\" \"$0\"/kv.db");
    command.arg(&disk).arg(kib.to_string()).arg(WORKER);
    let mut worker = Plan::of(command).start();
    assert!(worker.acquire("first", LONG) > 0);
    let seen = PathBuf::from(format!("/proc/{}/root{}", worker.process().id(), disk.display()));
    (worker, seen)
}

#[test]
fn lock_03_a_full_disk_is_an_error_and_gives_no_half_of_a_grant() {
    let folder = folder();
    let (mut worker, disk) = on_a_small_disk(folder.path(), 512);
    let first = worker.ask("leases");
    let ballast = disk.join("ballast");
    let mut last: u128 = first.split('=').nth(1).expect("a fence").parse().expect("a fence");
    for round in 0..3 {
        // Nothing is written there, but no block is left.
        let full = Command::new("dd")
            .args(["if=/dev/zero", "bs=1k", "status=none"])
            .arg(format!("of={}", ballast.display()))
            .stderr(std::process::Stdio::null())
            .status();
        assert!(!full.expect("dd starts").success(), "the disk is full");
        // A few grants still fit into the WAL's last block.
        let mut answer = String::new();
        let mut tried = 0;
        wait_until("the WAL's last block is full", || {
            tried += 1;
            answer = worker.ask(&format!("acquire {round}-{tried} {LONG}"));
            last = answer.parse().unwrap_or(last);
            answer.starts_with("error")
        });
        is_error(&answer, 13, "make room on that disk");
        is_error(
            &worker.ask(&format!("acquire all{round} {LONG}")),
            13,
            "database or disk is full",
        );
        std::fs::remove_file(&ballast).expect("it is there");
        // At once, and nothing of the calls that failed is left.
        let fence = worker.acquire(&format!("all{round}"), LONG);
        assert!(fence > last);
        last = fence;
    }
}

#[test]
fn lock_01_a_read_only_folder_and_a_file_of_somebody_else_are_errors_that_name_the_path() {
    let folder = folder();
    let closed = folder.path().join("closed");
    std::fs::create_dir(&closed).expect("a folder");
    run("chmod", &["555", closed.to_str().expect("UTF-8")]);
    let mut worker = as_nobody(folder.path(), &closed.join("kv.db")).start();
    for _ in 0..2 {
        let answer = worker.ask("acquire k 1000");
        is_error(&answer, 14, "/closed/kv.db");
        assert!(answer.contains("this user"), "{answer}");
    }
    // The folder opens, and the next call works.
    run("chmod", &["777", closed.to_str().expect("UTF-8")]);
    worker.acquire("k", LONG);

    if rustix::process::geteuid().is_root() {
        let store = folder.path().join("owned.db");
        Worker::start(WORKER, &store).acquire("k", LONG);
        run("chmod", &["644", store.to_str().expect("UTF-8")]);
        let mut worker = as_nobody(folder.path(), &store).start();
        is_error(&worker.ask("acquire k 1000"), 8, "see that this user may write");
        run("chmod", &["600", store.to_str().expect("UTF-8")]);
        is_error(&worker.ask("acquire k 1000"), 14, "/owned.db");
    }
}

#[test]
fn lock_01_a_stranger_who_keeps_the_file_locked_makes_a_call_fail_after_five_seconds_and_the_next_one_works() {
    for begin in ["begin immediate", "begin exclusive"] {
        let folder = folder();
        let store = folder.path().join("kv.db");
        let mut worker = Worker::start(WORKER, &store);
        let fence = worker.acquire("k", LONG);
        let mut stranger = Shell::plain().on(&store).start();
        stranger.ask(begin);
        // A key that is held is a question, and needs no lock.
        assert_eq!(worker.ask("acquire k 1000"), "held");
        is_error(&worker.ask(&format!("acquire other {LONG}")), 5, "was locked for 5 s");
        stranger.ask("commit");
        assert!(worker.acquire("other", LONG) > fence);
        assert_eq!(worker.ask(&format!("release k {fence}")), "1");
    }
}

#[test]
fn lock_01_who_would_wait_for_a_key_waits_so_long_for_a_stranger_too() {
    let folder = folder();
    let store = folder.path().join("kv.db");
    let mut worker = Worker::start(WORKER, &store);
    let mut other = Worker::start(WORKER, &store);
    worker.acquire("held", LONG);
    let mut stranger = Shell::plain().on(&store).start();
    stranger.ask("begin immediate");
    worker.tell(&format!("acquire k {LONG} 3600000"));
    // Longer than the lock is waited for without a wait.
    is_error(&other.ask("acquire k 1000"), 5, "was locked for 5 s");
    stranger.ask("commit");
    assert!(worker.answer().parse::<u128>().is_ok());
}

#[test]
fn lock_01_another_programs_database_stays_as_it_is() {
    let folder = folder();
    let store = folder.path().join("kv.db");
    Shell::plain().on(&store).run("create table theirs (x);").ok();
    let before = std::fs::read(&store).expect("a file");
    let mut worker = Worker::start(WORKER, &store);
    is_error(&worker.ask("acquire k 1000"), 26, "another program's database");
    assert_eq!(std::fs::read(&store).expect("a file"), before);
}

#[test]
fn lock_01_a_store_without_its_own_row_is_corrupt_and_the_message_says_what_to_do() {
    let folder = folder();
    let store = folder.path().join("kv.db");
    let mut worker = Worker::start(WORKER, &store);
    let fence = worker.acquire("k", LONG);
    Shell::plain().on(&store).run("delete from leases where key = '';").ok();
    is_error(
        &worker.ask("acquire other 1000"),
        11,
        "move the file away with its -wal and -shm and call fence_advance",
    );
    for suffix in ["", "-wal", "-shm"] {
        std::fs::rename(
            folder.path().join(format!("kv.db{suffix}")),
            folder.path().join(format!("away{suffix}")),
        )
        .expect("a file");
    }
    assert!(worker.ask(&format!("advance {fence}")).parse::<u64>().is_ok());
    assert!(worker.acquire("other", LONG) > fence);
}

#[test]
fn lock_01_every_spelling_of_a_path_finds_the_same_store() {
    let folder = folder();
    let root = folder.path().canonicalize().expect("a folder");
    std::fs::create_dir(root.join("sub")).expect("a folder");
    let store = root.join("kv.db");
    let mut worker = Worker::start(WORKER, &store);
    let fence = worker.acquire("k", LONG);
    std::os::unix::fs::symlink(&store, root.join("link.db")).expect("a link");
    std::os::unix::fs::symlink(&root, root.join("sub/up")).expect("a link");
    let uri = format!("file://{}", store.display());
    for (spelling, within) in [
        ("kv.db", &root),
        ("./sub/../kv.db", &root),
        ("../kv.db", &root.join("sub")),
        ("sub/up/link.db", &root),
        ("file:kv.db", &root),
        (uri.as_str(), &root),
    ] {
        let mut other = Worker::plan(WORKER, spelling).within(within).start();
        assert_eq!(other.ask("acquire k 1000"), "held", "{spelling}");
        assert_eq!(other.ask(&format!("renew k {fence}")), "1", "{spelling}");
    }
    assert_eq!(worker.ask(&format!("release k {fence}")), "1");
    // A second hard link would be a second WAL.
    std::fs::hard_link(&store, root.join("hard.db")).expect("a link");
    for path in ["hard.db", "kv.db"] {
        let mut other = Worker::start(WORKER, root.join(path));
        is_error(&other.ask("acquire k 1000"), 14, "2 hard links");
    }
    std::fs::remove_file(root.join("hard.db")).expect("a link");
    let mut other = Worker::start(WORKER, &store);
    other.acquire("k", LONG);
}
