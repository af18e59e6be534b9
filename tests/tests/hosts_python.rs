//! The Python package: built, installed, its own tests, its types, its example.

use fence_tests::{folder, host, root, venv};

const PACKAGE: &str = "extension/hosts/python";
const EXAMPLE: &str = "extension/hosts/python/examples/save_summary.py";
const STORY: &str = "second: changes 1\nfirst: changes 0\nfirst: the lease was lost\nstayed: what second found";

#[test]
fn the_wheel_installs_into_an_empty_environment_and_its_example_runs() {
    let folder = folder();
    let python = venv::empty(folder.path());
    venv::pip(folder.path(), &["--no-index", venv::wheel()]);
    let mut example = host::command(python);
    example.arg("-I").arg(root().join(EXAMPLE));
    assert_eq!(host::run(example, "").ok(), STORY);
}

#[test]
fn the_packages_own_tests_pass() {
    let mut tests = host::command(venv::python());
    tests
        .args(["-I", "-m", "unittest", "discover", "-s"])
        .arg(root().join(PACKAGE).join("tests"));
    let answer = host::run(tests, "");
    assert!(answer.status.success(), "{answer}");
    assert!(!answer.err.contains("skipped"), "{answer}");
    let ran = answer
        .err
        .lines()
        .find_map(|line| line.strip_prefix("Ran ")?.split(' ').next()?.parse::<u32>().ok());
    assert!(ran.is_some_and(|ran| ran >= 30), "{answer}");
}

#[test]
fn the_types_are_clean_and_reach_the_user() {
    let folder = folder();
    let program = folder.path().join("program.py");
    let source = "from sqlite_fence import Locks\n\
                  with Locks('kv.db').lock('chat').hold(42) as lease:\n    reveal_type(lease.fence)\n\
                  async def work() -> None:\n    async with Locks('kv.db').semaphore('gpu', 2).hold() as permit:\n        \
                  reveal_type(permit.id)\n        permit.fence\n";
    std::fs::write(&program, source).expect("a new file");
    let mypy = |what: &std::path::Path| {
        let mut mypy = host::command(venv::python());
        mypy.current_dir(folder.path())
            .args(["-m", "mypy", "--strict", "--no-color-output"])
            .arg(what);
        host::run(mypy, "").out
    };
    let own = mypy(&root().join(PACKAGE).join("src"));
    assert!(own.starts_with("Success: no issues found"), "{own}");
    let users = mypy(&program);
    assert!(users.contains("Revealed type is \"int\""), "{users}");
    assert!(users.contains("Revealed type is \"str\""), "{users}");
    assert!(
        users.contains("program.py:7: error: \"Permit\" has no attribute \"fence\""),
        "{users}"
    );
    assert!(users.contains("Found 1 error"), "{users}");
}
