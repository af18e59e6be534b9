//! `fence generate`: the manual page and the completions, as the build puts them beside the program. Not shown in the
//! help: who installs `fence` has them.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::args::Line;
use crate::exit::Exit;

/// Write the manual pages and the completions of all shells into a folder
#[derive(Args, Debug)]
pub struct Generate {
    /// The folder; made if need be
    folder: PathBuf,
}

impl Generate {
    pub fn run(self) -> Result<Exit, String> {
        self.write().map(|()| Exit::DONE).map_err(|error| {
            format!(
                "fence: writing into {:?} failed: {error}: see that it is a folder",
                self.folder
            )
        })
    }

    fn write(&self) -> std::io::Result<()> {
        let completions = self.folder.join("completions");
        std::fs::create_dir_all(&completions)?;
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            clap_complete::generate_to(shell, &mut Line::command(), "fence", &completions)?;
        }
        let manual = self.folder.join("man");
        std::fs::create_dir_all(&manual)?;
        clap_mangen::generate_to(Line::command(), manual)
    }
}
