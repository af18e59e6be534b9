//! The loop of a hold: what happens to the holder, to the lease and to the command, and what follows from it.
//!
//! | what happens | what follows |
//! |---|---|
//! | the command ends | what it left in its group has the grace to end by itself, then is told to, then killed |
//! | the lease is lost | the group is told to end (SIGTERM); after the grace it is killed |
//! | a signal comes | the group gets it |
//! | the command stops at the terminal | the holder stops as well, as a shell's job does; both go on together |

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use libc::{SIGCONT, SIGTSTP, SIGTTIN, SIGTTOU};
use rustix::process::{Signal, WaitStatus};

use super::group::Group;
use super::terminal::Terminal;

/// How often the clock is asked whether the lease is over. The thread that renews asks as well, but a machine that slept
/// does not count that in its pauses.
const LOOK: Duration = Duration::from_millis(500);
/// How often the group is looked at once the command has ended: nobody tells of the end of the others.
const LOOK_AT_GROUP: Duration = Duration::from_millis(5);
/// How long the end of a killed group is waited for: the system may be in the middle of a call for one of its processes.
const UNKILLABLE: Duration = Duration::from_secs(5);

/// What can happen.
#[derive(Debug)]
pub enum Event {
    /// A signal came.
    Signal(i32),
    /// The command was stopped by this signal.
    Stopped(i32),
    /// The command ended.
    Ended(WaitStatus),
    /// The lease is lost.
    Lost,
}

/// What is done to the group next, if it is still there by then.
#[derive(Clone, Copy)]
enum Step {
    Terminate,
    Kill,
    /// Who does not die of SIGKILL is not in our hands.
    GiveUp,
}

/// Watches over a command.
pub struct Watch<'a> {
    pub group: &'a Group,
    pub terminal: Option<Terminal>,
    pub grace: Duration,
    /// Whether the lease is lost.
    pub is_lost: &'a dyn Fn() -> bool,
}

/// How it went.
pub struct Outcome {
    /// How the command ended; nothing if it could not be ended.
    pub status: Option<WaitStatus>,
    /// Whether the lease was lost before the group was gone.
    pub lost: bool,
}

impl Watch<'_> {
    /// Returns when nobody is left in the group.
    pub fn run(&self, events: &Receiver<Event>) -> Outcome {
        let mut outcome = Outcome {
            status: None,
            lost: false,
        };
        let mut next: Option<(Instant, Step)> = None;
        loop {
            if !outcome.lost && (self.is_lost)() {
                outcome.lost = true;
                if !matches!(next, Some((_, Step::Kill | Step::GiveUp))) {
                    next = Some((Instant::now(), Step::Terminate));
                }
            }
            if let Some((at, step)) = next
                && Instant::now() >= at
            {
                next = self.take(step);
                if next.is_none() {
                    return outcome;
                }
            }
            if outcome.status.is_some() && self.group.is_empty() {
                return outcome;
            }
            let look = if outcome.status.is_some() { LOOK_AT_GROUP } else { LOOK };
            let pause = next.map_or(look, |(at, _)| look.min(at.saturating_duration_since(Instant::now())));
            match events.recv_timeout(pause) {
                Ok(Event::Ended(status)) => {
                    outcome.status = Some(status);
                    next = next.or(Some((Instant::now() + self.grace, Step::Terminate)));
                }
                Ok(Event::Stopped(signal)) => self.stopped(signal),
                Ok(Event::Signal(signal)) => self.signalled(signal),
                // The head of the loop looks.
                Ok(Event::Lost) | Err(RecvTimeoutError::Timeout) => {}
                // The thread that listens to signals never ends.
                Err(RecvTimeoutError::Disconnected) => std::thread::sleep(pause),
            }
        }
    }

    /// Takes a step; gives the one after it.
    fn take(&self, step: Step) -> Option<(Instant, Step)> {
        let (pause, then) = match step {
            Step::Terminate => {
                self.group.terminate();
                (self.grace, Step::Kill)
            }
            Step::Kill => {
                self.group.signal(Signal::KILL);
                (UNKILLABLE, Step::GiveUp)
            }
            Step::GiveUp => return None,
        };
        Some((Instant::now() + pause, then))
    }

    /// Passes a signal on.
    fn signalled(&self, signal: i32) {
        match signal {
            // We went on. If it was long, the head of the loop finds out; what stood still by itself is let be.
            SIGCONT => {}
            SIGTSTP => {
                self.group.signal(Signal::TSTP);
                self.stop_and_go_on();
            }
            other => {
                if let Some(signal) = Signal::from_named_raw(other) {
                    self.group.signal(signal);
                }
            }
        }
    }

    /// The command was stopped. Where there is a terminal, it was stopped at it or by it.
    fn stopped(&self, signal: i32) {
        let Some(terminal) = self.terminal else {
            return; // Whoever did it lets it go on; the lease is kept meanwhile.
        };
        let asks = [SIGTTIN, SIGTTOU].contains(&signal);
        if asks && terminal.is_ours() {
            self.go_on();
        } else {
            terminal.take_from(self.group.id());
            self.stop_and_go_on();
        }
    }

    /// Stops this process until it is let go on, and then the group as well; unless the lease was lost meanwhile.
    fn stop_and_go_on(&self) {
        Terminal::stop_ourselves();
        if (self.is_lost)() {
            return;
        }
        match self.terminal {
            Some(terminal) if terminal.is_ours() => self.go_on(),
            _ => self.group.signal(Signal::CONT),
        }
    }

    /// Lets the group go on, with the terminal.
    fn go_on(&self) {
        // Without it, the group will ask again.
        let _ = Terminal::give(self.group.id());
        self.group.signal(Signal::CONT);
    }
}
