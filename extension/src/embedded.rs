//! The functions built into a program, in place of a library that is loaded.
//!
//! The program links a SQLite through rusqlite's `bundled`; `host` is `linked.rs` then, and there are no entry points. All
//! the rest is the same code. Cargo gives rusqlite the features of every package of one command, and `bundled` does not
//! go together with `loadable_extension`: so this is another package with the same sources, `cli/functions`, in the
//! workspace of what links its own SQLite.

use rusqlite::Connection;

use crate::host::Guest;
use crate::register::{self, Scope, barrier};

/// Gives this connection every function and table.
///
/// # Errors
///
/// A message, when SQLite refuses one of them.
pub fn register(db: &Connection) -> Result<(), String> {
    barrier("the registration", || {
        // SAFETY: the connection is open, and borrowed for as long as this runs.
        unsafe { register::register(db.handle(), Scope::Everything, &Guest) }
    })
    .map_err(|error| error.message)
}
