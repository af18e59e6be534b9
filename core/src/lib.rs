//! Leases with fences on a SQLite file.

#[cfg(not(unix))]
compile_error!("fence-core stands on POSIX record locks: Linux and macOS are supported");

pub mod clock;
pub mod error;
mod fault;
pub mod fence;
mod keep;
mod key;
mod lease;
mod limits;
mod lock;
mod permit;
mod semaphore;
pub mod shown;
mod sqlite;
mod store;
mod wait;

pub use error::{Error, Result};
pub use fence::{Count, Epoch, Fence, FenceError, NotAFence, Padded, Wire};
pub use key::Key;
pub use lease::{Hold, HoldKind, Lease};
pub use limits::{Delay, Limit, Ttl, Wait};
pub use lock::{HeldLease, Lock};
pub use permit::PermitId;
pub use semaphore::{HeldPermit, Semaphore};
pub use store::{AcquireOptions, Holds, Store};
