//! The commands: one file for each, with its arguments as a struct and its `run`, which gives the exit status, or the
//! message of what went wrong.

mod advance;
mod audit;
mod generate;
mod hold;
mod list;
mod release;
mod sql;
mod version;

use clap::Subcommand;

use crate::exit::Exit;

/// What is to be done.
#[derive(Debug, Subcommand)]
pub enum Command {
    Hold(hold::Hold),
    List(list::List),
    Release(release::Release),
    Advance(advance::Advance),
    Audit(audit::Audit),
    Sql(sql::Sql),
    Version(version::Version),
    #[command(hide = true)]
    Generate(generate::Generate),
}

/// Does it; tells what went wrong.
pub fn run(command: Command) -> Exit {
    let (done, trouble) = match command {
        Command::Hold(hold) => (hold.run(), Exit::HOLD_TROUBLE),
        Command::List(list) => (list.run(), Exit::TROUBLE),
        Command::Release(release) => (release.run(), Exit::TROUBLE),
        Command::Advance(advance) => (advance.run(), Exit::TROUBLE),
        Command::Audit(audit) => (audit.run(), Exit::TROUBLE),
        Command::Sql(sql) => (sql.run(), Exit::TROUBLE),
        Command::Version(version) => (version.run(), Exit::TROUBLE),
        Command::Generate(generate) => (generate.run(), Exit::TROUBLE),
    };
    done.unwrap_or_else(|message| {
        eprintln!("{message}");
        trouble
    })
}
