//! The sqlite3 shell with the extension loaded.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::{Answer, Process, host};

/// A sqlite3 shell that is to be started: on which database, in which folder, with what environment.
#[derive(Clone, Debug)]
pub struct Shell {
    program: PathBuf,
    database: PathBuf,
    library: Option<PathBuf>,
    folder: Option<PathBuf>,
    environment: Vec<(OsString, OsString)>,
}

impl Shell {
    /// A shell with the extension loaded, on a database in memory.
    #[allow(clippy::new_without_default)] // A shell is chosen step by step; there is nothing to derive.
    pub fn new() -> Self {
        Self::plain().with_library(crate::library())
    }

    /// A shell without the extension, on a database in memory.
    pub fn plain() -> Self {
        Self {
            program: Self::path().into(),
            database: ":memory:".into(),
            library: None,
            folder: None,
            environment: Vec::new(),
        }
    }

    /// On this database.
    pub fn on(mut self, database: impl AsRef<Path>) -> Self {
        self.database = database.as_ref().into();
        self
    }

    /// With this library in place of the built one, for copies under another name.
    pub fn with_library(mut self, library: impl AsRef<Path>) -> Self {
        self.library = Some(library.as_ref().into());
        self
    }

    /// Another build of the shell than the system's.
    pub fn of(mut self, program: impl AsRef<Path>) -> Self {
        self.program = program.as_ref().into();
        self
    }

    /// In this folder.
    pub fn within(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().into());
        self
    }

    /// With this variable in its environment.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.environment.push((name.as_ref().into(), value.as_ref().into()));
        self
    }

    /// Runs these statements and dot-commands to their end. The shell goes on after an error, and then ends with 1.
    #[track_caller]
    pub fn run(&self, sql: &str) -> Answer {
        host::run(self.arguments(host::command(&self.program)), sql)
    }

    /// Starts a shell that lives on and is driven step by step.
    #[track_caller]
    pub fn start(&self) -> Session {
        // One stream for rows and errors, so that an answer has all its lines in order.
        let mut joined = host::command("sh");
        joined.args(["-c", "exec \"$0\" \"$@\" 2>&1"]).arg(&self.program);
        Session::of(self.arguments(joined), ".print {}")
    }

    /// Where the system's shell is.
    pub fn path() -> &'static Path {
        static PATH: OnceLock<PathBuf> = OnceLock::new();
        PATH.get_or_init(|| host::find("sqlite3"))
    }

    fn arguments(&self, mut command: Command) -> Command {
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(folder) = &self.folder {
            command.current_dir(folder);
        }
        // /dev/null in place of the user's ~/.sqliterc.
        command.args(["-batch", "-init", "/dev/null"]);
        if let Some(library) = &self.library {
            command.arg("-cmd").arg(format!(".load \"{}\"", library.display()));
        }
        command.arg(&self.database);
        command
    }
}

/// A living shell. Every step is asked and answered; an answer has the rows and the errors, as the shell prints them.
#[derive(Debug)]
pub struct Session {
    process: Process,
    /// What lets it print the line in place of the braces.
    print: &'static str,
    asked: u64,
    answered: u64,
}

impl Session {
    /// `fence sql` on this database, in this folder: the shell of those who have no other.
    #[track_caller]
    pub fn of_program(database: impl AsRef<Path>, folder: impl AsRef<Path>) -> Self {
        let mut joined = host::command("sh");
        joined.args(["-c", "exec \"$0\" sql --keep-going \"$@\" 2>&1"]);
        joined.arg(crate::program()).arg(database.as_ref()).current_dir(folder);
        Self::of(joined, "select '{}';")
    }

    #[track_caller]
    fn of(command: Command, print: &'static str) -> Self {
        Self {
            process: Process::start(command),
            print,
            asked: 0,
            answered: 0,
        }
    }

    /// Runs one statement or dot-command and gives all that it printed, without the last line's end.
    #[track_caller]
    pub fn ask(&mut self, sql: &str) -> String {
        self.tell(sql);
        self.answer()
    }

    /// Hands over one statement or dot-command without waiting for the answer: it may have to wait for another
    /// process, or the shell stands still.
    #[track_caller]
    pub fn tell(&mut self, sql: &str) {
        let end = if sql.starts_with('.') || sql.trim_end().ends_with(';') {
            ""
        } else {
            ";"
        };
        self.asked += 1;
        let print = self.print.replace("{}", &end_of_answer(self.asked));
        self.process.tell(&format!("{sql}{end}\n{print}"));
    }

    /// The answer to the earliest [`tell`](Self::tell) that has none yet.
    #[track_caller]
    pub fn answer(&mut self) -> String {
        self.answered += 1;
        let end = end_of_answer(self.answered);
        let mut lines = Vec::new();
        loop {
            let line = self.process.line();
            if line == end {
                return lines.join("\n");
            }
            lines.push(line);
        }
    }

    /// The process, for its id and for signals.
    pub fn process(&mut self) -> &mut Process {
        &mut self.process
    }

    /// Closes the shell as the end of its input does, and gives how it ended.
    #[track_caller]
    pub fn finish(self) -> Answer {
        self.process.finish()
    }
}

/// The line that the shell prints behind its `n`th answer.
fn end_of_answer(n: u64) -> String {
    format!("-- end of answer {n}")
}
