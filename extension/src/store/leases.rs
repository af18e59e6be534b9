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

use std::borrow::Cow;
use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::sync::Arc;

use fence_core::{Hold, Holds};
use rusqlite::Connection;
use rusqlite::vtab::{
    Context, Filters, IndexInfo, Module, VTab, VTabConfig, VTabConnection, VTabCursor, sqlite3_vtab,
    sqlite3_vtab_cursor,
};

use crate::answer::SqlError;
use crate::connection::HostConnection;
use crate::register::barrier;

/// The table's name, and the place that a fault of ours is reported at.
const NAME: &str = "fence_leases";

/// Registers the table.
pub(crate) fn register(db: &Connection, name: &'static str, connection: Arc<HostConnection>) -> rusqlite::Result<()> {
    const MODULE: Module<'_, Leases> = Module::eponymous_only_module();
    db.create_module(name, &MODULE, Some(connection))
}

#[repr(C)]
struct Leases {
    base: sqlite3_vtab,
    connection: Option<Arc<HostConnection>>,
}

#[repr(C)]
struct Cursor<'vtab> {
    base: sqlite3_vtab_cursor,
    connection: Option<Arc<HostConnection>>,
    holds: Option<Holds>,
    row: Option<Hold>,
    rowid: i64,
    table: PhantomData<&'vtab Leases>,
}

// SAFETY: `base` is the first field of a `repr(C)` struct.
unsafe impl<'vtab> VTab<'vtab> for Leases {
    type Aux = Arc<HostConnection>;
    type Cursor = Cursor<'vtab>;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&Self::Aux>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> rusqlite::Result<(Cow<'static, CStr>, Self)> {
        db.config(VTabConfig::DirectOnly)?;
        Ok((
            // With types, so that `key = 42` finds the key '42', as the functions do.
            Cow::Borrowed(
                c"create table x(key text, kind text, fence text, permit text, remaining_ms integer, \
                  delay_ms integer, process integer, bound integer)",
            ),
            Self {
                base: sqlite3_vtab::default(),
                connection: aux.cloned(),
            },
        ))
    }

    fn best_index(&self, info: &mut IndexInfo) -> rusqlite::Result<bool> {
        info.set_estimated_cost(1_000.0);
        Ok(true)
    }

    fn open(&'vtab mut self) -> rusqlite::Result<Cursor<'vtab>> {
        Ok(Cursor {
            base: sqlite3_vtab_cursor::default(),
            connection: self.connection.clone(),
            holds: None,
            row: None,
            rowid: 0,
            table: PhantomData,
        })
    }
}

impl Cursor<'_> {
    fn step(&mut self) -> Result<(), SqlError> {
        self.row = self.holds.as_mut().and_then(Iterator::next).transpose()?;
        self.rowid += 1;
        Ok(())
    }
}

// SAFETY: `base` is the first field of a `repr(C)` struct.
unsafe impl VTabCursor for Cursor<'_> {
    fn filter(&mut self, _: c_int, _: Option<&str>, _: &Filters<'_>) -> rusqlite::Result<()> {
        Ok(barrier(NAME, || {
            self.holds = match &self.connection {
                Some(connection) => Some(connection.store()?.holds()?),
                None => None,
            };
            self.rowid = 0;
            self.step()
        })?)
    }

    fn next(&mut self) -> rusqlite::Result<()> {
        Ok(barrier(NAME, || self.step())?)
    }

    fn eof(&self) -> bool {
        self.row.is_none()
    }

    fn column(&self, context: &mut Context, column: c_int) -> rusqlite::Result<()> {
        let Some(hold) = &self.row else { return Ok(()) };
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

    fn rowid(&self) -> rusqlite::Result<i64> {
        Ok(self.rowid)
    }
}
