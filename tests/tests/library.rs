//! The library as a file: its name, its size, what it gives and what it takes.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use fence_tests::host::Answer;
use fence_tests::{Shell, extension, folder, host, library, root};

#[test]
fn the_library_exports_its_entry_points_alone_and_links_no_sqlite() {
    let macos = cfg!(target_os = "macos");
    let defined = names(if macos { &["-gU"] } else { &["-D", "--defined-only"] });
    assert_eq!(
        defined,
        ["sqlite3_extension_init", "sqlite3_fence_init", "sqlite3_fencepure_init"]
    );
    let undefined = names(if macos { &["-gu"] } else { &["-D", "--undefined-only"] });
    assert!(!undefined.is_empty(), "it calls the C library at least");
    assert!(!undefined.iter().any(|name| name.contains("sqlite")), "{undefined:?}");
    // Nor is one inside: what every database file begins with is a constant of every SQLite.
    let (content, constant) = (std::fs::read(library()).expect("it is built"), b"SQLite format 3\0");
    assert!(!content.windows(constant.len()).any(|window| window == constant));
}

#[test]
fn the_library_is_at_most_one_mebibyte() {
    let size = library().metadata().expect("it is built").len();
    assert!(size <= 1 << 20, "it has {size} bytes");
}

#[test]
fn the_library_loads_under_any_name() {
    let folder = folder();
    let suffix = library().extension().expect("a library's name");
    for name in ["libfence", "fence", "foo", "libfoo", "a name with spaces"] {
        let bare = folder.path().join(name);
        let copy = bare.with_extension(suffix);
        std::fs::copy(library(), &copy).expect("a copy");
        // SQLite itself adds the ending where it is left out.
        for path in [copy, bare] {
            let version = Shell::plain().with_library(path).run("select fence_version();").ok();
            assert_eq!(version, env!("CARGO_PKG_VERSION"), "as {name}");
        }
    }
}

/// A `cp` that is done only when another one is done copying as well.
const MEETING_CP: &str = r#"#!/bin/sh
PATH=${PATH#*:}
cp "$@" || exit
if mkdir "$0.first" 2>/dev/null; then read -r _ <"$0.meeting"; else echo >"$0.meeting"; fi
"#;

#[test]
fn two_makes_at_once_both_put_the_library_where_it_belongs() {
    let folder = folder();
    let goal = folder.path().join("dist/fence.so");
    let fifo = folder.path().join("cp.meeting");
    let mut mkfifo = Command::new("mkfifo");
    mkfifo.arg(&fifo);
    host::run(mkfifo, "").ok();
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| make_library(&goal, MEETING_CP).ok());
        }
    });
    assert_eq!(std::fs::read(&goal).ok(), std::fs::read(library()).ok());
    let mode = |path: &Path| path.metadata().expect("it is built").permissions().mode();
    assert_eq!(mode(&goal), mode(library()));
    assert_eq!(files(goal.parent().expect("a folder")), ["fence.so"]);
}

#[test]
fn a_make_that_fails_leaves_the_library_that_is_there_and_nothing_beside_it() {
    let folder = folder();
    let goal = folder.path().join("dist/fence.so");
    std::fs::create_dir(folder.path().join("dist")).expect("a new folder");
    std::fs::write(&goal, "the old one").expect("a new file");
    make_library(&goal, "#!/bin/sh\nexit 1\n").error();
    assert_eq!(std::fs::read(&goal).ok(), Some(b"the old one".to_vec()));
    assert_eq!(files(goal.parent().expect("a folder")), ["fence.so"]);
}

/// Runs `make library` with this goal, and with this script for `cp`, which is put beside the goal's folder.
fn make_library(goal: &Path, cp: &str) -> Answer {
    library();
    let folder = goal.ancestors().nth(2).expect("a folder");
    let script = folder.join("cp");
    if !script.exists() {
        let new = tempfile::NamedTempFile::new_in(folder)
            .expect("a new file")
            .into_temp_path();
        std::fs::write(&new, cp).expect("a file of ours");
        std::fs::set_permissions(&new, PermissionsExt::from_mode(0o755)).expect("a file of ours");
        new.persist(script).expect("a file of ours");
    }
    let mut make = host::command(host::find("make"));
    make.arg("-C")
        .arg(root())
        .arg("library")
        .arg(format!("library={}", goal.display()));
    extension::forget_the_outer_build(&mut make);
    let path = std::env::var("PATH").expect("a PATH");
    make.env("PATH", format!("{}:{path}", folder.display()));
    let mut answer = host::run(make, "");
    // Cargo tells what it does.
    if answer.status.success() {
        answer.err.clear();
    }
    answer
}

/// The names of the files in a folder.
fn files(folder: &Path) -> Vec<String> {
    let entries = folder.read_dir().expect("a folder");
    entries
        .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
        .collect()
}

/// The names that nm lists, sorted.
fn names(arguments: &[&str]) -> Vec<String> {
    let mut command = Command::new(host::find("nm"));
    command.args(arguments).arg(library());
    let listed = host::run(command, "").ok();
    // The last word of a line is the name; macOS puts an underscore before it, and Linux a version behind it.
    let name = |line: &str| Some(line.split_whitespace().last()?.trim_start_matches('_').to_string());
    let mut names: Vec<_> = listed.lines().filter_map(name).collect();
    names.sort();
    names
}
