//! One of the processes that are tortured: it acquires, writes, renews, releases, forgets and forks, by its seed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fence_core::{AcquireOptions, Delay, Fence, Limit, PermitId, Store, Ttl, Wait};
use rusqlite::{Connection, OptionalExtension};

use crate::history::{Answer, Log, What};
use crate::random::Random;
use crate::{Failure, LIMIT, Plant};

/// The keys that they quarrel about.
pub const KEYS: [&str; 4] = ["k0", "k1", "k2", "k3"];
/// The semaphore.
pub const SEMAPHORE: &str = "gpu";
/// The longest ttl.
pub const LONGEST_MS: u64 = 400;
/// When this file stands in the logs' folder, all end.
pub const END: &str = "end";

/// What a worker is told.
pub struct Task {
    pub store: PathBuf,
    pub app: PathBuf,
    pub logs: PathBuf,
    pub name: String,
    pub seed: u64,
    pub plant: Option<Plant>,
}

/// Its state.
struct Worker {
    task: Task,
    random: Random,
    log: Log,
    store: Option<Store>,
    app: Connection,
    /// Children that it has made so far; a child makes none.
    forks: Option<u32>,
    /// Of the planted fault: the epoch and count in memory, and the fences that the store gave instead.
    memory: Memory,
}

#[derive(Default)]
struct Memory {
    last: Option<(u64, u64)>,
    real: HashMap<String, Fence>,
}

impl Memory {
    /// The fence that the store knows by this name.
    fn fence(&self, name: &str) -> Fence {
        let real = self.real.get(name).copied();
        real.unwrap_or_else(|| name.parse().expect("a fence"))
    }

    /// The fence of a store that counts by itself.
    fn instead_of(&mut self, fence: Fence) -> String {
        let (epoch, count) = self.last.get_or_insert((fence.epoch().get(), fence.count().get()));
        *count += 1;
        let given = ((u128::from(*epoch) << 64) | u128::from(*count)).to_string();
        self.real.insert(given.clone(), fence);
        given
    }
}

/// Works until it is told to end.
pub fn run(task: Task) -> Result<(), Failure> {
    let log = Log::begin(&task.logs, &task.name)?;
    let app = open_app(&task.app)?;
    let mut worker = Worker {
        random: Random::new(task.seed),
        log,
        app,
        store: None,
        forks: Some(0),
        memory: Memory::default(),
        task,
    };
    while !worker.task.logs.join(END).exists() {
        worker.step()?;
    }
    drop(worker.store.take());
    worker.log.end()?;
    Ok(())
}

/// The users' database: a row for each key, and a note of every fence that a row was given.
pub fn open_app(path: &Path) -> rusqlite::Result<Connection> {
    let app = Connection::open(path)?;
    app.busy_timeout(Duration::from_secs(30))?;
    app.execute_batch(
        "pragma journal_mode = wal; pragma synchronous = off;
         create table if not exists rows (key text primary key, summary_fence text not null default '');
         create table if not exists given (n integer primary key autoincrement, key text, fence text);
         create trigger if not exists note after update on rows begin
             insert into given (key, fence) values (new.key, new.summary_fence);
         end;",
    )?;
    Ok(app)
}

impl Worker {
    fn step(&mut self) -> Result<(), Failure> {
        if self.random.once_in(60) {
            self.store = None;
        }
        if self.forks.is_some() && self.random.once_in(80) {
            self.fork()?;
        }
        match self.random.below(10) {
            0..2 => self.permit(),
            2 => self.lease("k0+k1"),
            _ => {
                let key = *self.random.pick(&KEYS);
                self.lease(key)
            }
        }
    }

    /// A child goes on for a while with what its parent has open (LOCK-09).
    fn fork(&mut self) -> Result<(), Failure> {
        let count = self.forks.unwrap_or_default() + 1;
        self.forks = Some(count);
        let seed = self.random.any();
        // SQLite's connections do not go through a fork. The store's is seen to by the store; this one by us.
        self.app = Connection::open_in_memory()?;
        // SAFETY: this process has one thread.
        let child = unsafe { libc::fork() };
        self.app = open_app(&self.task.app)?;
        if child != 0 {
            return Ok(());
        }
        self.forks = None;
        self.random = Random::new(seed);
        self.log = Log::begin(&self.task.logs, &format!("{}.{count}", self.task.name))?;
        for _ in 0..self.random.between(1, 40) {
            if self.task.logs.join(END).exists() {
                break;
            }
            self.step()?;
        }
        self.log.end()?;
        // SAFETY: it ends this process without running what its parent has registered.
        unsafe { libc::_exit(0) }
    }

    fn permit(&mut self) -> Result<(), Failure> {
        let ttl_ms = self.random.between(20, LONGEST_MS);
        let Some(name) = self.acquire(SEMAPHORE, LIMIT, ttl_ms, 0)? else {
            return Ok(());
        };
        self.pause(ttl_ms);
        if self.random.once_in(2) {
            self.renew(SEMAPHORE, &name, ttl_ms)?;
            self.pause(ttl_ms);
        }
        if !self.random.once_in(4) {
            self.release(SEMAPHORE, &name)?;
        }
        Ok(())
    }

    fn lease(&mut self, key: &str) -> Result<(), Failure> {
        let ttl_ms = self.random.between(20, LONGEST_MS);
        // A cluster keeps a key closed for seconds.
        let seldom = if self.is_on_cluster() { 20 } else { 5 };
        let delay_ms = if self.random.once_in(seldom) { 30 } else { 0 };
        let Some(name) = self.acquire(key, 0, ttl_ms, delay_ms)? else {
            return Ok(());
        };
        // A holder that stood still writes as if nothing had happened.
        for _ in 0..self.random.between(1, 3) {
            self.pause(ttl_ms);
            for key in key.split('+') {
                self.write(key, &name)?;
            }
            if self.random.once_in(2) {
                self.renew(key, &name, ttl_ms)?;
            }
        }
        if !self.random.once_in(5) {
            self.release(key, &name)?;
            if self.random.once_in(10) {
                self.renew(key, &name, ttl_ms)?;
            }
        }
        Ok(())
    }

    /// Stands still for a while: mostly less than the ttl, now and then more.
    fn pause(&mut self, ttl_ms: u64) {
        let longest = if self.random.once_in(6) { ttl_ms * 2 } else { ttl_ms / 8 };
        std::thread::sleep(Duration::from_millis(self.random.below(longest)));
    }

    fn is_on_cluster(&self) -> bool {
        self.task
            .store
            .to_str()
            .is_some_and(|store| store.starts_with("etcd://"))
    }

    fn acquire(&mut self, key: &str, limit: u64, ttl_ms: u64, delay_ms: i64) -> Result<Option<String>, Failure> {
        let bound = self.random.once_in(3);
        let wait_ms = if self.random.once_in(2) {
            self.random.below(if self.is_on_cluster() { 3_000 } else { 300 })
        } else {
            0
        };
        let options = AcquireOptions {
            ttl: Ttl::new(ttl_ms.cast_signed())?,
            wait: Wait::new(wait_ms.cast_signed())?,
            delay: Delay::new(delay_ms)?,
            bound,
        };
        let memory = &mut self.memory;
        let in_memory = self.task.plant == Some(Plant::EpochInMemory);
        let what = What::Acquire {
            key: key.to_owned(),
            limit,
            ttl_ms,
            bound,
        };
        let keys: Vec<_> = key.split('+').collect();
        let answer = with(&mut self.store, &self.task.store, &mut self.log, &what, |store| {
            if limit > 0 {
                let limit = Limit::new(limit.cast_signed())?;
                let permit = store.acquire_permit(key, limit, &options, &|| false)?;
                return Ok(permit.map_or(Answer::Held, |permit| Answer::Name(permit.to_string())));
            }
            let fence = match keys.as_slice() {
                [key] => store.acquire(key, &options)?.map(|lease| lease.fence()),
                keys => store.acquire_all(keys, &options, &|| false)?,
            };
            let Some(fence) = fence else { return Ok(Answer::Held) };
            Ok(Answer::Name(if in_memory {
                memory.instead_of(fence)
            } else {
                fence.get().to_string()
            }))
        })?;
        Ok(match answer {
            Answer::Name(name) => Some(name),
            _ => {
                std::thread::sleep(Duration::from_millis(self.random.below(20)));
                None
            }
        })
    }

    fn renew(&mut self, key: &str, name: &str, ttl_ms: u64) -> Result<(), Failure> {
        let what = What::Renew {
            key: key.to_owned(),
            name: name.to_owned(),
            ttl_ms,
        };
        let ttl = Some(Ttl::new(ttl_ms.cast_signed())?);
        let revive = self.task.plant == Some(Plant::RenewalRevives);
        let path = &self.task.store;
        let memory = &self.memory;
        with(&mut self.store, path, &mut self.log, &what, |store| {
            let live = if let Ok(permit) = name.parse::<PermitId>() {
                store.renew_permit(key, permit, ttl)?
            } else if key.contains('+') {
                store.renew_all(memory.fence(name), ttl)?
            } else {
                store.renew(key, memory.fence(name), ttl)?
            };
            Ok(yes(live || (revive && revived(path, key, name, ttl_ms))))
        })?;
        Ok(())
    }

    fn release(&mut self, key: &str, name: &str) -> Result<(), Failure> {
        let what = What::Release {
            key: key.to_owned(),
            name: name.to_owned(),
        };
        let memory = &self.memory;
        with(&mut self.store, &self.task.store, &mut self.log, &what, |store| {
            Ok(yes(if let Ok(permit) = name.parse::<PermitId>() {
                store.release_permit(key, permit)?
            } else if key.contains('+') {
                store.release_all(memory.fence(name))?
            } else {
                store.release(key, memory.fence(name))?
            }))
        })?;
        Ok(())
    }

    /// The conditional update that every holder makes.
    fn write(&mut self, key: &str, name: &str) -> Result<(), Failure> {
        let what = What::Write {
            key: key.to_owned(),
            name: name.to_owned(),
        };
        let app = &self.app;
        self.log.run(&what, || {
            let changed = app.execute(
                "update rows set summary_fence = ?2 where key = ?1 and summary_fence <= ?2",
                (key, format!("{:0>40}", name)),
            );
            let answer = match changed {
                Ok(changed) => yes(changed > 0),
                Err(error) => Answer::Error(error.sqlite_error().map_or(1, |error| error.extended_code)),
            };
            (answer, ())
        })?;
        Ok(())
    }
}

/// Runs an operation on the store, which is opened if need be, and notes it.
fn with(
    store: &mut Option<Store>,
    path: &Path,
    log: &mut Log,
    what: &What,
    work: impl FnOnce(&Store) -> fence_core::Result<Answer>,
) -> Result<Answer, Failure> {
    let (answer, error) = log.run(what, || {
        let opened = store.take().map_or_else(|| Store::open(path), Ok);
        match opened.and_then(|opened| work(store.insert(opened))) {
            Ok(answer) => (answer, None),
            Err(error) => (Answer::Error(error.code()), Some(error)),
        }
    })?;
    if let Some(error) = error {
        log.note(&error.to_string().replace('\n', " "))?;
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(answer)
}

/// The planted fault: brings a lease back that is over.
fn revived(path: &Path, key: &str, name: &str, ttl_ms: u64) -> bool {
    let Ok(fence) = name.parse::<Fence>() else { return false };
    let revive = || -> rusqlite::Result<bool> {
        let db = Connection::open(path)?;
        db.busy_timeout(Duration::from_secs(5))?;
        let now = crate::history::now() / 1_000_000;
        let free = db
            .query_row("select 1 from leases where key = ?1", [key], |_| Ok(()))
            .optional()?
            .is_none();
        Ok(db.execute(
            "insert or replace into leases values (?1, x'', ?2, ?3, ?4, ?5, 0, 0, 0, 0)",
            (
                key,
                fence.epoch().get().cast_signed(),
                fence.count().get().cast_signed(),
                (now + ttl_ms).cast_signed(),
                ttl_ms.cast_signed(),
            ),
        )? > 0
            && free)
    };
    revive().unwrap_or(false)
}

fn yes(answer: bool) -> Answer {
    if answer { Answer::Yes } else { Answer::No }
}
