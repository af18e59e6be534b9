//! Leases with fences on a SQLite file.

pub mod fence;
pub mod shown;

pub use fence::{Count, Epoch, Fence, FenceError, NotAFence, Padded, Wire};
