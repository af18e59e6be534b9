//! Leases with fences for SQLite, as a loadable extension.
//!
//! | entry point | registers |
//! |---|---|
//! | `sqlite3_fence_init` | everything |
//! | `sqlite3_extension_init` | the same; the name that SQLite looks for whatever the file is called |
//! | `sqlite3_fencepure_init` | the pure functions alone, for hosts that let strangers write SQL or replicate statements |
//!
//! All of them answer SQLITE_OK_LOAD_PERMANENTLY: the library stays in the process when the connection that loaded it
//! closes, for other connections may have its functions. (`sqlite3_auto_extension` takes that answer for a failure; load
//! into each connection instead.) Loading twice into one connection changes nothing.
//!
//! A program that has a SQLite of its own can have all of it without loading anything: built with the feature `embedded`
//! this is a Rust library with one function, `register`. See `embedded`.
//!
//! The way of a call, and where each thing has its place:
//!
//! - `entry`: the entry points.
//! - `host`: what the host's SQLite is and offers. It is looked at before anything else runs.
//! - `functions`: the table of all SQL functions and tables.
//! - `register`: how a row of that table becomes a function of a connection, and the barrier that no panic passes.
//! - `value`: the only reader of what SQL passes in. `answer`: what goes back, and errors.
//! - `listing`: how a table lists what there is.
//! - `connection`: what belongs to one connection of the host, and ends with it.
//! - `pure`, `store`, `guard`: the functions themselves.
//!
//! Invariants, each kept at one place: no panic passes into C (`register::barrier`); nothing is allocated for a call or
//! a connection that does not end with it (`register`, `connection`); a value is read as the type that it has, never
//! converted (`value`); a message is set before its code (`answer`).

mod answer;
mod connection;
#[cfg(feature = "embedded")]
mod embedded;
#[cfg(not(feature = "embedded"))]
mod entry;
#[cfg(feature = "fault")]
mod fault;
mod functions;
mod guard;
#[cfg_attr(feature = "embedded", path = "linked.rs")]
mod host;
mod listing;
mod pure;
mod register;
mod store;
mod value;

#[cfg(feature = "embedded")]
pub use embedded::register;
#[cfg(not(feature = "embedded"))]
pub use entry::{sqlite3_extension_init, sqlite3_fence_init, sqlite3_fencepure_init};
