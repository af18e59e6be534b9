//! The built extension: always the release library, as users load it.
//!
//! The extension is a workspace of its own, so it is built by a cargo call of its own, once for each test process;
//! cargo's lock lets several of them do it at once, and all but the first find the work done. It is the same call with
//! the same target folder as `make`.

use std::env::consts::{DLL_PREFIX, DLL_SUFFIX};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The path of the built extension; builds it if need be.
///
/// # Panics
///
/// When it does not build, with what cargo said.
pub fn library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| build("", &["--release"]).join("release").join(file_name()))
}

/// The path of the extension that can also use a cluster; builds it if need be, by the same call with the same target
/// folder as `make etcd`.
///
/// # Panics
///
/// When it does not build, with what cargo said.
pub fn cluster_library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    let arguments = ["--release", "--features", "etcd"];
    LIBRARY.get_or_init(|| build("etcd", &arguments).join("release").join(file_name()))
}

/// The path of another build of the extension: with the functions that panic when they are told to, and with every
/// check that Rust has for debugging. In a folder of its own, so that nobody takes it for the library.
///
/// # Panics
///
/// When it does not build, with what cargo said.
pub fn faulty_library() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| build("fault", &["--features", "fault"]).join("debug").join(file_name()))
}

/// Runs `make` for as long as it takes, so that one who follows a document finds everything built: how long compilers
/// take is no fault of what is documented.
///
/// # Panics
///
/// When it fails, with what it said.
pub fn make() {
    static MADE: OnceLock<()> = OnceLock::new();
    MADE.get_or_init(|| {
        let mut make = Command::new("make");
        make.arg("-C").arg(crate::root());
        forget_the_outer_build(&mut make);
        let made = make.output().unwrap_or_else(|e| panic!("cannot run {make:?}: {e}"));
        assert!(
            made.status.success(),
            "make fails:\n{}",
            String::from_utf8_lossy(&made.stderr)
        );
    });
}

fn file_name() -> String {
    format!("{DLL_PREFIX}fence{DLL_SUFFIX}")
}

/// Builds the extension with these arguments into this folder below its target folder, and gives the latter's path.
fn build(folder: &str, arguments: &[&str]) -> PathBuf {
    let extension = crate::root().join("extension");
    let target = extension.join("target").join(folder);
    cargo_build(&extension.join("Cargo.toml"), &target, arguments);
    target
}

/// Builds what this manifest is of with these arguments, by a cargo call of its own.
pub(crate) fn cargo_build(manifest: &Path, target: &Path, arguments: &[&str]) {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.arg("build").args(arguments);
    cargo.arg("--manifest-path").arg(manifest);
    cargo.arg("--target-dir").arg(target);
    forget_the_outer_build(&mut cargo);
    let built = cargo.output().unwrap_or_else(|e| panic!("cannot run {cargo:?}: {e}"));
    assert!(
        built.status.success(),
        "{} does not build:\n{}",
        manifest.display(),
        String::from_utf8_lossy(&built.stderr)
    );
}

/// Takes from the command's environment what cargo and make set for the build that this test belongs to, and what would
/// move the library elsewhere. What a user sets for every build (`RUSTFLAGS`, `CARGO_HOME`, `CARGO_NET_OFFLINE` …)
/// stays.
pub fn forget_the_outer_build(command: &mut Command) {
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(describes_the_outer_build) {
            command.env_remove(name);
        }
    }
}

fn describes_the_outer_build(variable: &str) -> bool {
    const NAMES: [&str; 12] = [
        "MAKEFLAGS",
        "MAKELEVEL",
        "MFLAGS",
        "OUT_DIR",
        "CARGO_BIN_NAME",
        "CARGO_CRATE_NAME",
        "CARGO_ENCODED_RUSTFLAGS",
        "CARGO_PRIMARY_PACKAGE",
        "CARGO_BUILD_TARGET",
        "CARGO_BUILD_TARGET_DIR",
        "CARGO_TARGET_DIR",
        "CARGO_TARGET_TMPDIR",
    ];
    const PREFIXES: [&str; 5] = [
        "CARGO_PKG_",
        "CARGO_MANIFEST_",
        "CARGO_BIN_EXE_",
        "CARGO_CFG_",
        "CARGO_FEATURE_",
    ];
    NAMES.contains(&variable) || PREFIXES.iter().any(|prefix| variable.starts_with(prefix))
}
