//! The command's process group: started, signalled, waited for.

use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::mpsc::Sender;
use std::thread;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, kill_process_group, test_kill_process_group, waitpgid, waitpid,
};

use super::terminal::Terminal;
use super::warden::Warden;
use super::watch::Event;

/// A process group whose first process is the command.
pub struct Group {
    id: Pid,
}

impl Group {
    /// Starts the command in a group of its own that the warden knows, and tells its stops and its end as events.
    pub fn start(
        mut command: Command,
        warden: &Warden,
        terminal: Option<Terminal>,
        events: Sender<Event>,
    ) -> io::Result<Self> {
        // Orphans of the group become this process's children, which then sees them end.
        #[cfg(target_os = "linux")]
        rustix::process::set_child_subreaper(Some(getpid()))?;
        let mut pipe = warden.pipe()?;
        let give = terminal.is_some_and(|terminal| terminal.is_for_the_command());
        command.process_group(0);
        // SAFETY: between fork and exec these are system calls alone; nothing allocates or locks.
        unsafe {
            command.pre_exec(move || {
                let own = getpid();
                pipe.write_all(&own.as_raw_nonzero().get().to_ne_bytes())?;
                // A terminal that went away meanwhile keeps no command from running.
                let _ = give.then(|| Terminal::give(own));
                Ok(())
            });
        }
        let child = command.spawn()?;
        let id = Pid::from_child(&child);
        thread::Builder::new()
            .name("fence-command".to_owned())
            .spawn(move || tell(id, &events))?;
        Ok(Self { id })
    }

    /// Its number, which is the command's as well.
    pub fn id(&self) -> Pid {
        self.id
    }

    /// Sends a signal to everybody in it.
    pub fn signal(&self, signal: Signal) {
        // It fails when nobody is left, or nobody who may be signalled.
        let _ = kill_process_group(self.id, signal);
    }

    /// Tells it to end. Who stands still goes on, in order to do it.
    pub fn terminate(&self) {
        self.signal(Signal::TERM);
        self.signal(Signal::CONT);
    }

    /// Whether nobody is left in it, or nobody who may be signalled. To be asked only after the command itself has ended.
    pub fn is_empty(&self) -> bool {
        // Whoever has ended stays in the group until somebody has asked how.
        while let Ok(Some(_)) = waitpgid(self.id, WaitOptions::NOHANG) {}
        test_kill_process_group(self.id).is_err()
    }
}

/// Tells what happens to the command itself, until it has ended.
fn tell(id: Pid, events: &Sender<Event>) {
    loop {
        let event = match waitpid(Some(id), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => Event::Stopped(status.stopping_signal().unwrap_or_default()),
            Ok(Some((_, status))) => Event::Ended(status),
            Ok(None) | Err(Errno::INTR) => continue,
            Err(_) => return, // Nobody but us asks for it.
        };
        let ended = matches!(event, Event::Ended(_));
        if events.send(event).is_err() || ended {
            return;
        }
    }
}
