//! The system's Python with its sqlite3 module.
//!
//! A script begins with what tests/prelude.py defines: `connect(database)` gives a connection with the extension
//! loaded, `one(db, sql, …)` the only value, `extension` is the library's path and `args` are the script's arguments.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::{Answer, Process, host};

/// A Python script that is to be run.
#[derive(Clone, Debug)]
pub struct Python {
    script: String,
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl Python {
    /// This script, behind the prelude.
    pub fn new(script: &str) -> Self {
        let script = format!("{}\n{script}", include_str!("prelude.py"));
        Self {
            script,
            arguments: Vec::new(),
            environment: Vec::new(),
        }
    }

    /// With one more argument, `args[0]` and on.
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().into());
        self
    }

    /// With this variable in its environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().into(), value.as_ref().into()));
        self
    }

    /// Runs it to its end.
    #[track_caller]
    pub fn run(&self) -> Answer {
        host::run(self.command(), "")
    }

    /// Starts it beside the test. It prints lines with `flush=True` or ends.
    #[track_caller]
    pub fn start(&self) -> Process {
        Process::start(self.command())
    }

    /// Where Python is.
    pub fn path() -> &'static Path {
        static PATH: OnceLock<PathBuf> = OnceLock::new();
        PATH.get_or_init(|| host::find("python3"))
    }

    fn command(&self) -> Command {
        let mut command = host::command(Self::path());
        // -I: without the user's own modules and variables.
        command
            .args(["-I", "-c", &self.script])
            .arg(crate::library())
            .args(&self.arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command
    }
}
