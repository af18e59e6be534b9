//! Rust: the crate as it is packaged, in a program of its own. The program that loads the library into connections of its
//! own is run by hosts_recipes.rs.

use fence_tests::{extension, folder, host, package, root};

const STORY: &str = "second: changes 1\nfirst: changes 0\nfirst: the lease was lost\nstayed: what second found";

#[test]
fn the_crate_is_added_to_an_empty_program_and_its_example_runs() {
    let folder = folder();
    let app = folder.path();
    let dependency = package::build("rust", "dist/fence-core");
    cargo(app, &["init", "--quiet", "--name", "app"]);
    std::fs::copy(
        root().join("extension/hosts/rust/examples/save_summary.rs"),
        app.join("src/main.rs"),
    )
    .expect("a copy");
    cargo(app, &["add", "--quiet", "--path", &dependency]);
    cargo(
        app,
        &[
            "add",
            "--quiet",
            "rusqlite@0.40",
            "--no-default-features",
            "--features",
            "bundled",
        ],
    );
    cargo(app, &["add", "--quiet", "rustix@1", "--features", "process"]);
    cargo(app, &["add", "--quiet", "tempfile@3"]);
    assert_eq!(cargo(app, &["run", "--quiet"]), STORY);
}

#[test]
fn the_example_runs_where_it_stands() {
    assert_eq!(
        cargo(
            root(),
            &["run", "--quiet", "-p", "fence-examples", "--example", "save_summary"]
        ),
        STORY
    );
}

#[track_caller]
fn cargo(folder: &std::path::Path, arguments: &[&str]) -> String {
    let mut cargo = host::command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    extension::forget_the_outer_build(&mut cargo);
    cargo.current_dir(folder).args(arguments);
    if folder != root() {
        // What it compiles is kept for the next time.
        cargo.env("CARGO_TARGET_DIR", root().join("target/hosts/rust"));
    }
    let answer = host::run(cargo, "");
    assert!(answer.status.success(), "cargo {arguments:?}: {answer}");
    answer.out.trim_end().to_string()
}
