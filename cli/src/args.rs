//! What may stand on the command line, and how a mistake in it is told.
//!
//! Which store, the same for every command, the first of these that says something; a path that begins with `etcd://` or
//! `etcds://` is a cluster's location:
//!
//! 1. `--store PATH`;
//! 2. the environment variable `FENCE_STORE`;
//! 3. `kv.db` in the folder of `--database FILE`;
//! 4. `kv.db` in the current folder.
//!
//! Messages read as the library's: `fence: what happened: what to do`. A value that is refused is told by the reader of
//! that value, which names the argument; what clap has to say keeps its words.

use std::error::Error as _;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use clap::error::ErrorKind;
use clap::{Args, Parser};
use fence_core::{Delay, Limit, Store, Ttl, Wait};

use crate::cmd::Command;
use crate::exit::Exit;

/// The environment variable that names the store.
pub const STORE: &str = "FENCE_STORE";

/// A lease around any command, and the store on the command line.
///
/// A lease keeps a key for one holder at a time, and its fence, a number that only grows, lets the database refuse
/// whoever comes late.
#[derive(Debug, Parser)]
#[command(name = "fence", version, max_term_width = 100, disable_help_subcommand = true)]
pub struct Line {
    #[command(subcommand)]
    pub command: Command,
}

/// Which kv.db.
#[derive(Args, Debug)]
pub struct StoreArgs {
    /// The store's file, or etcd://HOST,HOST,HOST/PREFIX; without it the one that FENCE_STORE names, else kv.db beside the database
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
    /// The database whose folder has the store; without it the current folder
    #[arg(long, value_name = "FILE")]
    database: Option<PathBuf>,
}

impl StoreArgs {
    /// The store's path.
    pub fn path(&self) -> PathBuf {
        let set = || {
            std::env::var_os(STORE)
                .filter(|path| !path.is_empty())
                .map(PathBuf::from)
        };
        let beside = || {
            self.database
                .as_deref()
                .unwrap_or(Path::new(""))
                .with_file_name("kv.db")
        };
        self.store.clone().or_else(set).unwrap_or_else(beside)
    }

    /// Opens the store; makes it if need be.
    pub fn open(&self) -> Result<Store, String> {
        let path = self.path();
        if path == Path::new(":memory:") {
            let message = "fence: the store is ':memory:', which no other process sees: name a file with --store";
            return Err(message.to_owned());
        }
        Store::open(path).map_err(|error| error.to_string())
    }

    /// Opens a store that is there already.
    pub fn open_existing(&self) -> Result<Store, String> {
        let path = self.path();
        if Store::exists(&path).map_err(|error| error.to_string())? {
            return self.open();
        }
        let located = Store::locate(&path).map_err(|error| error.to_string())?;
        Err(format!(
            "fence: there is no store {located:?}: name one with --store or {STORE}"
        ))
    }
}

/// Reads the command line. What cannot be read is told here, and the exit status is given.
pub fn parse() -> Result<Command, Exit> {
    let error = match Line::try_parse() {
        Ok(line) => return Ok(line.command),
        Err(error) => error,
    };
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        // Whoever closed the output does not want to read it.
        let _ = error.print();
        return Err(Exit::DONE);
    }
    match (error.kind(), error.source()) {
        (ErrorKind::ValueValidation, Some(told)) => eprintln!("{told}"),
        _ => eprint!("{}", error.to_string().replacen("error: ", "fence: ", 1)),
    }
    let is_hold = std::env::args_os().nth(1).as_deref() == Some(OsStr::new("hold"));
    Err(if is_hold { Exit::HOLD_TROUBLE } else { Exit::TROUBLE })
}

/// Reads `--ttl`.
pub fn ttl(text: &str) -> Result<Ttl, String> {
    length("--ttl", text, Ttl::ACCEPTS)
}

/// Reads `--wait`.
pub fn wait(text: &str) -> Result<Wait, String> {
    length("--wait", text, Wait::ACCEPTS)
}

/// Reads `--delay`.
pub fn delay(text: &str) -> Result<Delay, String> {
    length("--delay", text, Delay::ACCEPTS)
}

/// Reads `--grace`, which may be as long as a wait.
pub fn grace(text: &str) -> Result<Wait, String> {
    length("--grace", text, Wait::ACCEPTS)
}

/// Reads `--permits`.
pub fn permits(text: &str) -> Result<Limit, String> {
    let number = text.parse().ok().and_then(|number| Limit::new(number).ok());
    number.ok_or_else(|| refused("--permits", text, Limit::ACCEPTS))
}

/// Reads a length of time, such as `500ms` or `2m 30s`, that is within its limits.
fn length<T: TryFrom<std::time::Duration>>(argument: &str, text: &str, accepts: &str) -> Result<T, String> {
    humantime::parse_duration(text)
        .ok()
        .and_then(|length| T::try_from(length).ok())
        .ok_or_else(|| refused(argument, text, &format!("a time such as 500ms, 30s or 2m, {accepts}")))
}

/// The message about a value that is refused.
pub fn refused(argument: &str, value: &str, accepts: &str) -> String {
    let value = fence_core::shown::text(value.as_bytes());
    format!("fence: {argument} is {value}: give {accepts}")
}
