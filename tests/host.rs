//! A host: a program that loads the extension. Finding it, running it to its end, and its answer.

use std::ffi::OsStr;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc;

use crate::DEADLINE;

/// Where the host is, as `tests/hosts` finds it.
///
/// # Panics
///
/// When it is not installed, with what to install.
pub fn find(name: &str) -> PathBuf {
    let script = crate::root().join("tests/hosts");
    let found = Command::new(&script).args(["path", name]).output();
    let found = found.unwrap_or_else(|e| panic!("cannot run {}: {e}", script.display()));
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    String::from_utf8(found.stdout)
        .expect("a path in UTF-8")
        .trim_end()
        .into()
}

/// A command that runs this program without what the user's environment says about fences.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_remove("FENCE_STORE");
    command
}

/// What a host printed and how it ended.
#[derive(Debug)]
pub struct Answer {
    /// Its standard output.
    pub out: String,
    /// Its standard error.
    pub err: String,
    /// How it ended: [`ExitStatus::success`], a code, or a signal.
    pub status: ExitStatus,
}

impl Answer {
    /// What it printed, without the last line's end.
    ///
    /// # Panics
    ///
    /// When it failed or complained.
    #[track_caller]
    pub fn ok(self) -> String {
        assert!(self.status.success() && self.err.is_empty(), "{self}");
        self.out.trim_end_matches('\n').to_string()
    }

    /// What it complained about.
    ///
    /// # Panics
    ///
    /// When it succeeded, or ended by a signal: a host that dies gives no error.
    #[track_caller]
    pub fn error(self) -> String {
        assert!(
            self.status.code().is_some_and(|code| code != 0),
            "no error, but: {self}"
        );
        self.err
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the host ended with {}\nprinted: {}\ncomplained: {}",
            self.status, self.out, self.err
        )
    }
}

/// Runs the command to its end with this input.
///
/// # Panics
///
/// When it cannot be started, or is not done at the [`DEADLINE`]; then it is killed.
#[track_caller]
pub fn run(mut command: Command, input: &str) -> Answer {
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command
        .spawn()
        .unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
    let mut stdin = child.stdin.take().expect("a pipe");
    let input = input.to_string();
    // A host may end before it has read everything.
    std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let out = read_all(child.stdout.take().expect("a pipe"));
    let err = read_all(child.stderr.take().expect("a pipe"));
    let (Ok(out), Ok(err)) = (out.recv_timeout(DEADLINE), err.recv_timeout(DEADLINE)) else {
        child.kill().expect("a child of ours");
        panic!("hangs: {command:?}");
    };
    let status = child.wait().expect("a child of ours");
    Answer { out, err, status }
}

/// All that comes out of the pipe, when it ends.
fn read_all(mut pipe: impl Read + Send + 'static) -> mpsc::Receiver<String> {
    let (send, receive) = mpsc::channel();
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        drop(pipe.read_to_end(&mut bytes));
        drop(send.send(String::from_utf8_lossy(&bytes).into_owned()));
    });
    receive
}
