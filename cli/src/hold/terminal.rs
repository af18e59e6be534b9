//! Whose turn it is at the terminal.
//!
//! The command has a process group of its own, and a terminal lets one group read at a time. So the holder does for its
//! command what a shell does for a job: it hands the terminal over, takes it back, and stops when the command stops.
//!
//! It hands over at once where all three streams are the terminal; else, say in a pipeline, whose other members belong to
//! the holder's group, only when the command asks for it by reading from it or by changing its settings.

use std::io::{self, IsTerminal};
use std::{mem, ptr};

use rustix::process::{Pid, Signal, getpgrp, getpid, kill_process};
use rustix::stdio::stdin;
use rustix::termios::{tcgetpgrp, tcsetpgrp};

/// The terminal that is this process's standard input.
#[derive(Clone, Copy)]
pub struct Terminal {
    /// The holder's group.
    own: Pid,
}

impl Terminal {
    /// The terminal, if the standard input is one and it is this session's.
    pub fn of_stdin() -> Option<Self> {
        tcgetpgrp(stdin()).ok().map(|_| Self { own: getpgrp() })
    }

    /// Whether the holder's group may read from it now.
    pub fn is_ours(&self) -> bool {
        tcgetpgrp(stdin()) == Ok(self.own)
    }

    /// Whether the command is to have it from its beginning.
    pub fn is_for_the_command(&self) -> bool {
        self.is_ours() && io::stdout().is_terminal() && io::stderr().is_terminal()
    }

    /// Lets the group have it. Also for the group itself, between fork and exec: it only makes system calls.
    pub fn give(group: Pid) -> io::Result<()> {
        let given = without_stopping(|| tcsetpgrp(stdin(), group));
        given.map_err(io::Error::from)
    }

    /// Takes it back from the group.
    pub fn take_from(&self, group: Pid) {
        if tcgetpgrp(stdin()) == Ok(group) {
            // A terminal that has gone away needs no taking.
            let _ = Self::give(self.own);
        }
    }

    /// Stops the holder, as its command did, until somebody lets it go on.
    pub fn stop_ourselves() {
        // SIGSTOP cannot fail for ourselves.
        let _ = kill_process(getpid(), Signal::STOP);
    }
}

/// Runs the call with SIGTTOU blocked, which the system sends to whoever sets a terminal that is not its turn.
fn without_stopping<T>(call: impl FnOnce() -> T) -> T {
    // SAFETY: sets of signals are plain data, which these calls fill; the mask is this thread's own.
    unsafe {
        let (mut ttou, mut before): (libc::sigset_t, libc::sigset_t) = (mem::zeroed(), mem::zeroed());
        libc::sigemptyset(&raw mut ttou);
        libc::sigaddset(&raw mut ttou, libc::SIGTTOU);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const ttou, &raw mut before);
        let answer = call();
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const before, ptr::null_mut());
        answer
    }
}
