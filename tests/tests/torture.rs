//! The torture harness can fail: a fault that is planted in the store is found by its check, on a file and on a cluster.

use std::process::Command;

fn torture(arguments: &[&str]) -> (bool, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_torture"))
        .args(arguments)
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    // What it leaves behind for the one who looks for the fault.
    if let Some(folder) = text
        .split("the logs are in ")
        .nth(1)
        .and_then(|rest| rest.split("/logs;").next())
    {
        std::fs::remove_dir_all(folder).expect("its folder");
    }
    (output.status.success(), text + &String::from_utf8_lossy(&output.stderr))
}

#[test]
fn lock_03_a_store_that_keeps_its_epoch_in_memory_is_found() {
    let (passed, text) = torture(&["--plant", "epoch-in-memory", "5", "1"]);
    assert!(!passed, "{text}");
    assert!(
        text.contains("VIOLATION LOCK-03: ") || text.contains("VIOLATION LOCK-02: "),
        "{text}"
    );
}

#[test]
fn lock_03_so_it_is_on_a_cluster() {
    let (passed, text) = torture(&["--etcd", "--plant", "epoch-in-memory", "8", "1"]);
    assert!(!passed, "{text}");
    assert!(
        text.contains("VIOLATION LOCK-03: ") || text.contains("VIOLATION LOCK-02: "),
        "{text}"
    );
}

#[test]
fn lock_04_a_renewal_that_revives_is_found() {
    let (passed, text) = torture(&["--plant", "renewal-revives", "5", "1"]);
    assert!(!passed, "{text}");
    assert!(text.contains("VIOLATION LOCK-04: "), "{text}");
}

#[test]
fn lock_01_a_few_seconds_of_torture_violate_nothing_and_say_what_was_done() {
    let (passed, text) = torture(&["5", "1"]);
    assert!(passed, "{text}");
    assert!(text.starts_with("torture: seed 1, 5 s, 8 workers\n"), "{text}");
    for said in ["leases granted", "workers killed", "no violation"] {
        assert!(text.contains(said), "{text}");
    }
}

#[test]
fn lock_01_a_few_seconds_of_torture_on_a_cluster_violate_nothing_and_say_what_was_done() {
    let (passed, text) = torture(&["--etcd", "10", "1"]);
    assert!(passed, "{text}");
    assert!(
        text.starts_with("torture: seed 1, 10 s, 8 workers, three members\n"),
        "{text}"
    );
    for said in ["leases granted", "workers killed", "no violation"] {
        assert!(text.contains(said), "{text}");
    }
}
