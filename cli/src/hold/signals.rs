//! The signals that the holder passes on to its command.
//!
//! What was ignored when the holder began (`nohup`) stays ignored, here and in the command.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::mpsc::Sender;
use std::{io, mem, ptr, thread};

use libc::{SIGALRM, SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGWINCH};
use signal_hook::iterator::{Handle, Signals};

use super::watch::Event;

/// Those that end a process that does nothing about them.
const ENDING: [i32; 7] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2];
/// Those that do not.
const OTHER: [i32; 2] = [SIGCONT, SIGWINCH];

/// Listens to signals until the process ends.
pub struct Listener {
    handle: Handle,
    /// The first signal of [`ENDING`] that came; 0 before.
    first: Arc<AtomicI32>,
}

impl Listener {
    /// Listens, and tells every signal as an event.
    pub fn start(events: Sender<Event>) -> io::Result<Self> {
        let mut signals = Signals::new(ENDING.into_iter().chain(OTHER).filter(|&signal| !is_ignored(signal)))?;
        let listener = Self {
            handle: signals.handle(),
            first: Arc::new(AtomicI32::new(0)),
        };
        let first = Arc::clone(&listener.first);
        thread::Builder::new().name("fence-signals".to_owned()).spawn(move || {
            for signal in signals.forever() {
                if ENDING.contains(&signal) {
                    let _ = first.compare_exchange(0, signal, Ordering::SeqCst, Ordering::SeqCst);
                }
                if events.send(Event::Signal(signal)).is_err() {
                    return;
                }
            }
        })?;
        Ok(listener)
    }

    /// The signal that ends the wait for a key, if one came.
    pub fn ending(&self) -> Option<i32> {
        Some(self.first.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
    }

    /// Listens to SIGTSTP as well, which stops a holder by itself as long as it has no command.
    pub fn listen_to_stops(&self) -> io::Result<()> {
        if is_ignored(SIGTSTP) {
            return Ok(());
        }
        self.handle.add_signal(SIGTSTP)
    }
}

/// Whether this process was started with the signal ignored.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: the struct is plain data, and a null action changes nothing.
    unsafe {
        let mut action: libc::sigaction = mem::zeroed();
        libc::sigaction(signal, ptr::null(), &raw mut action) == 0 && action.sa_sigaction == libc::SIG_IGN
    }
}
