//! A table that lists what there is, such as `fence_leases`: no arguments, and read like any other table.
//!
//! What is listed says what its rows are and what stands in their columns; how SQLite asks for them is here, once. Only a
//! statement that the program itself sends may read such a table, not a view or a trigger of a database.

use std::borrow::Cow;
use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::vtab::{
    Context, Filters, IndexInfo, Module, VTab, VTabConfig, VTabConnection, VTabCursor, sqlite3_vtab,
    sqlite3_vtab_cursor,
};

use crate::answer::SqlError;
use crate::connection::HostConnection;
use crate::register::barrier;

/// What a table lists.
pub(crate) trait Listing: Sized + 'static {
    /// The table's columns, as a CREATE TABLE.
    const COLUMNS: &'static CStr;
    /// How many rows SQLite should expect to pay for when it plans a join.
    const COST: f64;
    type Row: 'static;
    type Rows: Iterator<Item = Result<Self::Row, SqlError>> + 'static;

    /// The rows, from the first on.
    fn rows(connection: &Arc<HostConnection>) -> Result<Self::Rows, SqlError>;

    /// Gives SQLite the value of a column, by position.
    fn show(row: &Self::Row, column: c_int, context: &mut Context) -> rusqlite::Result<()>;
}

/// Registers the table of a listing.
pub(crate) fn register<L: Listing>(
    db: &Connection,
    name: &'static str,
    connection: Arc<HostConnection>,
) -> rusqlite::Result<()> {
    db.create_module(name, &Listed::<L>::MODULE, Some((name, connection)))
}

/// The table's name, which is the place that a fault of ours is reported at, and the connection that it belongs to.
type Of = (&'static str, Arc<HostConnection>);

#[repr(C)]
struct Listed<L> {
    base: sqlite3_vtab,
    of: Option<Of>,
    listing: PhantomData<L>,
}

impl<L: Listing> Listed<L> {
    const MODULE: Module<'static, Self> = Module::eponymous_only_module();
}

#[repr(C)]
struct Cursor<'vtab, L: Listing> {
    base: sqlite3_vtab_cursor,
    of: Option<Of>,
    rows: Option<L::Rows>,
    row: Option<L::Row>,
    rowid: i64,
    table: PhantomData<&'vtab Listed<L>>,
}

// SAFETY: `base` is the first field of a `repr(C)` struct.
unsafe impl<'vtab, L: Listing> VTab<'vtab> for Listed<L> {
    type Aux = Of;
    type Cursor = Cursor<'vtab, L>;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&Self::Aux>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> rusqlite::Result<(Cow<'static, CStr>, Self)> {
        db.config(VTabConfig::DirectOnly)?;
        let table = Self {
            base: sqlite3_vtab::default(),
            of: aux.cloned(),
            listing: PhantomData,
        };
        Ok((Cow::Borrowed(L::COLUMNS), table))
    }

    fn best_index(&self, info: &mut IndexInfo) -> rusqlite::Result<bool> {
        info.set_estimated_cost(L::COST);
        Ok(true)
    }

    fn open(&'vtab mut self) -> rusqlite::Result<Cursor<'vtab, L>> {
        Ok(Cursor {
            base: sqlite3_vtab_cursor::default(),
            of: self.of.clone(),
            rows: None,
            row: None,
            rowid: 0,
            table: PhantomData,
        })
    }
}

impl<L: Listing> Cursor<'_, L> {
    fn name(&self) -> &'static str {
        self.of.as_ref().map_or("a table", |(name, _)| name)
    }

    fn step(&mut self) -> Result<(), SqlError> {
        self.row = self.rows.as_mut().and_then(Iterator::next).transpose()?;
        self.rowid += 1;
        Ok(())
    }
}

// SAFETY: `base` is the first field of a `repr(C)` struct.
unsafe impl<L: Listing> VTabCursor for Cursor<'_, L> {
    fn filter(&mut self, _: c_int, _: Option<&str>, _: &Filters<'_>) -> rusqlite::Result<()> {
        Ok(barrier(self.name(), || {
            let rows = self.of.as_ref().map(|(_, connection)| L::rows(connection));
            self.rows = rows.transpose()?;
            self.rowid = 0;
            self.step()
        })?)
    }

    fn next(&mut self) -> rusqlite::Result<()> {
        Ok(barrier(self.name(), || self.step())?)
    }

    fn eof(&self) -> bool {
        self.row.is_none()
    }

    fn column(&self, context: &mut Context, column: c_int) -> rusqlite::Result<()> {
        match &self.row {
            Some(row) => barrier(self.name(), || Ok(L::show(row, column, context)))?,
            None => Ok(()),
        }
    }

    fn rowid(&self) -> rusqlite::Result<i64> {
        Ok(self.rowid)
    }
}
