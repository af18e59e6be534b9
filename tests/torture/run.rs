//! A run: faults come over the processes until the time is over, then the history is judged.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use rustix::process::Signal;

use crate::check::{self, History};
use crate::faults::Schedule;
use crate::history::{Answer, Reader, What, now};
use crate::machine::{self, is_running};
use crate::members::Members;
use crate::random::Random;
use crate::strike::After;
use crate::{Failure, MS, Plant, worker};

/// How many processes work at one time, besides the children that they fork.
pub const WORKERS: usize = 8;

/// What is to be run.
pub struct Plan {
    pub seconds: u64,
    pub seed: u64,
    /// Whether all of it is a storm, see `faults.rs`.
    pub storm: bool,
    /// Whether the store is an etcd cluster.
    pub etcd: bool,
    pub plant: Option<Plant>,
}

/// One run.
pub struct Torture {
    pub plan: Plan,
    /// What comes, and over whom.
    pub schedule: Schedule,
    /// Of what is done about what comes up.
    pub reactions: Random,
    pub folder: PathBuf,
    pub faketime: Option<PathBuf>,
    /// The members of the cluster, if the store is one.
    pub members: Option<Members>,
    pub has_disk: bool,
    /// The living workers by their process ids, with their names.
    pub living: BTreeMap<i32, String>,
    pub started: usize,
    pub readers: BTreeMap<String, Reader>,
    /// What is to be done when.
    pub pending: Vec<(u64, After)>,
    /// For the next worker that is started.
    pub point: Option<String>,
    pub swaps: Vec<check::Swap>,
    /// When the WAL's index was removed.
    pub indexes_removed: Vec<u64>,
    /// The process that advances the store after a swap.
    pub advancing: Option<i32>,
    /// The largest fence that was read in the logs.
    pub largest: u128,
    pub counts: BTreeMap<&'static str, u64>,
    pub folder_moved: bool,
    /// How many calls have found the files corrupt.
    pub corrupt: u64,
}

impl Torture {
    /// Makes what the run stands on.
    pub fn begin(plan: Plan) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("fence-torture-{}", std::process::id()));
        for part in ["disk", "logs", "copy"] {
            fs::create_dir_all(folder.join(part))?;
        }
        // Processes whose parent was killed become ours.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let has_disk = !plan.etcd && machine::mount(&folder.join("disk")).is_ok();
        fs::create_dir(folder.join("disk/store"))?;
        let torture = Self {
            schedule: Schedule::new(plan.seed, plan.storm, plan.etcd),
            members: plan.etcd.then(Members::start),
            reactions: Random::new(!plan.seed),
            faketime: machine::faketime()?,
            has_disk,
            living: BTreeMap::new(),
            started: 0,
            readers: BTreeMap::new(),
            pending: Vec::new(),
            point: None,
            swaps: Vec::new(),
            indexes_removed: Vec::new(),
            advancing: None,
            largest: 0,
            counts: BTreeMap::new(),
            folder_moved: false,
            corrupt: 0,
            folder,
            plan,
        };
        let app = worker::open_app(&torture.folder.join("app.db"))?;
        for key in worker::KEYS {
            app.execute("insert into rows (key) values (?1)", [key])?;
        }
        Ok(torture)
    }

    /// The path of the store's file, or the location of its cluster.
    pub fn store(&self) -> PathBuf {
        let file = || self.folder.join("disk/store/kv.db");
        self.members.as_ref().map_or_else(file, Members::location)
    }

    pub fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    /// For the summary.
    pub fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    /// All of it.
    pub fn run(mut self) -> Result<ExitCode, Failure> {
        let Plan { seconds, seed, .. } = self.plan;
        let on = if self.plan.etcd { ", three members" } else { "" };
        println!("torture: seed {seed}, {seconds} s, {WORKERS} workers{on}");
        let begun = now();
        let mut looked = begun;
        while now() < begun + seconds * 1_000 * MS {
            while self.living.len() < WORKERS {
                self.start()?;
            }
            std::thread::sleep(Duration::from_millis(self.schedule.pause_ms()));
            self.reap()?;
            self.end_faults(false)?;
            let fault = self.schedule.next();
            self.strike(fault)?;
            if looked < now() {
                looked = now() + 500 * MS;
                self.read()?;
                self.look_for_stopped_children();
                self.mend()?;
            }
        }
        self.end_faults(true)?;
        self.finish()?;
        self.judge()
    }

    /// Reads on in all logs.
    pub fn read(&mut self) -> Result<(), Failure> {
        for entry in fs::read_dir(self.logs())? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "log")
                && let Some(name) = path.file_stem().and_then(|name| name.to_str())
            {
                let reader = self.readers.entry(name.to_owned()).or_insert_with(|| Reader::new(name));
                if reader.ended {
                    continue;
                }
                let notes = reader.notes.len();
                let first = reader.read_on(&self.folder.join("logs"))?;
                for op in &reader.ops[first..] {
                    if let (What::Acquire { limit: 0, .. }, Some((_, Answer::Name(fence)))) = (&op.what, &op.end) {
                        self.largest = self.largest.max(fence.parse()?);
                    }
                }
                self.corrupt += reader.notes[notes..].iter().filter(|note| is_corrupt(note)).count() as u64;
            }
        }
        Ok(())
    }

    /// Lets the workers end, and ends those that do not.
    fn finish(&mut self) -> Result<(), Failure> {
        fs::write(self.logs().join(worker::END), "")?;
        let begun = now();
        loop {
            self.reap()?;
            for (_, after) in std::mem::take(&mut self.pending) {
                if let After::Continue(pid) = after {
                    self.signal(pid, Signal::CONT);
                }
            }
            self.read()?;
            // Forked children whose log has an open end may still run, or were killed with nobody to tell.
            let running: Vec<_> = self
                .readers
                .values()
                .filter(|reader| !reader.ended)
                .filter_map(|reader| reader.process)
                .filter(|pid| is_running(*pid))
                .collect();
            if running.is_empty() && self.living.is_empty() {
                return Ok(());
            }
            if now() > begun + 30_000 * MS {
                self.count("workers that hung at the end");
                running.iter().for_each(|pid| self.signal(*pid, Signal::KILL));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn judge(mut self) -> Result<ExitCode, Failure> {
        let mut wrong = Vec::new();
        let output = self.own("final").arg(self.store()).output()?;
        if !output.status.success() {
            let text = format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            );
            wrong.push(text.trim().to_owned());
        }
        let app = worker::open_app(&self.folder.join("app.db"))?;
        let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let mut select = app.prepare("select key, fence from given order by n")?;
        for row in select.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))? {
            let (key, fence) = row?;
            rows.entry(key).or_default().push(fence);
        }
        let deaths: HashMap<_, _> = self
            .readers
            .iter()
            .map(|(name, reader)| (name.clone(), reader.last))
            .collect();
        let notes: Vec<_> = self
            .readers
            .values_mut()
            .flat_map(|reader| std::mem::take(&mut reader.notes))
            .collect();
        let history = History {
            ops: std::mem::take(&mut self.readers)
                .into_values()
                .map(|reader| reader.ops)
                .collect(),
            outlast: self.plan.etcd,
            swaps: std::mem::take(&mut self.swaps),
            indexes_removed: std::mem::take(&mut self.indexes_removed),
            deaths,
            rows,
        };
        wrong.extend(check::check(&history));
        self.print(&history, &notes);
        for crash in ["workers crashed", "workers failed", "workers that hung at the end"] {
            if let Some(count) = self.counts.get(crash) {
                wrong.push(format!("{crash}: {count}"));
            }
        }
        machine::clean_shared_memory();
        if wrong.is_empty() {
            println!("no violation");
            fs::remove_dir_all(self.folder.join("logs"))?;
            // What is mounted there goes with this process.
            let _ = fs::remove_dir_all(&self.folder);
            return Ok(ExitCode::SUCCESS);
        }
        for wrong in wrong.iter().take(20) {
            println!("VIOLATION {wrong}");
        }
        println!(
            "{} violations; the logs are in {}; again with: make torture DURATION={} SEED={}{}{}",
            wrong.len(),
            self.logs().display(),
            self.plan.seconds,
            self.plan.seed,
            if self.plan.storm { " STORM=1" } else { "" },
            if self.plan.etcd { " STORE=etcd" } else { "" }
        );
        Ok(ExitCode::FAILURE)
    }
}

fn is_corrupt(note: &str) -> bool {
    note.contains("malformed")
        || note.contains("is missing")
        || note.contains("not a database")
        || note.contains("disk I/O error")
}
