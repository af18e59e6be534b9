//! The oldest SQLite that will do, 3.34.1, as a shell: compiled from the source that the crate sqlite3-src 0.3.0 carries.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::{extension, host, root};

/// The version of this shell.
pub const VERSION: &str = "3.34.1";

const MANIFEST: &str = "[package]\nname = \"floor\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n[lib]\npath = \"lib.rs\"\n\
                        [dependencies]\nsqlite3-src = \"=0.3.0\"\n";

/// The shell.
///
/// # Panics
///
/// When it cannot be compiled.
pub fn shell() -> PathBuf {
    folder().join("sqlite3")
}

/// The folder in which the shell is, called `sqlite3`.
///
/// # Panics
///
/// When it cannot be compiled.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = root().join("target/hosts/floor");
        let shell = folder.join("sqlite3");
        if !shell.exists() {
            std::fs::create_dir_all(&folder).expect("a new folder");
            // In a folder of its own until it is whole: another test process may be at it as well.
            let build = tempfile::tempdir_in(&folder).expect("a new folder");
            std::fs::write(build.path().join("Cargo.toml"), MANIFEST).expect("a new file");
            std::fs::write(build.path().join("lib.rs"), "").expect("a new file");
            std::fs::rename(compile(build.path()), shell).expect("a file of ours");
        }
        folder
    })
}

/// Where cargo keeps the source.
fn source(folder: &Path) -> PathBuf {
    let mut cargo = host::command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    extension::forget_the_outer_build(&mut cargo);
    cargo
        .current_dir(folder)
        .args(["metadata", "--format-version", "1", "--quiet"]);
    let metadata = host::run(cargo, "").ok();
    let end = metadata
        .find("sqlite3-src-0.3.0/Cargo.toml")
        .expect("the crate was got");
    let start = metadata[..end].rfind('"').expect("the path's quote") + 1;
    Path::new(&metadata[start..end]).join("sqlite3-src-0.3.0/source")
}

/// Compiles the shell in this folder.
fn compile(folder: &Path) -> PathBuf {
    let (source, shell) = (source(folder), folder.join("sqlite3"));
    let mut cc = host::command(host::find("cc"));
    cc.args(["-O1", "-w", "-o"]).arg(&shell);
    cc.args([source.join("shell.c"), source.join("sqlite3.c")]);
    cc.args(["-lpthread", "-ldl", "-lm"]);
    host::run(cc, "").ok();
    shell
}
