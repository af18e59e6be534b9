//! Torture: real processes use one store while everything around it fails, and the history of what they did is checked.
//!
//! `torture [--storm] [SECONDS] [SEED]` (`make torture DURATION=60 SEED=n`) starts eight workers and lets faults come over
//! them by the seed: kill -9, SIGSTOP, stops and deaths inside a grant and inside an opening, forks, stepped clocks, a
//! stranger who locks kv.db, a full disk, kv.db deleted, replaced and restored. The seed fixes the faults and each worker's
//! choices; how the processes interleave is the machine's.
//!
//! With `--etcd` (`make torture STORE=etcd`) the store is an etcd cluster of three members, and in place of what befalls
//! files its members are killed and stopped, the leader above all, now and then two at once, so that there is no quorum.
//!
//! It ends with 0 if nothing was violated, with 1 and a list if something was. The folder with the logs is kept then.
//!
//! | file | what it holds |
//! |---|---|
//! | `worker.rs` | what each of the processes does |
//! | `history.rs` | how each writes down what it did, and how that is read |
//! | `faults.rs` | which fault comes next |
//! | `run.rs` | a run from its beginning to its judgement |
//! | `processes.rs` | starting the workers, and what becomes of them |
//! | `strike.rs` | how each fault is made, and how it ends |
//! | `members.rs` | the faults of a cluster's members |
//! | `check.rs` | what must never have happened |
//! | `summary.rs` | what is printed |
//! | `helpers.rs`, `machine.rs`, `random.rs` | what these stand on |
//!
//! `--storm`: files are swapped and processes stopped without a pause, as in the storms that come in every run now and
//! then. `--plant epoch-in-memory` and `--plant renewal-revives` plant a fault that the check must find.
//!
//! What the machine does not allow is left out, and the summary says so: a full disk and a store on a file system of its
//! own need root, stepped clocks need libfaketime.

mod check;
mod faults;
mod helpers;
mod history;
mod machine;
mod members;
mod processes;
mod random;
mod run;
mod strike;
mod summary;
mod worker;

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use history::now;
use random::Random;
use run::{Plan, Torture};

/// What goes wrong in the harness itself.
pub type Failure = Box<dyn std::error::Error>;

/// How many permits the semaphore has.
pub const LIMIT: u64 = 3;
/// A millisecond, in nanoseconds.
pub const MS: u64 = 1_000_000;

/// A fault that is planted, for the check to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plant {
    /// Each process counts its own fences from the epoch that it saw first.
    EpochInMemory,
    /// A renewal brings back a lease that is over.
    RenewalRevives,
}

impl Plant {
    /// The fault of this name.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "epoch-in-memory" => Some(Self::EpochInMemory),
            "renewal-revives" => Some(Self::RenewalRevives),
            _ => None,
        }
    }

    /// Its name.
    pub fn as_str(self) -> &'static str {
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

/// A run, or what this program does as one of its own processes.
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
        ["advance", store, fence] => helpers::advance(Path::new(store), fence)?,
        ["copy", store, to] => helpers::copy(Path::new(store), Path::new(to))?,
        ["stranger", store, begin, ms] => helpers::stranger(store, begin, ms.parse()?)?,
        ["final", store] => {
            return Ok(
                helpers::all_is_free(Path::new(store))?.map_or(ExitCode::SUCCESS, |wrong| {
                    println!("{wrong}");
                    ExitCode::FAILURE
                }),
            );
        }
        rest => return Torture::begin(plan(rest)?)?.run(),
    }
    Ok(ExitCode::SUCCESS)
}

/// What the arguments ask for. Without a seed it is a fresh one.
fn plan(mut words: &[&str]) -> Result<Plan, Failure> {
    let mut plan = Plan {
        seconds: 60,
        seed: Random::new(now() ^ (u64::from(std::process::id()) << 40)).below(1_000_000_000),
        storm: false,
        etcd: false,
        plant: None,
    };
    loop {
        words = match words {
            ["--plant", plant, rest @ ..] => {
                plan.plant = Some(Plant::parse(plant).ok_or("no such fault to plant")?);
                rest
            }
            ["--storm", rest @ ..] => {
                plan.storm = true;
                rest
            }
            ["--etcd", rest @ ..] => {
                plan.etcd = true;
                rest
            }
            _ => break,
        };
    }
    if plan.etcd && plan.plant == Some(Plant::RenewalRevives) {
        return Err("that fault is planted in a file".into());
    }
    if let Some(seconds) = words.first() {
        plan.seconds = seconds.parse()?;
    }
    if let Some(seed) = words.get(1).filter(|seed| !seed.is_empty()) {
        plan.seed = seed.parse()?;
    }
    Ok(plan)
}
