//! Torture: real processes use one store while everything around it fails, and the history of what they did is checked.
//!
//! `torture [SECONDS] [SEED]` (`make torture DURATION=60 SEED=n`) starts eight workers (worker.rs) and lets faults come
//! over them by the seed (faults.rs): kill -9, SIGSTOP, stops and deaths inside a grant, forks, stepped clocks, a stranger
//! who locks kv.db, a full disk, kv.db deleted, replaced and restored. Each writes down what it does (history.rs); at the
//! end the history is checked (check.rs). The seed fixes the faults and each worker's choices; how the processes
//! interleave is the machine's.
//!
//! It ends with 0 if nothing was violated, with 1 and a list if something was. The folder with the logs is kept then.
//!
//! `--plant epoch-in-memory` and `--plant renewal-revives` plant a fault that the check must find.
//!
//! What the machine does not allow is left out, and the summary says so: a full disk and a store on a file system of its
//! own need root, stepped clocks need libfaketime.

mod check;
mod faults;
mod history;
mod random;
mod worker;

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;

use fence_core::{Fence, Store};
use rusqlite::Connection;
use rustix::process::{Pid, Signal, WaitOptions, kill_process};

use check::History;
use faults::{Fault, Swap, beside, remove};
use history::{Answer, Reader, What, now};
use random::Random;

/// What goes wrong in the harness itself.
pub type Failure = Box<dyn std::error::Error>;

/// How many permits the semaphore has.
pub const LIMIT: u64 = 3;
const WORKERS: usize = 8;
const MS: u64 = 1_000_000;
/// Checkpoints come after so many pages, so that some come.
const CHECKPOINT_PAGES: &str = "48";
/// The size of the store's own file system.
const DISK: &str = "size=24m";

/// A fault that is planted, for the check to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Each process counts its own fences from the epoch that it saw first.
    EpochInMemory,
    /// A renewal brings back a lease that is over.
    RenewalRevives,
}

impl Plant {
    fn parse(text: &str) -> Option<Self> {
        match text {
            "epoch-in-memory" => Some(Self::EpochInMemory),
            "renewal-revives" => Some(Self::RenewalRevives),
            _ => None,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::EpochInMemory => "epoch-in-memory",
            Self::RenewalRevives => "renewal-revives",
        }
    }
}

fn main() -> ExitCode {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    match act(&arguments) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("torture: {error}");
            ExitCode::from(2)
        }
    }
}

fn act(arguments: &[OsString]) -> Result<ExitCode, Failure> {
    let words: Vec<_> = arguments
        .iter()
        .map(|word| word.to_str().ok_or("not UTF-8"))
        .collect::<Result<_, _>>()?;
    match words.as_slice() {
        ["worker", store, app, logs, name, seed, plant @ ..] => worker::run(worker::Task {
            store: store.into(),
            app: app.into(),
            logs: logs.into(),
            name: (*name).to_owned(),
            seed: seed.parse()?,
            plant: plant.first().and_then(|plant| Plant::parse(plant)),
        })?,
        ["advance", store, fence] => drop(Store::open(store)?.advance(fence.parse::<Fence>()?)?),
        ["copy", store, to] => copy(Path::new(store), Path::new(to))?,
        ["stranger", store, begin, ms] => stranger(store, begin, ms.parse()?)?,
        ["final", store] => {
            return Ok(all_is_free(Path::new(store))?.map_or(ExitCode::SUCCESS, |wrong| {
                println!("{wrong}");
                ExitCode::FAILURE
            }));
        }
        rest => {
            let (plant, rest) = match rest {
                ["--plant", plant, rest @ ..] => (Some(Plant::parse(plant).ok_or("no such fault to plant")?), rest),
                rest => (None, rest),
            };
            let seconds = rest.first().map_or(Ok(60), |seconds| seconds.parse())?;
            let fresh = || now() ^ (u64::from(std::process::id()) << 40);
            let seed = match rest.get(1) {
                Some(seed) if !seed.is_empty() => seed.parse()?,
                _ => Random::new(fresh()).below(1_000_000_000),
            };
            return Torture::begin(seconds, seed, plant)?.run();
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Copies kv.db and its WAL while nobody writes, as a careful backup does. In a process of its own: closing a database
/// that was opened by hand drops SQLite's locks.
fn copy(store: &Path, to: &Path) -> Result<(), Failure> {
    let db = Connection::open_with_flags(store, rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.busy_timeout(Duration::from_secs(3))?;
    db.execute_batch("begin immediate")?;
    fs::create_dir_all(to)?;
    let copied = to.join("kv.db");
    remove(&beside(&copied, "-wal"))?;
    let wal = beside(store, "-wal");
    if wal.exists() {
        fs::copy(wal, beside(&copied, "-wal"))?;
    }
    fs::copy(store, copied)?;
    Ok(())
}

/// Keeps kv.db locked for a while, and writes nothing.
fn stranger(store: &str, begin: &str, ms: u64) -> Result<(), Failure> {
    let db = Connection::open_with_flags(store, rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.busy_timeout(Duration::from_secs(1))?;
    db.execute_batch(begin)?;
    std::thread::sleep(Duration::from_millis(ms));
    Ok(())
}

/// At the end every key can be had and the semaphore has all its permits; what is wrong if not.
fn all_is_free(store: &Path) -> Result<Option<String>, Failure> {
    let store = Store::open(store)?;
    let options = fence_core::AcquireOptions {
        wait: fence_core::Wait::new(5_000)?,
        ..fence_core::AcquireOptions::default()
    };
    for key in worker::KEYS {
        if store.acquire(key, &options)?.is_none() {
            return Ok(Some(format!("lost lease: {key} cannot be had though nobody is left")));
        }
    }
    let limit = fence_core::Limit::new(LIMIT.cast_signed())?;
    for n in 1..=LIMIT + 1 {
        let now = fence_core::AcquireOptions::default();
        let options = if n > LIMIT { now } else { options };
        let given = store
            .acquire_permit(worker::SEMAPHORE, limit, &options, &|| false)?
            .is_some();
        if given != (n <= LIMIT) {
            return Ok(Some(format!(
                "SEM-01: permit {n} of {LIMIT} was given: {given}, though nobody is left"
            )));
        }
    }
    Ok(None)
}

/// One run.
struct Torture {
    /// Of the schedule of faults.
    random: Random,
    /// Of what is done about what comes up.
    reactions: Random,
    seed: u64,
    seconds: u64,
    plant: Option<Plant>,
    folder: PathBuf,
    faketime: Option<PathBuf>,
    has_disk: bool,
    /// The living workers by their process ids, with their names.
    living: BTreeMap<i32, String>,
    started: usize,
    readers: BTreeMap<String, Reader>,
    /// What is to be done when.
    pending: Vec<(u64, After)>,
    /// For the next worker that is started.
    point: Option<String>,
    swaps: Vec<check::Swap>,
    largest: u128,
    counts: BTreeMap<&'static str, u64>,
    folder_moved: bool,
    corrupt: u64,
}

/// What ends a fault.
#[derive(Clone, Debug)]
enum After {
    Continue(i32),
    RemoveBallast,
    MoveBack,
}

impl Torture {
    fn begin(seconds: u64, seed: u64, plant: Option<Plant>) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("fence-torture-{}", std::process::id()));
        for part in ["disk", "logs", "copy"] {
            fs::create_dir_all(folder.join(part))?;
        }
        // Processes whose parent was killed become ours.
        rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
        let has_disk = mount(&folder.join("disk")).is_ok();
        fs::create_dir(folder.join("disk/store"))?;
        let faketime = Command::new(fence_tests::root().join("tests/hosts"))
            .args(["path", "libfaketime"])
            .output()?;
        let faketime = String::from_utf8(faketime.stdout)?.trim().to_owned();
        let torture = Self {
            random: Random::new(seed),
            reactions: Random::new(!seed),
            seed,
            seconds,
            plant,
            faketime: (!faketime.is_empty()).then(|| faketime.into()),
            has_disk,
            living: BTreeMap::new(),
            started: 0,
            readers: BTreeMap::new(),
            pending: Vec::new(),
            point: None,
            swaps: Vec::new(),
            largest: 0,
            counts: BTreeMap::new(),
            folder_moved: false,
            corrupt: 0,
            folder,
        };
        let app = worker::open_app(&torture.folder.join("app.db"))?;
        for key in worker::KEYS {
            app.execute("insert into rows (key) values (?1)", [key])?;
        }
        Ok(torture)
    }

    fn store(&self) -> PathBuf {
        self.folder.join("disk/store/kv.db")
    }

    fn logs(&self) -> PathBuf {
        self.folder.join("logs")
    }

    fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    fn run(mut self) -> Result<ExitCode, Failure> {
        println!("torture: seed {}, {} s, {WORKERS} workers", self.seed, self.seconds);
        let begun = now();
        let mut looked = begun;
        for _ in 0..WORKERS {
            self.start()?;
        }
        while now() < begun + self.seconds * 1_000 * MS {
            std::thread::sleep(Duration::from_millis(self.random.between(10, 240)));
            self.reap()?;
            self.end_faults(false)?;
            let fault = faults::next(&mut self.random);
            self.strike(fault)?;
            while self.living.len() < WORKERS {
                self.start()?;
            }
            if self.counts.values().sum::<u64>().is_multiple_of(64) {
                self.mend()?;
            }
            if looked < now() {
                looked = now() + 500 * MS;
                self.read()?;
                self.look_for_stopped_children();
            }
        }
        self.end_faults(true)?;
        self.finish()?;
        self.judge()
    }

    /// Starts a worker.
    fn start(&mut self) -> Result<(), Failure> {
        let name = format!("w{}", self.started);
        self.started += 1;
        // Not from the schedule's own source: when a worker is started depends on when the last one died.
        let mut random = Random::new(self.seed.wrapping_add(self.started as u64).rotate_left(32));
        let seed = random.any();
        let mut command = self.own("worker");
        command
            .arg(self.store())
            .arg(self.folder.join("app.db"))
            .arg(self.logs());
        command
            .arg(&name)
            .arg(seed.to_string())
            .args(self.plant.map(Plant::as_str));
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
    fn own(&self, what: &str) -> Command {
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
    fn help(&self, what: &str, arguments: &[&std::ffi::OsStr]) -> Result<bool, Failure> {
        let status = self.own(what).args(arguments).stderr(Stdio::null()).status()?;
        Ok(status.success())
    }

    /// Takes note of the processes that ended or stopped by themselves.
    fn reap(&mut self) -> Result<(), Failure> {
        while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG | WaitOptions::UNTRACED) {
            let pid = pid.as_raw_nonzero().get();
            if status.stopped() {
                self.let_go_on(pid);
            } else if self.living.remove(&pid).is_some() {
                match status.terminating_signal() {
                    Some(9) => self.count("workers killed"),
                    Some(_) => self.count("workers crashed"),
                    None if status.exit_status() == Some(0) => {}
                    None => self.count("workers failed"),
                }
            }
        }
        Ok(())
    }

    /// Lets a process go on, or die, that stopped at a point of the code.
    fn let_go_on(&mut self, pid: i32) {
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
    fn look_for_stopped_children(&mut self) {
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

    fn signal(&self, pid: i32, signal: Signal) {
        if let Some(pid) = Pid::from_raw(pid) {
            // It may have ended meanwhile; nobody has taken its number, for we have not waited for it.
            let _ = kill_process(pid, signal);
        }
    }

    fn end_faults(&mut self, all: bool) -> Result<(), Failure> {
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
            }
        }
        Ok(())
    }

    fn any_worker(&mut self) -> Option<i32> {
        let pids: Vec<_> = self.living.keys().copied().collect();
        (!pids.is_empty()).then(|| *self.random.pick(&pids))
    }

    fn strike(&mut self, fault: Fault) -> Result<(), Failure> {
        use std::io::Write;
        let mut faults = fs::OpenOptions::new()
            .create(true)
            .append(true)
            .open(self.logs().join("faults"))?;
        writeln!(faults, "{} {fault:?}", now())?;
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
            Fault::Copy => {
                let (store, copy) = (self.store(), self.folder.join("copy"));
                if self.help("copy", &[store.as_os_str(), copy.as_os_str()])? {
                    self.count("copies made");
                }
            }
            Fault::Swap(kind) => self.swap(kind)?,
        }
        Ok(())
    }

    fn swap(&mut self, kind: Swap) -> Result<(), Failure> {
        // One at a time, and in its usual place and with room for the copy: else it is the harness that fails.
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
        });
        self.advance()
    }

    /// What one does after a restore: advances past the largest fence in one's data (LOCK-10).
    fn advance(&mut self) -> Result<(), Failure> {
        self.read()?;
        let largest = self.largest.to_string();
        for _ in 0..20 {
            if self.help("advance", &[self.store().as_os_str(), largest.as_ref()])? {
                let advanced = now();
                for swap in self.swaps.iter_mut().filter(|swap| swap.advanced == u64::MAX) {
                    swap.advanced = advanced;
                }
                break;
            }
            self.end_faults(false)?;
            self.reap()?;
        }
        Ok(())
    }

    /// Reads on in all logs.
    fn read(&mut self) -> Result<(), Failure> {
        for entry in fs::read_dir(self.logs())? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "log")
                && let Some(name) = path.file_stem().and_then(|name| name.to_str())
            {
                let reader = self.readers.entry(name.to_owned()).or_insert_with(|| Reader::new(name));
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

    /// Does what the message says about a file that is corrupt: moves it away and advances.
    fn mend(&mut self) -> Result<(), Failure> {
        if self.corrupt > 20 {
            self.swap(Swap::DeletedAll)?;
            self.count("corrupt files moved away");
            self.read()?;
            self.corrupt = 0;
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
            swaps: std::mem::take(&mut self.swaps),
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
        clean_shared_memory(&self.folder);
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
            "{} violations; the logs are in {}; again with: make torture DURATION={} SEED={}",
            wrong.len(),
            self.logs().display(),
            self.seconds,
            self.seed
        );
        Ok(ExitCode::FAILURE)
    }

    fn print(&self, history: &History, notes: &[String]) {
        let mut done: BTreeMap<&str, u64> = BTreeMap::new();
        let mut errors: BTreeMap<i32, u64> = BTreeMap::new();
        let mut longest = 0;
        for op in history.ops.iter().flatten() {
            let Some((end, answer)) = &op.end else {
                *done.entry("calls cut off by a death").or_default() += 1;
                continue;
            };
            longest = longest.max(end - op.began);
            let what = match (&op.what, answer) {
                (_, Answer::Error(code)) => {
                    *errors.entry(*code).or_default() += 1;
                    "calls that gave an error"
                }
                (What::Acquire { limit: 0, .. }, Answer::Name(_)) => "leases granted",
                (What::Acquire { .. }, Answer::Name(_)) => "permits granted",
                (What::Acquire { .. }, _) => "answers 'held'",
                (What::Renew { .. }, Answer::Yes) => "renewals",
                (What::Renew { .. }, _) => "renewals refused",
                (What::Release { .. }, Answer::Yes) => "releases",
                (What::Release { .. }, _) => "releases refused",
                (What::Write { .. }, Answer::Yes) => "writes",
                (What::Write { .. }, _) => "stale writes refused",
            };
            *done.entry(what).or_default() += 1;
        }
        let forks = history
            .ops
            .iter()
            .flatten()
            .filter(|op| op.worker.contains('.'))
            .map(|op| &op.worker);
        let forks = forks.collect::<std::collections::BTreeSet<_>>().len();
        println!("what was done:");
        for (what, count) in &done {
            println!("  {count:>8} {what}");
        }
        println!("what befell it:");
        println!("  {:>8} workers started", self.started);
        println!("  {forks:>8} children forked");
        for (what, count) in &self.counts {
            println!("  {count:>8} {what}");
        }
        if !errors.is_empty() {
            println!("errors by result code: {errors:?}");
            let mut kinds: BTreeMap<String, u64> = BTreeMap::new();
            for note in notes {
                *kinds.entry(kind_of(note)).or_default() += 1;
            }
            for (kind, count) in kinds {
                println!("  {count:>8} {kind}");
            }
        }
        if !self.has_disk {
            println!("left out: full disks, for they need root");
        }
        if self.faketime.is_none() {
            println!("left out: stepped clocks, for libfaketime is not there");
        }
        println!("the longest call took {} ms", longest / MS);
    }
}

/// A message without the path at its beginning.
fn kind_of(note: &str) -> String {
    let kind = note
        .split_once("\" ")
        .or_else(|| note.split_once("\": "))
        .map_or(note, |(_, kind)| kind);
    let kind: String = kind.chars().take(100).collect();
    kind
}

fn is_corrupt(note: &str) -> bool {
    note.contains("malformed")
        || note.contains("is missing")
        || note.contains("not a database")
        || note.contains("disk I/O error")
}

fn is_running(pid: i32) -> bool {
    state_of(pid).is_some_and(|state| state != 'Z')
}

/// `T` of a process that stands still, `Z` of one that has ended and was not waited for; nothing of none.
fn state_of(pid: i32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit(") ").next()?.chars().next()
}

/// A file system of a fixed size in a mount namespace of our own: it goes with us.
fn mount(at: &Path) -> Result<(), Failure> {
    use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
    // SAFETY: this process has one thread, and no file descriptor depends on the old namespace.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS)? };
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    let options = std::ffi::CString::new(DISK)?;
    mount("tmpfs", at, "tmpfs", MountFlags::empty(), options.as_c_str())?;
    Ok(())
}

/// Fills the disk with a file.
fn fill(ballast: &Path) {
    use std::io::Write;
    let Ok(mut file) = fs::File::create(ballast) else {
        return;
    };
    for size in [1 << 16, 1 << 10] {
        while file.write_all(&vec![0; size]).is_ok() {}
    }
}

/// libfaketime keeps something in shared memory for each process, and a killed process leaves it.
fn clean_shared_memory(_folder: &Path) {
    let Ok(entries) = fs::read_dir("/dev/shm") else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let Some(name) = name.to_str() else { continue };
        if name.contains("faketime")
            && let Some(pid) = name.rsplit('_').next().and_then(|pid| pid.parse().ok())
            && !is_running(pid)
        {
            drop(remove(&entry.path()));
        }
    }
}
