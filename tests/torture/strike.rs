//! How each fault is made, and how it ends.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use rustix::process::Signal;

use crate::faults::{self, Fault, Swap};
use crate::history::now;
use crate::machine::{beside, fill, remove};
use crate::run::Torture;
use crate::{Failure, MS, check};

/// What ends a fault.
#[derive(Clone, Debug)]
pub enum After {
    Continue(i32),
    RemoveBallast,
    MoveBack,
    MemberBack(usize),
}

impl Torture {
    /// Ends the faults whose time is over, or all.
    pub fn end_faults(&mut self, all: bool) -> Result<(), Failure> {
        let time = now();
        let (due, later) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|(at, _)| all || *at <= time);
        self.pending = later;
        let due: Vec<(u64, After)> = due;
        for (_, after) in due {
            match after {
                After::Continue(pid) => self.signal(pid, Signal::CONT),
                After::RemoveBallast => remove(&self.folder.join("disk/ballast"))?,
                After::MoveBack => {
                    fs::rename(self.folder.join("disk/moved"), self.folder.join("disk/store"))?;
                    self.folder_moved = false;
                }
                After::MemberBack(member) => self.member_comes_back(member),
            }
        }
        Ok(())
    }

    /// For the one who reads the logs.
    pub fn note(&self, what: &str) -> Result<(), Failure> {
        let mut log = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.logs().join("faults"))?;
        Ok(writeln!(log, "{} {what}", now())?)
    }

    /// Makes the fault, if that can be done now.
    pub fn strike(&mut self, fault: Fault) -> Result<(), Failure> {
        self.note(&format!("{fault:?}"))?;
        let until = |ms: u64| now() + ms * MS;
        match fault {
            Fault::Kill => {
                if let Some(pid) = self.any_worker() {
                    self.signal(pid, Signal::KILL);
                }
            }
            Fault::Stop { ms } => {
                if let Some(pid) = self.any_worker() {
                    self.count("workers stopped");
                    self.pending.push((until(ms), After::Continue(pid)));
                    self.signal(pid, Signal::STOP);
                }
            }
            Fault::Point { point, kill, pass } => {
                let action = if kill { "kill" } else { "stop" };
                self.point = Some(format!("{action}:{point}:{pass}"));
            }
            Fault::Clock { by } => {
                if self.faketime.is_some()
                    && let Some(pid) = self.any_worker()
                {
                    let name = self.living[&pid].clone();
                    fs::write(self.logs().join(format!("{name}.clock")), by)?;
                    self.count("clocks stepped");
                }
            }
            Fault::Stranger { begin, ms } => {
                let mut command = self.own("stranger");
                command
                    .arg(self.store())
                    .arg(begin)
                    .arg(ms.to_string())
                    .stderr(Stdio::null());
                drop(command.spawn()?);
                self.count("locks of a stranger");
            }
            Fault::DiskFull { ms } => {
                let ballast = self.folder.join("disk/ballast");
                if self.has_disk && !ballast.exists() {
                    fill(&ballast);
                    self.count("full disks");
                    self.pending.push((until(ms), After::RemoveBallast));
                }
            }
            Fault::FolderMoved { ms } => {
                if !self.folder_moved {
                    fs::rename(self.folder.join("disk/store"), self.folder.join("disk/moved"))?;
                    self.folder_moved = true;
                    self.count("folders moved");
                    self.pending.push((until(ms), After::MoveBack));
                }
            }
            Fault::SidecarRemoved => {
                remove(&beside(&self.store(), "-fence"))?;
                self.count("files beside the store removed");
            }
            Fault::IndexRemoved => {
                self.indexes_removed.push(now());
                remove(&beside(&self.store(), "-shm"))?;
                self.count("indexes of the WAL removed");
            }
            Fault::Copy => {
                let (store, copy) = (self.store(), self.folder.join("copy"));
                if self.help("copy", &[store.as_os_str(), copy.as_os_str()])? {
                    self.count("copies made");
                }
            }
            Fault::Swap(kind) => self.swap(kind)?,
            Fault::Member { leads, kill, ms } => self.member_fails(leads, kill, until(ms)),
            Fault::NoQuorum { ms } => self.quorum_is_lost(until(ms)),
        }
        Ok(())
    }

    fn swap(&mut self, kind: Swap) -> Result<(), Failure> {
        // In its usual place and with room for the copy: else it is the harness that fails.
        let ballast = self.folder.join("disk/ballast");
        if self.folder_moved || ballast.exists() {
            return Ok(());
        }
        let began = now();
        if !faults::swap(kind, &self.store(), &self.folder.join("copy"))? {
            return Ok(());
        }
        let ended = now();
        self.count("swaps of kv.db");
        self.swaps.push(check::Swap {
            began,
            ended,
            advanced: u64::MAX,
            floor: 0,
        });
        if let Some(pid) = self.advancing.take() {
            // It knows nothing of this swap.
            self.signal(pid, Signal::KILL);
        }
        self.advance()
    }

    /// Begins what one does after a restore: advances past the largest fence in one's data (LOCK-10). Other faults come
    /// meanwhile.
    fn advance(&mut self) -> Result<(), Failure> {
        self.read()?;
        for swap in self.swaps.iter_mut().filter(|swap| swap.advanced == u64::MAX) {
            swap.floor = self.largest;
        }
        let mut command = self.own("advance");
        command.arg(self.store()).arg(self.largest.to_string());
        let child = command.stderr(Stdio::null()).spawn()?;
        self.advancing = Some(child.id().cast_signed());
        Ok(())
    }

    /// Takes note of the end of what [`Torture::swap`] began; if it failed, it is tried again.
    pub fn has_advanced(&mut self, worked: bool) -> Result<(), Failure> {
        self.advancing = None;
        if !worked {
            return self.advance();
        }
        let advanced = now();
        self.note(&format!("advanced past {}", self.largest))?;
        for swap in self.swaps.iter_mut().filter(|swap| swap.advanced == u64::MAX) {
            swap.advanced = advanced;
        }
        Ok(())
    }

    /// Does what the message says about a file that is corrupt: moves it away and advances.
    pub fn mend(&mut self) -> Result<(), Failure> {
        if self.corrupt > 20 {
            self.swap(Swap::DeletedAll)?;
            self.count("corrupt files moved away");
            self.read()?;
            self.corrupt = 0;
        }
        Ok(())
    }
}
