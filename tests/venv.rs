//! Python's packages: an environment with those of tests/python-packages.txt and with our wheel, and empty ones.
//!
//! pip gets the packages once, into target/hosts; our wheel is built and installed anew by each test process.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::{host, package, root};

const PACKAGES: &str = include_str!("python-packages.txt");

/// The Python of the environment with everything.
///
/// # Panics
///
/// When something cannot be installed, with what pip said.
pub fn python() -> &'static Path {
    static PYTHON: OnceLock<PathBuf> = OnceLock::new();
    PYTHON.get_or_init(|| {
        let folder = root().join("target/hosts/python");
        let installed = folder.join("packages.txt");
        if std::fs::read_to_string(&installed).is_ok_and(|packages| packages == PACKAGES) {
            pip(&folder, &["--force-reinstall", "--no-deps", wheel()]);
        } else {
            drop(std::fs::remove_dir_all(&folder));
            empty(&folder);
            pip(
                &folder,
                &[
                    "-r",
                    &root().join("tests/python-packages.txt").to_string_lossy(),
                    wheel(),
                ],
            );
            std::fs::write(installed, PACKAGES).expect("a new file");
        }
        interpreter(&folder)
    })
}

/// Makes an empty environment in this folder; gives its Python.
pub fn empty(folder: &Path) -> PathBuf {
    host::find("venv");
    let mut venv = host::command(host::find("python3"));
    venv.args(["-m", "venv"]).arg(folder);
    host::run(venv, "").ok();
    interpreter(folder)
}

/// Installs into the environment in this folder.
pub fn pip(folder: &Path, arguments: &[&str]) {
    let mut pip = host::command(interpreter(folder));
    pip.args(["-m", "pip", "--disable-pip-version-check", "install", "-q"])
        .args(arguments);
    host::run(pip, "").ok();
}

/// The path of our wheel.
pub fn wheel() -> &'static str {
    static WHEEL: OnceLock<String> = OnceLock::new();
    WHEEL.get_or_init(|| package::build("python", ".whl"))
}

/// A command that runs this script of the repository with these arguments.
pub fn script(path: &str) -> Command {
    let mut command = host::command(python());
    command.arg("-I").arg(root().join(path));
    command
}

fn interpreter(folder: &Path) -> PathBuf {
    folder.join("bin/python")
}
