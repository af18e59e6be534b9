//! `fence hold KEY -- COMMAND`: runs a command under a lease.
//!
//! One hold, from top to bottom; `hold/` has its parts.

use std::ffi::OsString;
use std::process::Command;
use std::sync::mpsc::{Sender, channel};

use clap::Args;
use fence_core::{AcquireOptions, Delay, Error, Fence, HeldLease, HeldPermit, Limit, PermitId, Store, Ttl, Wait};

use crate::args::{self, StoreArgs};
use crate::exit::Exit;
use crate::hold::group::Group;
use crate::hold::holder::Waiting;
use crate::hold::signals::Listener;
use crate::hold::terminal::Terminal;
use crate::hold::warden::Warden;
use crate::hold::watch::{Event, Watch};

/// Run a command under a lease, and end it if the lease is lost
///
/// The command gets FENCE, FENCE_PADDED and FENCE_KEY in its environment, or with --permits PERMIT and FENCE_KEY. The
/// lease is renewed while the command runs and released when it has ended. The exit status is the command's; 75 if the
/// key was not got, 76 if the lease was lost, 125 for trouble, 126 and 127 if there is no such command.
#[derive(Args, Debug)]
#[command(override_usage = "fence hold [OPTIONS] KEY [--key KEY]... -- COMMAND [ARG]...")]
pub struct Hold {
    /// The key to hold
    #[arg(required_unless_present = "more")]
    key: Option<String>,
    /// A further key: all are held under one fence, or none
    #[arg(long = "key", value_name = "KEY")]
    more: Vec<String>,
    /// How long the lease lasts without renewal; it is renewed at a third of this
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = args::ttl)]
    ttl: Ttl,
    /// How long to wait for the key
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = args::wait)]
    wait: Wait,
    /// How long the key stays closed if the lease ends without release
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = args::delay)]
    delay: Delay,
    /// Hold a permit in place of a lease, of which so many may be out
    #[arg(long, value_name = "N", value_parser = args::permits, conflicts_with_all = ["more", "delay"])]
    permits: Option<Limit>,
    /// How long the command has between SIGTERM and SIGKILL
    #[arg(long, value_name = "TIME", default_value = "5s", value_parser = args::grace)]
    grace: Wait,
    /// The exit status if somebody else holds the key
    #[arg(long, value_name = "STATUS", default_value_t = Exit::HELD)]
    conflict_exit_code: u8,
    #[command(flatten)]
    store: StoreArgs,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// What is held.
enum Held {
    Lease(HeldLease),
    Permit(HeldPermit),
}

impl Hold {
    pub fn run(self) -> Result<Exit, String> {
        // SAFETY: nothing has started a thread yet.
        let warden = unsafe { Warden::start() }.map_err(|error| trouble("starting a process", &error))?;
        let (tell, events) = channel();
        let signals = Listener::start(tell.clone()).map_err(|error| trouble("listening to signals", &error))?;
        let store = self.store.open()?;

        let keys: Vec<&str> = self.key.iter().chain(&self.more).map(String::as_str).collect();
        let waiting = Waiting::begin(&store, &keys, self.permits, self.wait);
        let acquired = self.acquire(&store, &keys, &|| {
            waiting.tick();
            signals.ending().is_some()
        });
        waiting.end();
        let held = match acquired {
            Ok(Some(held)) => held,
            Ok(None) => {
                eprintln!("{}", waiting.in_vain());
                return Ok(Exit::of(self.conflict_exit_code));
            }
            Err(Error::Interrupted) => return Ok(Exit::by_signal(signals.ending().unwrap_or_default())),
            Err(error) => return Err(error.to_string()),
        };
        held.on_lost(tell.clone());

        let terminal = Terminal::of_stdin();
        let group = match Group::start(self.command(&held, &keys), &warden, terminal, tell) {
            Ok(group) => group,
            Err(error) => {
                warden.dismiss();
                return Ok(self.not_run(held, &error));
            }
        };
        // Without it, a stop of the holder is not one of the command.
        let _ = signals.listen_to_stops();
        let outcome = Watch {
            group: &group,
            terminal,
            grace: self.grace.duration(),
            is_lost: &|| held.is_lost(),
        }
        .run(&events);
        if let Some(terminal) = terminal {
            terminal.take_from(group.id());
        }
        warden.dismiss();

        match held.release() {
            Ok(()) if !outcome.lost => Ok(outcome
                .status
                .and_then(Exit::of_command)
                .unwrap_or(Exit::by_signal(libc::SIGKILL))),
            Ok(()) => Ok(Exit::LOST),
            Err(error) => {
                eprintln!("{error}");
                Ok(Exit::LOST)
            }
        }
    }

    fn acquire(&self, store: &Store, keys: &[&str], interrupted: &dyn Fn() -> bool) -> Result<Option<Held>, Error> {
        let options = AcquireOptions {
            ttl: self.ttl,
            wait: self.wait,
            delay: self.delay,
            bound: true,
        };
        match (self.permits, keys) {
            (Some(limit), [key]) => Ok(store.keep_permit(key, limit, &options, interrupted)?.map(Held::Permit)),
            _ => Ok(store.keep(keys, &options, interrupted)?.map(Held::Lease)),
        }
    }

    /// The command with its environment.
    fn command(&self, held: &Held, keys: &[&str]) -> Command {
        let (program, arguments) = self
            .command
            .split_first()
            .map_or((None, &[][..]), |(p, a)| (Some(p), a));
        let mut command = Command::new(program.map_or(OsString::new(), OsString::clone));
        command.args(arguments);
        // What an outer hold has set is not what is held here.
        for name in ["FENCE", "FENCE_PADDED", "PERMIT"] {
            command.env_remove(name);
        }
        command.env("FENCE_KEY", keys.join("\n"));
        match held.name() {
            Name::Lease(fence) => {
                command.env("FENCE", fence.to_string());
                command.env("FENCE_PADDED", format!("{fence:040}"));
            }
            Name::Permit(permit) => {
                command.env("PERMIT", permit.to_string());
            }
        }
        command
    }

    /// Gives back what was got for a command that cannot be run.
    fn not_run(&self, held: Held, error: &std::io::Error) -> Exit {
        let program = self.command.first().map(|name| name.to_string_lossy());
        let program = fence_core::shown::text(program.unwrap_or_default().as_bytes());
        eprintln!("fence: {program} cannot be run: {error}: give a command that is on the PATH or a path to one");
        // It ends with this process anyway.
        let _ = held.release();
        if error.kind() == std::io::ErrorKind::NotFound {
            Exit::NOT_FOUND
        } else {
            Exit::CANNOT_RUN
        }
    }
}

enum Name {
    Lease(Fence),
    Permit(PermitId),
}

impl Held {
    fn name(&self) -> Name {
        match self {
            Self::Lease(lease) => Name::Lease(lease.fence()),
            Self::Permit(permit) => Name::Permit(permit.id()),
        }
    }

    fn is_lost(&self) -> bool {
        match self {
            Self::Lease(lease) => lease.is_lost(),
            Self::Permit(permit) => permit.is_lost(),
        }
    }

    fn on_lost(&self, events: Sender<Event>) {
        // Where nobody listens any more, nobody needs to know.
        let tell = move || drop(events.send(Event::Lost));
        match self {
            Self::Lease(lease) => lease.on_lost(tell),
            Self::Permit(permit) => permit.on_lost(tell),
        }
    }

    fn release(self) -> Result<(), Error> {
        match self {
            Self::Lease(lease) => lease.release(),
            Self::Permit(permit) => permit.release(),
        }
    }
}

fn trouble(doing: &str, error: &std::io::Error) -> String {
    format!("fence: {doing} failed: {error}: see what the system lacks; the command was not run")
}
