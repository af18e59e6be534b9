//! The functions of the store: one file for each thing that is held, and what they share.
//!
//! | file | SQL |
//! |---|---|
//! | `choice.rs` | which kv.db a connection uses; `fence_open` |
//! | `lease.rs` | `fence_acquire`, `fence_renew`, `fence_release` |
//! | `several.rs` | `fence_acquire_all`, `fence_renew_all`, `fence_release_all` |
//! | `permit.rs` | `semaphore_acquire`, `semaphore_renew`, `semaphore_release` |
//! | `advance.rs` | `fence_advance` |
//! | `options.rs` | ttl, wait and the options of an acquire, as arguments |
//! | `leases.rs` | the table `fence_leases` |
//! | `as_table.rs` | the acquires as tables, which SQLite calls once |
//!
//! "Somebody holds it" is NULL and "this lease is over" is 0. Trouble with kv.db is an error with SQLite's own code.

pub(crate) mod advance;
pub(crate) mod as_table;
pub(crate) mod choice;
pub(crate) mod lease;
pub(crate) mod leases;
mod options;
pub(crate) mod permit;
pub(crate) mod several;
