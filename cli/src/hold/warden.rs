//! The warden: a process that waits for the holder's end, and then kills the command's group.
//!
//! A holder that is killed by SIGKILL cannot end its command, so somebody else must. The warden reads from a pipe that
//! the holder alone can write to: the system closes it when the holder dies, however it dies. What it reads before that
//! is the number of the group to kill, and at a good end a 0.
//!
//! The command writes that number itself, between its fork and its exec: so there is no moment in which a command runs
//! that the warden does not know. Until its exec it has the pipe open as well; the warden sees the end only behind the
//! number.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;

use rustix::process::{Pid, Signal, WaitOptions, kill_process_group, setsid, waitpid};

/// A living warden. It waits for [`Warden::dismiss`], or for this process's end.
pub struct Warden {
    pid: Pid,
    pipe: PipeWriter,
}

impl Warden {
    /// Starts it.
    ///
    /// # Safety
    ///
    /// There is no other thread yet: the new process has only this one, and would wait forever for a mutex that another
    /// one holds.
    pub unsafe fn start() -> io::Result<Self> {
        let (reader, pipe) = io::pipe()?;
        // SAFETY: the caller's promise.
        match unsafe { libc::fork() } {
            0 => {
                drop(pipe);
                guard(reader)
            }
            pid => match Pid::from_raw(pid) {
                Some(pid) if pid.as_raw_nonzero().get() > 0 => Ok(Self { pid, pipe }),
                _ => Err(io::Error::last_os_error()),
            },
        }
    }

    /// Where the command writes its number. For the command alone, between fork and exec.
    pub fn pipe(&self) -> io::Result<PipeWriter> {
        self.pipe.try_clone()
    }

    /// Lets it go: the group has ended.
    pub fn dismiss(mut self) {
        // One that has died already is gone as well.
        let _ = self.pipe.write_all(&0_i32.to_ne_bytes());
        let _ = waitpid(Some(self.pid), WaitOptions::empty());
    }
}

/// What the warden does.
fn guard(mut pipe: PipeReader) -> ! {
    stand_aside();
    let mut group = None;
    let mut number = [0; 4];
    while pipe.read_exact(&mut number).is_ok() {
        group = Pid::from_raw(i32::from_ne_bytes(number));
        if group.is_none() {
            exit(); // Dismissed.
        }
    }
    if let Some(group) = group {
        // It may have ended by itself.
        let _ = kill_process_group(group, Signal::KILL);
    }
    exit()
}

/// Leaves the holder's group, terminal, folder and streams: no signal of theirs is for the warden, and nobody waits for
/// its end in order to read theirs.
fn stand_aside() {
    // None of these can do harm by failing.
    let _ = setsid();
    let _ = std::env::set_current_dir("/");
    if let Ok(null) = std::fs::File::options().read(true).write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdin(null.as_fd());
        let _ = rustix::stdio::dup2_stdout(null.as_fd());
        let _ = rustix::stdio::dup2_stderr(null.as_fd());
    }
    // SAFETY: a set of signals is plain data, which the first call fills; nobody else uses it.
    unsafe {
        let mut all = std::mem::zeroed();
        libc::sigfillset(&raw mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const all, std::ptr::null_mut());
    }
}

/// Ends this process without what the holder has to do at its own end.
fn exit() -> ! {
    // SAFETY: it does not return.
    unsafe { libc::_exit(0) }
}
