//! Node's packages: a folder with those of tests/node-packages and with ours. Node 22 and Bun come as packages too.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::{host, package, root};

const PACKAGES: &str = include_str!("node-packages/package-lock.json");

/// The folder in which everything is installed; Node finds packages from there on upwards.
///
/// # Panics
///
/// When something cannot be installed, with what npm said.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = root().join("target/hosts/node");
        let installed = folder.join("installed.json");
        if !std::fs::read_to_string(&installed).is_ok_and(|packages| packages == PACKAGES) {
            drop(std::fs::remove_dir_all(&folder));
            std::fs::create_dir_all(&folder).expect("a new folder");
            for file in ["package.json", "package-lock.json"] {
                let from = root().join("tests/node-packages").join(file);
                std::fs::copy(from, folder.join(file)).expect("a copy");
            }
            npm(&folder, &["ci"]);
            std::fs::write(installed, PACKAGES).expect("a new file");
        }
        npm(&folder, &["install", "--no-save", "--no-package-lock", ours()]);
        folder
    })
}

/// Runs npm in this folder.
pub fn npm(folder: &Path, arguments: &[&str]) {
    let mut npm = host::command(host::find("npm"));
    npm.args(arguments)
        .args(["--silent", "--no-audit", "--no-fund"])
        .current_dir(folder);
    let answer = host::run(npm, "");
    assert!(answer.status.success(), "{answer}");
}

/// The path of our package.
pub fn ours() -> &'static str {
    static OURS: OnceLock<String> = OnceLock::new();
    OURS.get_or_init(|| package::build("node", ".tgz"))
}

/// A command of Node 22.
pub fn node() -> Command {
    let mut command = host::command(program("node"));
    command.arg("--no-warnings");
    command
}

/// A command of Bun.
pub fn bun() -> Command {
    host::command(program("bun"))
}

/// The program that one of the packages carries for this platform.
fn program(name: &str) -> PathBuf {
    let modules = folder().join("node_modules");
    [modules.clone(), modules.join("@oven")]
        .into_iter()
        .filter_map(|folder| folder.read_dir().ok())
        .flatten()
        .filter_map(|package| Some(package.ok()?.path().join("bin").join(name)))
        .find(|path| path.is_file())
        .unwrap_or_else(|| panic!("tests/node-packages has no {name} for this platform"))
}

/// What TypeScript says to this file: nothing, if its types are clean.
pub fn tsc(file: &Path) -> String {
    let mut tsc = node();
    tsc.current_dir(folder()).arg("node_modules/typescript/bin/tsc");
    tsc.args([
        "--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "--lib", "es2023",
    ]);
    tsc.args([
        "--types",
        "node,bun-types",
        "--skipLibCheck",
        "--allowImportingTsExtensions",
    ])
    .arg(file);
    host::run(tsc, "").out
}

/// Puts this file or folder of the repository where its imports are found; gives its path there.
pub fn place(path: &str) -> PathBuf {
    let from = root().join(path);
    let to = folder().join(from.file_name().expect("a name"));
    let mut copy = Command::new("cp");
    copy.arg("-R").arg(&from).arg(folder());
    if to.is_dir() {
        std::fs::remove_dir_all(&to).expect("a folder of ours");
    }
    host::run(copy, "").ok();
    to
}
