//! Every exit status of `fence`.
//!
//! | status | of | meaning |
//! |---|---|---|
//! | 0 | all | done |
//! | 1 | `release`, `audit`, `sql` | the answer is no: the lease is over; a verdict is bad; a statement failed |
//! | 2 | all but `hold` | the command line is wrong, or there is trouble with the store |
//! | the command's | `hold` | what the command ended with |
//! | 128 + n | `hold` | the command was ended by signal n, as shells say it; or signal n ended the wait for the key |
//! | 75 | `hold` | somebody else held the key, and the command was not run; another status with `--conflict-exit-code` |
//! | 76 | `hold` | the lease or permit was lost, and the command was ended |
//! | 125 | `hold` | the command line is wrong, or there is trouble with the store; the command was not run |
//! | 126 | `hold` | the command was found and cannot be run |
//! | 127 | `hold` | the command was not found |
//!
//! What `hold` has of its own is what `timeout(1)`, `env(1)` and `sysexits.h` use, so that few commands have another
//! meaning for it.

use std::process::ExitCode;

use rustix::process::WaitStatus;

/// An exit status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit(u8);

impl Exit {
    /// Done.
    pub const DONE: Self = Self(0);
    /// The answer is no.
    pub const NO: Self = Self(1);
    /// The command line is wrong, or there is trouble with the store.
    pub const TROUBLE: Self = Self(2);
    /// Somebody else holds the key. The number is that of `EX_TEMPFAIL`.
    pub const HELD: u8 = 75;
    /// The lease or permit was lost.
    pub const LOST: Self = Self(76);
    /// [`Exit::TROUBLE`] of `hold`, whose status belongs to the command.
    pub const HOLD_TROUBLE: Self = Self(125);
    /// The command cannot be run.
    pub const CANNOT_RUN: Self = Self(126);
    /// The command was not found.
    pub const NOT_FOUND: Self = Self(127);

    /// This very status.
    pub const fn of(status: u8) -> Self {
        Self(status)
    }

    /// Ended by this signal.
    pub fn by_signal(signal: i32) -> Self {
        Self(u8::try_from(128 + signal).unwrap_or(u8::MAX))
    }

    /// As a command ended; nothing if it has not.
    pub fn of_command(status: WaitStatus) -> Option<Self> {
        match (status.exit_status(), status.terminating_signal()) {
            (Some(code), _) => Some(Self(u8::try_from(code).unwrap_or(u8::MAX))),
            (_, Some(signal)) => Some(Self::by_signal(signal)),
            _ => None,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.0)
    }
}
