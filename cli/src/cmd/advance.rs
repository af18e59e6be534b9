//! `fence advance FENCE`: lifts the store's epoch past a fence, for a store that was restored from a backup.

use clap::Args;
use fence_core::Fence;

use crate::args::StoreArgs;
use crate::exit::Exit;
use crate::table::print;

/// Lift the store past a fence, and print the new epoch
///
/// For a store that was restored from a backup: give the largest fence in your data, and every fence from then on is
/// larger.
#[derive(Args, Debug)]
pub struct Advance {
    /// The largest fence in your data
    #[arg(value_parser = fence)]
    fence: Fence,
    #[command(flatten)]
    store: StoreArgs,
}

impl Advance {
    pub fn run(self) -> Result<Exit, String> {
        let epoch = self
            .store
            .open()?
            .advance(self.fence)
            .map_err(|error| error.to_string())?;
        print(&format!("{}\n", epoch.get()))
    }
}

/// Reads FENCE, padded or plain.
pub fn fence(text: &str) -> Result<Fence, String> {
    Fence::from_text(text.as_bytes()).map_err(|error| error.to_string())
}
