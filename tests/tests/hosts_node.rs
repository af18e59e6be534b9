//! The npm package: built, installed, its own tests with each SQLite module, its types, its example.

use std::process::Command;
use std::sync::OnceLock;

use fence_tests::{folder, host, node, root};

const STORY: &str = "second: changes 1\nfirst: changes 0\nfirst: the lease was lost\nstayed: what second found";

#[test]
fn the_package_installs_into_an_empty_folder_and_its_example_runs() {
    let folder = folder();
    node::npm(folder.path(), &["install", node::ours(), "better-sqlite3@13.2.0"]);
    let example = folder.path().join("save_summary.mts");
    std::fs::copy(root().join("extension/hosts/node/examples/save_summary.mts"), &example).expect("a copy");
    let mut node = node::node();
    node.arg(example);
    assert_eq!(host::run(node, "").ok(), STORY);
}

#[test]
fn its_own_tests_pass_with_better_sqlite3() {
    own_tests(node::node(), "better-sqlite3", "locks.test.mts", 17);
}

#[test]
fn its_own_tests_pass_with_node_sqlite() {
    own_tests(node::node(), "node:sqlite", "locks.test.mts", 17);
}

#[test]
fn its_own_tests_pass_with_bun_sqlite() {
    let mut bun = node::bun();
    bun.env("FENCE_TEST_MODULE", "bun:sqlite")
        .arg("test")
        .arg(tests().join("locks.test.mts"));
    let answer = host::run(bun, "");
    assert!(answer.status.success() && answer.err.contains(" 17 pass"), "{answer}");
}

#[test]
fn two_hundred_workers_with_better_sqlite3_load_use_and_close() {
    own_tests(node::node(), "better-sqlite3", "workers.test.mts", 1);
}

#[test]
fn two_hundred_workers_with_node_sqlite_load_use_and_close() {
    own_tests(node::node(), "node:sqlite", "workers.test.mts", 1);
}

#[test]
fn the_types_are_clean_and_reach_the_user() {
    let example = node::place("extension/hosts/node/examples").join("save_summary.mts");
    let wrong = node::folder().join("wrong.mts");
    let source = "import { Locks } from 'sqlite-fence';\nimport Database from 'better-sqlite3';\n\
                  const locks = new Locks('kv.db', () => new Database(':memory:'));\n\
                  await locks.lock('chat').hold(42, (lease) => { const fence: number = lease.fence; return fence; });\n\
                  await locks.semaphore('gpu', 2).hold((permit) => permit.fence);\n";
    std::fs::write(&wrong, source).expect("a new file");
    assert_eq!(node::tsc(&example), "");
    assert_eq!(node::tsc(&tests().join("locks.test.mts")), "");
    let told = node::tsc(&wrong);
    assert!(
        told.contains("Type 'bigint' is not assignable to type 'number'"),
        "{told}"
    );
    assert!(
        told.contains("Property 'fence' does not exist on type 'Permit'"),
        "{told}"
    );
    assert_eq!(told.lines().count(), 2, "{told}");
}

/// The package's own tests, beside the installed package.
fn tests() -> &'static std::path::Path {
    static TESTS: OnceLock<std::path::PathBuf> = OnceLock::new();
    TESTS.get_or_init(|| node::place("extension/hosts/node/tests"))
}

#[track_caller]
fn own_tests(mut node: Command, module: &str, file: &str, count: usize) {
    node.env("FENCE_TEST_MODULE", module)
        .args(["--test", "--test-reporter=tap"])
        .arg(tests().join(file));
    let answer = host::run(node, "");
    let line = |line: String| answer.out.lines().any(|printed| printed == line);
    assert!(
        answer.status.success() && line(format!("# pass {count}")) && line("# skipped 0".into()),
        "{answer}"
    );
}
