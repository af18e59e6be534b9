//! `fence hold` at a terminal: the line that counts down, and a command that reads, is interrupted, stops and goes on.

mod fence;

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc;

use fence::{fence, start};
use fence_tests::{DEADLINE, folder, host};
use rustix::process::{ioctl_tiocsctty, setsid};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

/// A terminal, and the program that was started at it.
struct Terminal {
    keyboard: File,
    screen: mpsc::Receiver<Vec<u8>>,
    /// What was shown and not looked at yet.
    shown: String,
    child: Child,
}

impl Terminal {
    /// Starts the command at a terminal of its own, in its foreground.
    #[track_caller]
    fn start(mut command: Command) -> Self {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
        grantpt(&ours).expect("a terminal");
        unlockpt(&ours).expect("a terminal");
        let name = ptsname(&ours, Vec::new())
            .expect("a name")
            .into_string()
            .expect("UTF-8");
        let theirs = File::options().read(true).write(true).open(name).expect("a terminal");
        for stream in [Command::stdin, Command::stdout, Command::stderr] {
            stream(&mut command, OwnedFd::from(theirs.try_clone().expect("a descriptor")));
        }
        // SAFETY: system calls alone.
        unsafe {
            command.pre_exec(move || {
                setsid()?;
                Ok(ioctl_tiocsctty(&theirs)?)
            });
        }
        let child = command
            .spawn()
            .unwrap_or_else(|e| panic!("cannot start {command:?}: {e}"));
        let keyboard = File::from(ours);
        let mut screen = keyboard.try_clone().expect("a descriptor");
        let (send, shown) = mpsc::channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // The end of the last program at it is an error to Linux.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                if send.send(bytes[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            keyboard,
            screen: shown,
            shown: String::new(),
            child,
        }
    }

    #[track_caller]
    fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("somebody reads it");
    }

    /// Waits until this is shown; gives what was shown before it.
    #[track_caller]
    fn until(&mut self, text: &str) -> String {
        loop {
            if let Some((before, after)) = self.shown.split_once(text) {
                let (before, after) = (before.to_owned(), after.to_owned());
                self.shown = after;
                return before;
            }
            match self.screen.recv_timeout(DEADLINE) {
                Ok(bytes) => self.shown += &String::from_utf8_lossy(&bytes),
                Err(_) => panic!("waited in vain for '{text}', but: {:?}", self.shown),
            }
        }
    }

    #[track_caller]
    fn ended(mut self) -> ExitStatus {
        // Whoever holds the terminal open has ended when nothing more can be shown.
        while self.screen.recv_timeout(DEADLINE).is_ok() {}
        self.child.wait().expect("a child of ours")
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

#[test]
fn who_waits_sees_who_holds_the_key_and_how_long_it_will_wait() {
    let folder = folder();
    let hold = [
        "hold",
        "k",
        "--ttl",
        "365days",
        "--",
        "sh",
        "-c",
        "echo runs; read line",
    ];
    let mut first = start(&folder, hold);
    assert_eq!(first.line(), "runs");
    let waits = ["hold", "k", "--wait", "100s", "--", "echo", "mine"];
    let mut second = Terminal::start(fence(&folder, waits));
    second.until(&format!(
        "fence: 'k' is held by process {} for 8759 h if it is not renewed; waiting, ",
        first.id()
    ));
    let left = second.until(" s left");
    second.until("waiting, ");
    assert_ne!(second.until(" s left"), left, "it counts down");
    assert!(first.finish().status.code().is_some());
    second.until("\r\u{1b}[K"); // The line is taken away …
    second.until("mine");
    assert!(second.ended().success());
}

#[test]
fn the_command_reads_from_the_terminal_and_is_interrupted_by_it() {
    let folder = folder();
    let command = [
        "hold",
        "k",
        "--",
        "sh",
        "-c",
        "read line; echo \"got $line\"; exec sleep 1000",
    ];
    let mut hold = Terminal::start(fence(&folder, command));
    hold.type_in("something\n");
    hold.until("got something");
    hold.type_in("\u{3}");
    assert_eq!(hold.ended().code(), Some(130));
}

#[test]
fn a_hold_is_a_job_of_the_shell_that_stops_and_goes_on() {
    let folder = folder();
    let mut bash = bash(&folder);
    bash.type_in("fence hold k -- sh -c 'echo ru\"\"ns; read line; echo \"got $line\"; exec sleep 1000'\n");
    bash.until("runs");
    bash.type_in("\u{1a}"); // Ctrl-Z
    bash.until("Stopped");
    bash.type_in("echo a\"\"gain; fg\n");
    bash.until("again");
    bash.type_in("something\n");
    bash.until("got something");
    bash.type_in("\u{3}");
    bash.type_in("echo status \"\"$?\n");
    bash.until("status 130");
    bash.type_in("exit\n");
    bash.ended();
}

#[test]
fn a_hold_that_was_stopped_beyond_its_ttl_ends_its_command_when_it_goes_on() {
    let folder = folder();
    let mut bash = bash(&folder);
    bash.type_in("fence hold k --ttl 3s -- sh -c 'echo ru\"\"ns; exec sleep 1000'\n");
    bash.until("runs");
    bash.type_in("\u{1a}");
    bash.until("Stopped");
    bash.type_in("fence hold k --wait 1h -- echo mi\"\"ne\n");
    bash.until("mine");
    bash.type_in("fg; echo status \"\"$?\n");
    bash.until("status 76");
    bash.type_in("exit\n");
    bash.ended();
}

#[test]
fn in_a_pipeline_the_command_gets_the_terminal_when_it_asks() {
    let folder = folder();
    let mut bash = bash(&folder);
    bash.type_in("fence hold k -- sh -c 'read line </dev/tty; echo \"got $line\"' | cat\n");
    bash.type_in("something\n");
    bash.until("got something");
    bash.type_in("exit\n");
    bash.ended();
}

/// An interactive bash with job control, where `fence` is the program under test.
fn bash(folder: &tempfile::TempDir) -> Terminal {
    let mut command = host::command("bash");
    command.args(["--norc", "--noprofile", "-i"]).current_dir(folder);
    command
        .env("PS1", "$ ")
        .env("TERM", "dumb")
        .env("HISTFILE", "/dev/null");
    let mut bash = Terminal::start(command);
    bash.type_in(&format!(
        "fence() {{ {} \"$@\"; }}; echo rea\"\"dy\n",
        env!("CARGO_BIN_EXE_fence")
    ));
    bash.until("ready");
    bash
}
