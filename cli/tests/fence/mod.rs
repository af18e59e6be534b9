//! The program under test, in a folder of the test's own.

#![allow(dead_code)] // Each test file uses some of it.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use fence_tests::{Answer, Process, Shell, host};

/// `fence` with these arguments, in this folder. What the shell and the tests have of `sqlite3` is on the PATH.
pub fn fence<A: AsRef<OsStr>>(folder: impl AsRef<Path>, arguments: impl IntoIterator<Item = A>) -> Command {
    let mut command = host::command(env!("CARGO_BIN_EXE_fence"));
    command.current_dir(folder).args(arguments);
    for name in ["FENCE", "FENCE_PADDED", "FENCE_KEY", "PERMIT"] {
        command.env_remove(name);
    }
    let own = Shell::path().parent().map(Path::to_path_buf);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path = std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path))).expect("a PATH");
    command.env("PATH", path);
    command
}

/// Runs it to its end.
#[track_caller]
pub fn run<'a>(folder: impl AsRef<Path>, arguments: impl IntoIterator<Item = &'a str>) -> Answer {
    host::run(fence(folder, arguments), "")
}

/// Starts it, with pipes to and from it.
#[track_caller]
pub fn start<'a>(folder: impl AsRef<Path>, arguments: impl IntoIterator<Item = &'a str>) -> Process {
    Process::start(fence(folder, arguments))
}

/// Its exit status; it did not end by a signal.
#[track_caller]
pub fn status(answer: &Answer) -> i32 {
    answer
        .status
        .code()
        .unwrap_or_else(|| panic!("no exit status: {answer}"))
}

/// What `fence list` gives, one row on a line.
#[track_caller]
pub fn list(folder: impl AsRef<Path>) -> String {
    run(folder, ["list"]).ok()
}
