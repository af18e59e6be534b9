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
//! | `ok` | 1 if there is nothing to do: a whole guard, rows with fences, a store that is not behind; 0 if there is; NULL without a fence column |
//! | `verdict` | all of this in a short sentence, and what to do |
//!
//! The rows of a table are counted by one statement that keeps none of them, and only when a column asks for the counts:
//! `where "table" = 'chats'` looks at no other table. The store is neither opened nor created for it.

use std::cell::OnceCell;
use std::ffi::{CStr, c_int};
use std::sync::Arc;

use fence_core::Epoch;
use fence_guard::{Counts, Finding, State, audit};
use rusqlite::types::Null;
use rusqlite::vtab::Context;

use super::borrowed;
use crate::answer::SqlError;
use crate::connection::HostConnection;
use crate::listing::Listing;

/// The table.
pub(crate) struct Audit;

/// A row, with what its table's rows tell once somebody asked.
pub(crate) struct Row {
    finding: Finding,
    told: OnceCell<(Counts, Option<Epoch>)>,
    connection: Arc<HostConnection>,
}

impl Row {
    fn told(&self) -> Result<&(Counts, Option<Epoch>), SqlError> {
        if let Some(told) = self.told.get() {
            return Ok(told);
        }
        let counts = self.finding.counts(&*borrowed(&self.connection)?)?;
        let epoch = match counts.largest {
            Some(_) => self.connection.epoch()?,
            None => None,
        };
        Ok(self.told.get_or_init(|| (counts, epoch)))
    }
}

/// The rows, made of what was found.
pub(crate) struct Rows {
    found: std::vec::IntoIter<Finding>,
    connection: Arc<HostConnection>,
}

impl Iterator for Rows {
    type Item = Result<Row, SqlError>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(Ok(Row {
            finding: self.found.next()?,
            told: OnceCell::new(),
            connection: self.connection.clone(),
        }))
    }
}

impl Listing for Audit {
    const COLUMNS: &'static CStr = c"create table x(schema, \"table\", fence_column, type, affinity, guard, mode, \
                                     columns, without_fence, not_a_fence, largest, ahead, ok, verdict)";
    const COST: f64 = 1_000_000.0;
    type Row = Row;
    type Rows = Rows;

    fn rows(connection: &Arc<HostConnection>) -> Result<Rows, SqlError> {
        Ok(Rows {
            found: audit(&*borrowed(connection)?)?.into_iter(),
            connection: connection.clone(),
        })
    }

    fn show(row: &Row, column: c_int, context: &mut Context) -> rusqlite::Result<()> {
        let finding = &row.finding;
        match column {
            0 => return context.set_result(&finding.schema()),
            1 => return context.set_result(&finding.table()),
            2 => return context.set_result(&finding.column()),
            3 => return context.set_result(&finding.declared()),
            4 => return context.set_result(&finding.affinity()),
            5 => {
                return context.set_result(&match finding.state() {
                    State::Whole => "whole",
                    State::Broken => "broken",
                    _ => "none",
                });
            }
            6 => return context.set_result(&finding.mode()),
            7 => return context.set_result(&finding.columns()),
            _ => {}
        }
        let (counts, epoch) = row.told()?;
        match column {
            8 => context.set_result(&counts.without_fence),
            9 => context.set_result(&counts.not_a_fence),
            10 => context.set_result(&counts.largest.map(|largest| largest.padded().as_str().to_owned())),
            11 => context.set_result(&counts.is_ahead(*epoch)),
            12 => context.set_result(&finding.verdict(counts, *epoch).ok),
            13 => context.set_result(&finding.verdict(counts, *epoch).says),
            _ => context.set_result(&Null),
        }
    }
}
