//! A shell that recovers: one whose `.recover` works. Debian's is built without the table sqlite_dbpage that it reads.
//!
//! Where the system's shell is such a one it is taken. Otherwise it is compiled, once, into target/hosts: the npm package
//! `sqlite3` carries SQLite's own sources, the shell's among them.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::{Answer, Shell, host, node, root};

const PACKAGE: &str = "sqlite3@5.1.7";
const SOURCES: &str = "package/deps/sqlite-autoconf-3440200.tar.gz";

/// What `.recover` makes of this database: the SQL that builds it anew.
#[track_caller]
pub fn recover(database: &Path) -> Answer {
    let mut shell = host::command(shell());
    shell
        .args(["-batch", "-init", "/dev/null"])
        .arg(database)
        .arg(".recover");
    host::run(shell, "")
}

fn shell() -> &'static Path {
    static SHELL: OnceLock<PathBuf> = OnceLock::new();
    SHELL.get_or_init(|| {
        let modules = Shell::plain().run("select count(*) from pragma_module_list where name = 'sqlite_dbpage';");
        if modules.ok() == "1" {
            return Shell::path().to_owned();
        }
        let folder = root().join("target/hosts/shell");
        let shell = folder.join("sqlite3");
        if !shell.is_file() {
            build(&folder, &shell);
        }
        shell
    })
}

/// # Panics
///
/// When npm does not give the sources or they do not compile, with what was said.
fn build(folder: &Path, shell: &Path) {
    std::fs::create_dir_all(folder).expect("a new folder");
    node::npm(folder, &["pack", PACKAGE]);
    let package = folder.join(format!("{}.tgz", PACKAGE.replace('@', "-")));
    unpack(&package, folder, &[]);
    unpack(&folder.join(SOURCES), folder, &["--strip-components=1"]);
    // Moved into place when it is whole: another test process may be looking.
    let new = folder.join(format!("sqlite3.{}", std::process::id()));
    let mut compiler = Command::new(host::find("cc"));
    compiler
        .current_dir(folder)
        .args(["-O0", "-DSQLITE_ENABLE_DBPAGE_VTAB", "shell.c", "sqlite3.c", "-o"])
        .arg(&new)
        .args(["-ldl", "-lpthread", "-lm"]);
    host::run(compiler, "").ok();
    std::fs::rename(new, shell).expect("the shell was built");
}

fn unpack(archive: &Path, folder: &Path, arguments: &[&str]) {
    let mut tar = Command::new("tar");
    tar.arg("-xzf").arg(archive).arg("-C").arg(folder).args(arguments);
    host::run(tar, "").ok();
}
