//! A host that lives on beside the test: lines in, lines out, and the signals that befall real processes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;

use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};

use crate::{Answer, DEADLINE};

/// A living host. Dropping it kills it.
#[derive(Debug)]
pub struct Process {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: mpsc::Receiver<String>,
}

impl Process {
    /// Starts the command. Its standard error goes to the test's, except where the command itself joins it to its
    /// output.
    ///
    /// # Panics
    ///
    /// When it cannot be started.
    #[track_caller]
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        let stdout = BufReader::new(child.stdout.take().expect("a pipe"));
        let (send, lines) = mpsc::channel();
        std::thread::spawn(move || {
            stdout
                .lines()
                .map_while(Result::ok)
                .try_for_each(|line| send.send(line))
        });
        Self {
            stdin: child.stdin.take(),
            child,
            lines,
        }
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Writes a line to its input.
    ///
    /// # Panics
    ///
    /// When it no longer reads.
    #[track_caller]
    pub fn tell(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().expect("its input is open");
        stdin
            .write_all(format!("{line}\n").as_bytes())
            .expect("it reads its input");
    }

    /// The next line that it prints.
    ///
    /// # Panics
    ///
    /// When there is none at the [`DEADLINE`], or it ended.
    #[track_caller]
    pub fn line(&mut self) -> String {
        match self.lines.recv_timeout(DEADLINE) {
            Ok(line) => line,
            Err(mpsc::RecvTimeoutError::Timeout) => panic!("waited in vain for a line of process {}", self.id()),
            Err(mpsc::RecvTimeoutError::Disconnected) => panic!("process {} ended: {:?}", self.id(), self.child.wait()),
        }
    }

    /// Lets it stand still (SIGSTOP), as a pause for garbage collection or a moved VM does. Returns when it does.
    #[track_caller]
    pub fn stop(&self) {
        self.signal(Signal::STOP);
        let stopped = waitpid(Some(self.pid()), WaitOptions::UNTRACED).expect("a child of ours");
        assert!(
            stopped.is_some_and(|(_, status)| status.stopped()),
            "process {} does not stand still",
            self.id()
        );
    }

    /// Lets it go on after [`stop`](Self::stop) (SIGCONT).
    #[track_caller]
    pub fn go_on(&self) {
        self.signal(Signal::CONT);
    }

    /// Interrupts it (SIGINT), as Ctrl-C does.
    #[track_caller]
    pub fn interrupt(&self) {
        self.signal(Signal::INT);
    }

    /// Asks it to end (SIGTERM) and waits for its end.
    #[track_caller]
    pub fn terminate(&mut self) {
        self.signal(Signal::TERM);
        self.child.wait().expect("a child of ours");
    }

    /// Kills it (SIGKILL) and waits for its end.
    #[track_caller]
    pub fn kill(&mut self) {
        self.child.kill().expect("a child of ours");
        self.child.wait().expect("a child of ours");
    }

    /// Waits until it stands still, which it does by itself.
    #[track_caller]
    pub fn wait_until_stopped(&self) {
        crate::wait_until("the process stands still", || {
            let options = WaitOptions::UNTRACED | WaitOptions::NOHANG;
            let found = waitpid(Some(self.pid()), options).expect("a child of ours");
            found.is_some_and(|(_, status)| {
                assert!(status.stopped(), "process {} has ended", self.id());
                true
            })
        });
    }

    /// Waits for its end, which something else brings about.
    #[track_caller]
    pub fn wait(&mut self) -> std::process::ExitStatus {
        let mut status = None;
        crate::wait_until("the process ends", || {
            status = self.child.try_wait().expect("a child of ours");
            status.is_some()
        });
        status.expect("it has ended")
    }

    /// Ends its input, waits for its end, and gives the lines that it printed and nobody took.
    ///
    /// # Panics
    ///
    /// When it does not end by the [`DEADLINE`].
    #[track_caller]
    pub fn finish(mut self) -> Answer {
        drop(self.stdin.take());
        let mut out = String::new();
        loop {
            match self.lines.recv_timeout(DEADLINE) {
                Ok(line) => out.extend([line.as_str(), "\n"]),
                Err(mpsc::RecvTimeoutError::Disconnected) => break,
                Err(mpsc::RecvTimeoutError::Timeout) => panic!("process {} does not end", self.id()),
            }
        }
        Answer {
            out,
            err: String::new(),
            status: self.child.wait().expect("a child of ours"),
        }
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends it a signal.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("a child of ours");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Already ended is just as good.
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
