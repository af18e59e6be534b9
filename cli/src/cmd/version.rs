//! `fence version`: the version of this program, of the library in it and of its SQLite.

use clap::Args;

use crate::exit::Exit;
use crate::table::print;

/// Print the version, and that of the SQLite inside
#[derive(Args, Debug)]
pub struct Version {}

impl Version {
    pub fn run(self) -> Result<Exit, String> {
        print(&format!(
            "fence {} (SQLite {})\n",
            env!("CARGO_PKG_VERSION"),
            rusqlite::version()
        ))
    }
}
