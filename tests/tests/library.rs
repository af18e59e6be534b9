//! The library as a file: its name, its size, what it gives and what it takes.

use std::process::Command;

use fence_tests::{Shell, folder, host, library};

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
