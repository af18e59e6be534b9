//! The table `fence_leases`: every live lease and permit, and every key in delay. For people and scripts; a program never
//! takes *its* fence from here.
//!
//! | column | |
//! |---|---|
//! | `key` | the key |
//! | `kind` | `lease`, `permit` or `delay` (nobody holds it; a lease ended without release and its lock delay runs) |
//! | `fence` | wire text; of a delay, the ended lease's; NULL of a permit |
//! | `permit` | the permit's id; NULL of a lease |
//! | `remaining_ms` | for how many milliseconds more |
//! | `delay_ms` | for how many the key stays closed if the lease ends without release |
//! | `process` | the id of the process that asked for it, as it saw itself |
//! | `bound` | 1 if it ends with that process |
//!
//! Rows are copied from kv.db a page at a time: a listing that is left open holds no transaction there.

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use fence_core::{Hold, Holds};
use rusqlite::vtab::Context;

use crate::answer::SqlError;
use crate::connection::HostConnection;
use crate::listing::Listing;

/// The table.
pub(crate) struct Leases;

/// The holds, with our errors for the store's.
pub(crate) struct Rows(Holds);

impl Iterator for Rows {
    type Item = Result<Hold, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.0.next()?.map_err(SqlError::from))
    }
}

impl Listing for Leases {
    // With types, so that `key = 42` finds the key '42', as the functions do.
    const COLUMNS: &'static CStr = c"create table x(key text, kind text, fence text, permit text, \
                                     remaining_ms integer, delay_ms integer, process integer, bound integer)";
    const COST: f64 = 1_000.0;
    type Row = Hold;
    type Rows = Rows;

    fn rows(connection: &Arc<HostConnection>) -> Result<Rows, SqlError> {
        Ok(Rows(connection.store()?.holds()?))
    }

    fn show(hold: &Hold, column: c_int, context: &mut Context) -> rusqlite::Result<()> {
        match column {
            0 => context.set_result(&hold.key),
            1 => context.set_result(&hold.kind.as_str()),
            2 => context.set_result(&hold.fence.map(|fence| fence.to_string())),
            3 => context.set_result(&hold.permit.map(|permit| permit.to_string())),
            4 => context.set_result(&hold.remaining_ms),
            5 => context.set_result(&hold.delay_ms),
            6 => context.set_result(&hold.process),
            _ => context.set_result(&hold.bound),
        }
    }
}
