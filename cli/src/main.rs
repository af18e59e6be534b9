//! `fence`: a lease around any command, and the store on the command line.
//!
//! | where | idea |
//! |---|---|
//! | `args.rs` | what may stand on the command line, and how a mistake in it is told |
//! | `exit.rs` | every exit status, in one table |
//! | `cmd/` | one command, one file: its arguments, and `run` |
//! | `hold/` | what `fence hold` stands on: the command's process group, its warden, signals, the terminal |
//! | `sql/` | what `fence sql` stands on: a connection with the functions built in, lines, rows |
//! | `table.rs` | rows for people and for programs |
//!
//! It links a SQLite of its own, so it works on a machine without one.

mod args;
mod cmd;
mod exit;
mod hold;
mod sql;
mod table;

fn main() -> std::process::ExitCode {
    match args::parse() {
        Ok(command) => cmd::run(command),
        Err(status) => status,
    }
    .into()
}
