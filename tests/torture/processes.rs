//! The processes of a run: how workers are started, stopped and killed, and what becomes of them.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use rustix::process::{Pid, Signal, WaitOptions, kill_process};

use crate::history::now;
use crate::machine::state_of;
use crate::random::Random;
use crate::run::Torture;
use crate::strike::After;
use crate::{Failure, MS, Plant};

/// Checkpoints come after so many pages, so that some come.
const CHECKPOINT_PAGES: &str = "48";

impl Torture {
    /// Starts a worker.
    pub fn start(&mut self) -> Result<(), Failure> {
        let name = format!("w{}", self.started);
        self.started += 1;
        // Not from the schedule's own source: when a worker is started depends on when the last one died.
        let mut random = Random::new(self.plan.seed.wrapping_add(self.started as u64).rotate_left(32));
        let seed = random.any();
        let mut command = self.own("worker");
        command
            .arg(self.store())
            .arg(self.folder.join("app.db"))
            .arg(self.logs());
        command
            .arg(&name)
            .arg(seed.to_string())
            .args(self.plan.plant.map(Plant::as_str));
        command.env("FENCE_CHECKPOINT_PAGES", CHECKPOINT_PAGES);
        if let Some(point) = self.point.take() {
            command.env("FENCE_FAULT", point);
        }
        if let Some(faketime) = &self.faketime {
            let clock = self.logs().join(format!("{name}.clock"));
            fs::write(&clock, random.pick(&["+0", "+0", "-1h", "+1h"]))?;
            command
                .env("LD_PRELOAD", faketime)
                .env("FAKETIME_TIMESTAMP_FILE", clock);
            command.env("FAKETIME_CACHE_DURATION", "1");
            // A step of the wall clock steps neither the monotonic clock nor the files' times.
            for unstepped in ["FAKETIME_DONT_FAKE_MONOTONIC", "DONT_FAKE_MONOTONIC", "NO_FAKE_STAT"] {
                command.env(unstepped, "1");
            }
        }
        let child = command.spawn()?;
        self.living.insert(child.id().cast_signed(), name);
        Ok(())
    }

    /// A call of this very program.
    pub fn own(&self, what: &str) -> Command {
        // Also if a newer one was built meanwhile.
        let linux = Path::new("/proc/self/exe");
        let program = if linux.exists() {
            linux.to_owned()
        } else {
            std::env::current_exe().unwrap_or_default()
        };
        let mut command = Command::new(program);
        command.arg(what).stdin(Stdio::null());
        command
    }

    /// Runs this very program to its end; whether it did what it was to do.
    pub fn help(&self, what: &str, arguments: &[&std::ffi::OsStr]) -> Result<bool, Failure> {
        let status = self.own(what).args(arguments).stderr(Stdio::null()).status()?;
        Ok(status.success())
    }

    /// Takes note of the processes that ended or stopped by themselves.
    pub fn reap(&mut self) -> Result<(), Failure> {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            let pid = pid.as_raw_nonzero().get();
            if status.stopped() {
                self.let_go_on(pid);
            } else if self.advancing == Some(pid) {
                self.has_advanced(status.exit_status() == Some(0))?;
            } else if let Some(worker) = self.living.remove(&pid) {
                match (status.terminating_signal(), status.exit_status()) {
                    (Some(9), _) => self.count("workers killed"),
                    (None, Some(0)) => {}
                    (signal, _) => {
                        self.note(&format!("{worker} ended: {status:?}"))?;
                        self.count(if signal.is_some() {
                            "workers crashed"
                        } else {
                            "workers failed"
                        });
                    }
                }
            }
        }
        Ok(())
    }

    /// Lets a process go on, or die, that stopped at a point of the code.
    pub fn let_go_on(&mut self, pid: i32) {
        let ours = |(_, after): &(u64, After)| matches!(after, After::Continue(stopped) if *stopped == pid);
        if self.pending.iter().any(ours) {
            return;
        }
        self.count("stopped inside a call");
        if self.reactions.once_in(2) {
            self.signal(pid, Signal::KILL);
        } else {
            let ms = self.reactions.between(20, 1_500);
            self.pending.push((now() + ms * MS, After::Continue(pid)));
        }
    }

    /// The system tells a parent alone that a process has stopped; of a worker's child we learn by looking.
    pub fn look_for_stopped_children(&mut self) {
        let children = self
            .readers
            .iter()
            .filter(|(name, reader)| name.contains('.') && !reader.ended);
        let stopped: Vec<_> = children
            .filter_map(|(_, reader)| reader.process)
            .filter(|pid| state_of(*pid) == Some('T'))
            .collect();
        for pid in stopped {
            self.let_go_on(pid);
        }
    }

    pub fn signal(&self, pid: i32, signal: Signal) {
        if let Some(pid) = Pid::from_raw(pid) {
            // It may have ended meanwhile; nobody has taken its number, for we have not waited for it.
            let _ = kill_process(pid, signal);
        }
    }

    /// One of the workers.
    pub fn any_worker(&mut self) -> Option<i32> {
        let pids: Vec<_> = self.living.keys().copied().collect();
        (!pids.is_empty()).then(|| *self.schedule.random.pick(&pids))
    }
}
