//! The built program `fence`: always the release build, as users install it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::extension::cargo_build;

/// The path of the built program; builds it if need be, by the same call with the same target folder as `make`.
///
/// # Panics
///
/// When it does not build, with what cargo said.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let target = crate::root().join("target");
        let manifest = crate::root().join("Cargo.toml");
        cargo_build(&manifest, &target, &["--release", "--package", "fence-cli"]);
        target.join("release/fence")
    })
}
