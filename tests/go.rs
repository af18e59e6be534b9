//! Go: modules of a test's own that use our module and the system's SQLite driver, and nothing from a proxy elsewhere.

use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use crate::{host, package, root};

/// The driver's import path.
const DRIVER: &str = "github.com/mattn/go-sqlite3";

/// A go command in this folder, whose only proxy is ours.
pub fn go(folder: &Path, arguments: &[&str]) -> Command {
    go_from(proxy(), folder, arguments)
}

/// The same with the module of another proxy.
pub fn go_from(proxy: &str, folder: &Path, arguments: &[&str]) -> Command {
    let mut go = host::command(host::find("go"));
    go.current_dir(folder).args(arguments);
    // Our module is built anew under the same version, so it is taken from no shared cache.
    go.env("GOMODCACHE", folder.join("modules"))
        .env("GOFLAGS", "-modcacherw");
    go.env("GOPROXY", format!("file://{proxy},off"))
        .env("GONOSUMDB", "sqlite.fence");
    go
}

/// Makes this folder a module that has ours.
pub fn module(folder: &Path) {
    module_from(proxy(), folder);
}

/// The same with the module of another proxy.
pub fn module_from(proxy: &str, folder: &Path) {
    let driver = format!("-replace={DRIVER}={}", host::find("mattn").display());
    run_from(proxy, folder, &["mod", "init", "app"]);
    run_from(proxy, folder, &["mod", "edit", &driver]);
    run_from(proxy, folder, &["get", "sqlite.fence/locks"]);
}

/// Runs a go command to its end; gives what it printed.
pub fn run(folder: &Path, arguments: &[&str]) -> String {
    run_from(proxy(), folder, arguments)
}

/// The same with the module of another proxy.
pub fn run_from(proxy: &str, folder: &Path, arguments: &[&str]) -> String {
    let answer = host::run(go_from(proxy, folder, arguments), "");
    assert!(answer.status.success(), "go {arguments:?}: {answer}");
    answer.out.trim_end().to_string()
}

/// Our module's own folder, with the library in it and the system's driver, for its tests.
pub fn own_module(folder: &Path) {
    proxy();
    let mut copy = Command::new("cp");
    copy.arg("-R").arg(root().join("target/packages/go/.")).arg(folder);
    host::run(copy, "").ok();
    let driver = format!("-replace={DRIVER}={}", host::find("mattn").display());
    run(folder, &["mod", "edit", &driver]);
}

/// The folder that is our module's proxy.
fn proxy() -> &'static str {
    static PROXY: OnceLock<String> = OnceLock::new();
    PROXY.get_or_init(|| package::build("go", "dist/go"))
}
