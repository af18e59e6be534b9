//! The program `worker` (bin/worker.rs): a process that uses the store through the core, without a host.
//!
//! Tests give its path, `env!("CARGO_BIN_EXE_worker")`, which cargo tells to integration tests alone.

use std::ffi::OsStr;
use std::path::Path;

use crate::{Process, host};

/// A worker that is to be started, and how.
#[derive(Debug)]
pub struct Plan {
    command: std::process::Command,
}

/// A living worker on one store.
#[derive(Debug)]
pub struct Worker {
    process: Process,
}

impl Plan {
    /// This command, which ends as a worker.
    pub fn of(command: std::process::Command) -> Self {
        Self { command }
    }

    /// With this variable in its environment.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// In this folder.
    pub fn within(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// With a wall clock of its own, which this file steps: `+0`, `-1h` … (libfaketime). It steps no other clock and no
    /// file's time.
    pub fn clock(self, file: &Path) -> Self {
        let library = host::find("libfaketime");
        [
            "FAKETIME_DONT_FAKE_MONOTONIC",
            "DONT_FAKE_MONOTONIC",
            "NO_FAKE_STAT",
            "FAKETIME_NO_CACHE",
        ]
        .iter()
        .fold(self.env("LD_PRELOAD", library), |plan, name| plan.env(name, "1"))
        .env("FAKETIME_TIMESTAMP_FILE", file)
    }

    /// Starts it.
    #[track_caller]
    pub fn start(self) -> Worker {
        Worker {
            process: Process::start(self.command),
        }
    }
}

impl Worker {
    /// A worker on this store, to be started.
    pub fn plan(program: &str, store: impl AsRef<OsStr>) -> Plan {
        let mut command = host::command(program);
        command.arg(store);
        Plan { command }
    }

    /// A worker on this store.
    #[track_caller]
    pub fn start(program: &str, store: impl AsRef<OsStr>) -> Self {
        Self::plan(program, store).start()
    }

    /// The answer to one line.
    #[track_caller]
    pub fn ask(&mut self, line: &str) -> String {
        self.tell(line);
        self.answer()
    }

    /// Hands over one line without waiting for the answer.
    #[track_caller]
    pub fn tell(&mut self, line: &str) {
        self.process.tell(line);
    }

    /// The answer to the earliest line that has none yet.
    #[track_caller]
    pub fn answer(&mut self) -> String {
        self.process.line()
    }

    /// The fence of the key, which is free.
    ///
    /// # Panics
    ///
    /// When it is not.
    #[track_caller]
    pub fn acquire(&mut self, key: &str, ttl_ms: u64) -> u128 {
        let answer = self.ask(&format!("acquire {key} {ttl_ms}"));
        answer.parse().unwrap_or_else(|_| panic!("no fence of {key}: {answer}"))
    }

    /// The process.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }
}
