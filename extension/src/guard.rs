//! The functions of the check side, which are made of the crate `fence-guard`.
//!
//! | file | SQL |
//! |---|---|
//! | `calls.rs` | `fence_guard`, `fence_unguard`, `fence_admit` |
//! | `audit.rs` | the table `fence_audit` |
//!
//! All of it works on the caller's own connection and in the caller's transaction.

use std::ops::Deref;

use rusqlite::{Connection, Error};

use crate::answer::SqlError;
use crate::connection::HostConnection;

pub(crate) mod audit;
pub(crate) mod calls;

/// The caller's connection, borrowed for one call. Dropping it closes nothing.
fn borrowed(connection: &HostConnection) -> Result<impl Deref<Target = Connection>, SqlError> {
    // SAFETY: the connection is open while a function of it runs, and `from_handle` does not own it.
    let db = unsafe { Connection::from_handle(connection.db()) };
    db.map(Box::new)
        .map_err(|error: Error| SqlError::error(format!("fence: this connection cannot be used: {error}")))
}
