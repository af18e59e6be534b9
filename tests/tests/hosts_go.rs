//! The Go module: built, got by `go get`, its own tests, its example.

use fence_tests::{folder, go};

const STORY: &str = "second: changes 1\nfirst: changes 0\nfirst: the lease was lost\nstayed: what second found";

#[test]
fn the_module_is_got_into_an_empty_module_and_its_example_runs() {
    let folder = folder();
    go::module(folder.path());
    assert_eq!(
        go::run(folder.path(), &["run", "sqlite.fence/examples/save_summary"]),
        STORY
    );
}

#[test]
fn its_own_tests_pass_under_the_race_detector() {
    let folder = folder();
    go::own_module(folder.path());
    go::run(folder.path(), &["vet", "./..."]);
    let told = go::run(folder.path(), &["test", "-race", "-v", "./locks"]);
    assert!(!told.contains("--- SKIP"), "{told}");
    assert!(told.matches("--- PASS").count() >= 19, "{told}");
}
