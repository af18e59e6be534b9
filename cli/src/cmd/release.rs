//! `fence release KEY FENCE`: ends a lease or a permit of whoever holds it.

use clap::Args;
use fence_core::{Fence, PermitId};

use super::advance::fence;
use crate::args::StoreArgs;
use crate::exit::Exit;

/// End a lease or a permit; status 1 if it was over already
///
/// Whoever knows the key and the fence may release a lease, from any process; `fence list` shows both. The holder finds
/// out at its next renewal.
#[derive(Args, Debug)]
pub struct Release {
    /// The key
    key: String,
    /// The fence of its lease, or the id of a permit
    #[arg(value_name = "FENCE", value_parser = name)]
    name: Name,
    #[command(flatten)]
    store: StoreArgs,
}

/// What is held, besides the key.
#[derive(Clone, Copy, Debug)]
enum Name {
    Lease(Fence),
    Permit(PermitId),
}

impl Release {
    pub fn run(self) -> Result<Exit, String> {
        let store = self.store.open_existing()?;
        let released = match self.name {
            Name::Lease(fence) => store.release(&self.key, fence),
            Name::Permit(permit) => store.release_permit(&self.key, permit),
        };
        if released.map_err(|error| error.to_string())? {
            return Ok(Exit::DONE);
        }
        let key = fence_core::shown::text(self.key.as_bytes());
        match self.name {
            Name::Lease(fence) => {
                eprintln!("fence: the lease of {key} with fence {fence} is over: nothing was released")
            }
            Name::Permit(permit) => eprintln!("fence: the permit {permit} of {key} is over: nothing was released"),
        }
        Ok(Exit::NO)
    }
}

/// Reads FENCE. A permit's id is told from a fence by its first letter.
fn name(text: &str) -> Result<Name, String> {
    if text.starts_with('p') {
        text.parse()
            .map(Name::Permit)
            .map_err(|error: fence_core::Error| error.to_string())
    } else {
        fence(text).map(Name::Lease)
    }
}
