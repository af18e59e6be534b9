//! The table `fence_audit`: the inventory of all that a holder can write in the attached databases, one row for each
//! table, or for each fence column of a table that has several.
//!
//! | column | |
//! |---|---|
//! | `schema`, `"table"` | where |
//! | `fence_column` | the guarded column; of a table without a guard one called `fence`, `…_fence` or `…Fence`; else NULL |
//! | `type`, `affinity` | the column's declared type, and what SQLite makes of it |
//! | `guard` | `whole`, `broken` (a trigger is missing, or the table has changed) or `none` |
//! | `mode`, `columns` | the guard's mode; the columns of mode `write` as a JSON array |
//! | `without_fence` | rows that have no fence yet |
//! | `not_a_fence` | rows with something that is no padded fence |
//! | `largest` | the largest fence |
//! | `ahead` | 1 if that is larger than the epoch of the store: the store was restored or lost; NULL without a store |
//! | `verdict` | all of this in a short sentence, and what to do |
//!
//! The rows of a table are counted by one statement that keeps none of them, and only when a column asks for the counts:
//! `where "table" = 'chats'` looks at no other table. The store is neither opened nor created for it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::sync::Arc;

use fence_core::Epoch;
use fence_guard::{Counts, Finding, State, audit};
use rusqlite::Connection;
use rusqlite::types::Null;
use rusqlite::vtab::{
    Context, Filters, IndexInfo, Module, VTab, VTabConfig, VTabConnection, VTabCursor, sqlite3_vtab,
    sqlite3_vtab_cursor,
};

use super::borrowed;
use crate::answer::SqlError;
use crate::connection::HostConnection;
use crate::register::barrier;

/// The table's name, and the place that a fault of ours is reported at.
const NAME: &str = "fence_audit";

/// Registers the table.
pub(crate) fn register(db: &Connection, name: &'static str, connection: Arc<HostConnection>) -> rusqlite::Result<()> {
    const MODULE: Module<'_, Audit> = Module::eponymous_only_module();
    db.create_module(name, &MODULE, Some(connection))
}

/// A row, with what its table's rows tell once somebody asked.
struct Row {
    finding: Finding,
    told: OnceCell<(Counts, Option<Epoch>)>,
}

impl Row {
    fn told(&self, connection: &HostConnection) -> Result<&(Counts, Option<Epoch>), SqlError> {
        if let Some(told) = self.told.get() {
            return Ok(told);
        }
        let counts = self.finding.counts(&*borrowed(connection)?)?;
        let epoch = match counts.largest {
            Some(_) => connection.epoch()?,
            None => None,
        };
        Ok(self.told.get_or_init(|| (counts, epoch)))
    }
}

#[repr(C)]
struct Audit {
    base: sqlite3_vtab,
    connection: Option<Arc<HostConnection>>,
}

#[repr(C)]
struct Cursor<'vtab> {
    base: sqlite3_vtab_cursor,
    connection: Option<Arc<HostConnection>>,
    rows: std::vec::IntoIter<Finding>,
    row: Option<Row>,
    rowid: i64,
    table: PhantomData<&'vtab Audit>,
}

// SAFETY: `base` is the first field of a `repr(C)` struct.
unsafe impl<'vtab> VTab<'vtab> for Audit {
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
        let columns = c"create table x(schema, \"table\", fence_column, type, affinity, guard, mode, columns, \
                        without_fence, not_a_fence, largest, ahead, verdict)";
        Ok((
            Cow::Borrowed(columns),
            Self {
                base: sqlite3_vtab::default(),
                connection: aux.cloned(),
            },
        ))
    }

    fn best_index(&self, info: &mut IndexInfo) -> rusqlite::Result<bool> {
        info.set_estimated_cost(1_000_000.0);
        Ok(true)
    }

    fn open(&'vtab mut self) -> rusqlite::Result<Cursor<'vtab>> {
        Ok(Cursor {
            base: sqlite3_vtab_cursor::default(),
            connection: self.connection.clone(),
            rows: Vec::new().into_iter(),
            row: None,
            rowid: 0,
            table: PhantomData,
        })
    }
}

impl Cursor<'_> {
    fn step(&mut self) {
        let told = OnceCell::new();
        self.row = self.rows.next().map(|finding| Row { finding, told });
        self.rowid += 1;
    }
}

// SAFETY: `base` is the first field of a `repr(C)` struct.
unsafe impl VTabCursor for Cursor<'_> {
    fn filter(&mut self, _: c_int, _: Option<&str>, _: &Filters<'_>) -> rusqlite::Result<()> {
        Ok(barrier(NAME, || {
            let findings = match &self.connection {
                Some(connection) => audit(&*borrowed(connection)?)?,
                None => Vec::new(),
            };
            self.rows = findings.into_iter();
            self.rowid = 0;
            self.step();
            Ok(())
        })?)
    }

    fn next(&mut self) -> rusqlite::Result<()> {
        self.step();
        Ok(())
    }

    fn eof(&self) -> bool {
        self.row.is_none()
    }

    fn column(&self, context: &mut Context, column: c_int) -> rusqlite::Result<()> {
        let (Some(row), Some(connection)) = (&self.row, &self.connection) else {
            return Ok(());
        };
        let finding = &row.finding;
        let told = || barrier(NAME, || row.told(connection));
        match column {
            0 => context.set_result(&finding.schema()),
            1 => context.set_result(&finding.table()),
            2 => context.set_result(&finding.column()),
            3 => context.set_result(&finding.declared()),
            4 => context.set_result(&finding.affinity()),
            5 => context.set_result(&match finding.state() {
                State::Whole => "whole",
                State::Broken => "broken",
                _ => "none",
            }),
            6 => context.set_result(&finding.mode()),
            7 => context.set_result(&finding.columns()),
            8 => context.set_result(&told()?.0.without_fence),
            9 => context.set_result(&told()?.0.not_a_fence),
            10 => context.set_result(&told()?.0.largest.map(|largest| largest.padded().as_str().to_owned())),
            11 => {
                let (counts, epoch) = told()?;
                context.set_result(&counts.is_ahead(*epoch))
            }
            12 => {
                let (counts, epoch) = told()?;
                context.set_result(&finding.verdict(counts, *epoch))
            }
            _ => context.set_result(&Null),
        }
    }

    fn rowid(&self) -> rusqlite::Result<i64> {
        Ok(self.rowid)
    }
}
