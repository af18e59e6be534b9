//! The check side: what is written keeps the largest fence that it has seen and turns away anything smaller.
//!
//! | file | |
//! |---|---|
//! | `install.rs` | `fence_guard`, `fence_unguard` |
//! | `triggers.rs` | the SQL of a guard, as text |
//! | `standing.rs` | a guard as it stands in a schema |
//! | `memory.rs` | the table that remembers the fences of deleted rows |
//! | `schema.rs`, `key.rs` | a table: its columns, and the keys by which one row takes another's place |
//! | `affinity.rs` | which columns keep a fence's digits |
//! | `ddl.rs`, `expression.rs`, `sql.rs` | reading the CREATE statements, expressions and words of SQL |
//! | `admit.rs` | `fence_admit` |
//! | `audit.rs` | the table `fence_audit` |
//!
//! All of it works on the caller's own connection and in the caller's transaction. A guard is plain SQL: a program
//! without this library still writes to the table, and is still refused when stale (CHECK-05).

use std::ops::Deref;

use rusqlite::{Connection, ffi};

use crate::answer::SqlError;
use crate::connection::HostConnection;

pub(crate) mod admit;
mod affinity;
pub(crate) mod audit;
mod ddl;
mod expression;
pub(crate) mod install;
mod key;
mod memory;
mod schema;
mod sql;
mod standing;
mod triggers;

/// The caller's connection, borrowed for one call. Dropping it closes nothing.
fn borrowed(connection: &HostConnection) -> Result<impl Deref<Target = Connection>, SqlError> {
    // SAFETY: the connection is open while a function of it runs, and `from_handle` does not own it.
    let db = unsafe { Connection::from_handle(connection.db()) };
    db.map(Box::new).map_err(failed("cannot use this connection"))
}

/// Names for a message: the first few.
fn listed(names: &[&str]) -> String {
    let (first, rest) = names.split_at(names.len().min(12));
    let more = if rest.is_empty() { "" } else { ", …" };
    format!("{}{more}", first.join(", "))
}

/// An error of SQLite, with what was being done. The code stays SQLite's.
fn failed(doing: impl Into<String>) -> impl Fn(rusqlite::Error) -> SqlError {
    let doing = doing.into();
    move |error| {
        let code = error
            .sqlite_error()
            .map_or(ffi::SQLITE_ERROR, |error| error.extended_code);
        SqlError::new(code, format!("fence: {doing}: {error}"))
    }
}
