//! `fence sql`: a prompt, or a runner of scripts, with the functions built in. For machines without a sqlite3 shell.

use std::io::{IsTerminal, stdin, stdout};
use std::path::PathBuf;

use clap::Args;
use rusqlite::{Connection, OpenFlags};
use signal_hook::iterator::Signals;

use crate::exit::Exit;
use crate::sql::lines::{Line, Lines};
use crate::sql::open;
use crate::sql::run::{Ran, is_complete, run};

/// Run SQL with the functions built in, from a prompt or a script
///
/// Without SQL it reads statements: from a person at a terminal, who is shown a prompt, or from the standard input, up to
/// the first that fails. Rows are printed as the sqlite3 shell does, values with | between them.
#[derive(Args, Debug)]
pub struct Sql {
    /// The database; made if need be, in memory if none is named
    database: Option<PathBuf>,
    /// Statements to run in place of reading some
    sql: Option<String>,
    /// Go on after a statement that fails, and end with status 1
    #[arg(short, long)]
    keep_going: bool,
    /// The store's file; without it the one that FENCE_STORE names, else kv.db beside the database
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
}

/// The prompts: of a statement's first line, and of its further ones.
const PROMPTS: [&str; 2] = ["fence> ", "  ...> "];

impl Sql {
    pub fn run(self) -> Result<Exit, String> {
        // SAFETY: nothing has started a thread yet.
        let db = unsafe { open(self.database.as_deref(), self.store.as_deref(), OpenFlags::default()) }?;
        if let Some(sql) = &self.sql {
            return Ok(match run(&db, sql) {
                Ran::All | Ran::Unread => Exit::DONE,
                Ran::Failed(message) => {
                    eprintln!("fence: {message}");
                    Exit::NO
                }
            });
        }
        if stdin().is_terminal() && stdout().is_terminal() {
            interrupt_on_ctrl_c(&db)?;
            println!("Statements end with ; and .quit ends it all.");
            read(&db, Lines::of_terminal()?, true, false)
        } else {
            read(&db, Lines::of_stdin(), self.keep_going, true)
        }
    }
}

/// Reads statements and runs them. Of a script, errors name the line in which their statement began.
fn read(db: &Connection, mut lines: Lines, keep_going: bool, is_script: bool) -> Result<Exit, String> {
    let mut exit = Exit::DONE;
    let mut text = String::new();
    let (mut number, mut began) = (0, 1);
    loop {
        let line = match lines.next(PROMPTS[usize::from(!text.is_empty())])? {
            Line::Text(line) => Some(line),
            Line::Dropped => {
                text.clear();
                continue;
            }
            Line::End => None,
        };
        number += 1;
        if text.is_empty() {
            began = number;
        }
        let at_end = line.is_none();
        let failed = match line {
            Some(line) if text.is_empty() && line.trim().is_empty() => None,
            Some(line) if text.is_empty() && [".quit", ".exit"].contains(&line.trim()) => return Ok(exit),
            Some(line) if text.is_empty() && line.starts_with('.') => Some(unknown(line.trim())),
            line => {
                if let Some(line) = line {
                    text.push_str(&line);
                    text.push('\n');
                }
                if !at_end && !is_complete(&text) {
                    continue;
                }
                match run(db, &std::mem::take(&mut text)) {
                    Ran::All => None,
                    Ran::Failed(message) => Some(message),
                    Ran::Unread => return Ok(exit),
                }
            }
        };
        if let Some(message) = failed {
            if is_script {
                eprintln!("fence: line {began}: {message}");
                exit = Exit::NO;
            } else {
                eprintln!("fence: {message}");
            }
            if !keep_going {
                return Ok(exit);
            }
        }
        if at_end {
            return Ok(exit);
        }
    }
}

/// The message about a command of the sqlite3 shell.
fn unknown(command: &str) -> String {
    let command = fence_core::shown::text(command.as_bytes());
    format!("{command} is a command of another shell: leave it out; the functions are built in, .quit ends it all")
}

/// Lets Ctrl-C end the statement that runs, and not the program.
fn interrupt_on_ctrl_c(db: &Connection) -> Result<(), String> {
    let handle = db.get_interrupt_handle();
    let listen = || -> std::io::Result<()> {
        let mut signals = Signals::new([libc::SIGINT])?;
        std::thread::Builder::new().spawn(move || signals.forever().for_each(|_| handle.interrupt()))?;
        Ok(())
    };
    listen().map_err(|error| format!("fence: listening to signals failed: {error}: see what the system lacks"))
}
