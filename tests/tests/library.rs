//! The library as a file: its size, what it gives and what it takes.

use std::process::Command;

use fence_tests::{Shell, folder, host, library};

#[test]
fn the_library_exports_its_entry_points_alone_and_links_no_sqlite() {
    let size = library().metadata().expect("it is built").len();
    assert!(size <= 1 << 20, "the library has {size} bytes");
    let nm = |arguments: &[&str]| {
        let mut command = Command::new("nm");
        command.args(arguments).arg(library());
        host::run(command, "").ok()
    };
    let macos = cfg!(target_os = "macos");
    let exported = nm(if macos { &["-gU"] } else { &["-D", "--defined-only"] });
    let mut names: Vec<_> = exported
        .lines()
        .filter_map(|line| line.split_whitespace().last())
        .collect();
    names.sort_unstable();
    assert_eq!(
        names
            .iter()
            .map(|name| if macos { &name[1..] } else { name })
            .collect::<Vec<_>>(),
        ["sqlite3_extension_init", "sqlite3_fence_init", "sqlite3_fencepure_init"]
    );
    let wanted = nm(if macos { &["-gu"] } else { &["-D", "--undefined-only"] });
    assert!(!wanted.contains("sqlite3_"), "{wanted}");
}

#[test]
fn the_library_loads_under_any_name() {
    let folder = folder();
    let suffix = library().extension().expect("a library's name");
    for name in ["libfence", "fence", "foo", "a name with spaces"] {
        let copy = folder.path().join(name).with_extension(suffix);
        std::fs::copy(library(), &copy).expect("a copy");
        let version = Shell::plain().with_library(copy).run("select fence_version();").ok();
        assert_eq!(version, env!("CARGO_PKG_VERSION"), "as {name}");
    }
}
