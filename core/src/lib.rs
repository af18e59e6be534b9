//! Leases with fences on a SQLite file.

pub mod fence;

pub use fence::{Count, Epoch, Fence};
