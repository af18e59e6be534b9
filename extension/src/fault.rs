//! Functions that panic on purpose, and say what became of what they own. Built for the tests alone.
//!
//! - `fault_pure()` panics.
//! - `fault_store()` panics as well; `fault_store(n)` answers the error with result code n.
//! - `fault_rows` is a table that panics when it is read.

#![allow(clippy::panic)]

use std::borrow::Cow;
use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::vtab::{
    Context, Filters, IndexInfo, Module, VTab, VTabConfig, VTabConnection, VTabCursor, sqlite3_vtab,
    sqlite3_vtab_cursor,
};

use crate::answer::{Answer, SqlError};
use crate::connection::HostConnection;
use crate::register::barrier;
use crate::value::Args;

pub(crate) fn pure(_: &Args<'_>) -> Result<Answer, SqlError> {
    panic!("the test asked for it");
}

pub(crate) fn store(_: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    if args.len() == 0 {
        panic!("the test asked for {}", "it");
    }
    let code = args.integer(0, "code", 0..=i64::from(c_int::MAX))?;
    Err(SqlError::new(
        code as c_int,
        format!("fence: the test asked for code {code}: expect it"),
    ))
}

pub(crate) fn register_rows(
    db: &Connection,
    name: &'static str,
    connection: Arc<HostConnection>,
) -> rusqlite::Result<()> {
    const MODULE: Module<'_, Rows> = Module::eponymous_only_module();
    db.create_module(name, &MODULE, Some(connection))
}

#[repr(C)]
struct Rows {
    base: sqlite3_vtab,
}

#[repr(C)]
struct Cursor<'vtab> {
    base: sqlite3_vtab_cursor,
    table: PhantomData<&'vtab Rows>,
}

// SAFETY: `base` is the first field of a `repr(C)` struct.
unsafe impl<'vtab> VTab<'vtab> for Rows {
    type Aux = Arc<HostConnection>;
    type Cursor = Cursor<'vtab>;

    fn connect(
        db: &mut VTabConnection,
        _: Option<&Self::Aux>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> rusqlite::Result<(Cow<'static, CStr>, Self)> {
        db.config(VTabConfig::DirectOnly)?;
        Ok((
            Cow::Borrowed(c"create table x(row)"),
            Self {
                base: sqlite3_vtab::default(),
            },
        ))
    }

    fn best_index(&self, _: &mut IndexInfo) -> rusqlite::Result<bool> {
        Ok(true)
    }

    fn open(&'vtab mut self) -> rusqlite::Result<Cursor<'vtab>> {
        Ok(Cursor {
            base: sqlite3_vtab_cursor::default(),
            table: PhantomData,
        })
    }
}

// SAFETY: `base` is the first field of a `repr(C)` struct.
unsafe impl VTabCursor for Cursor<'_> {
    fn filter(&mut self, _: c_int, _: Option<&str>, _: &Filters<'_>) -> rusqlite::Result<()> {
        Ok(barrier("fault_rows", || panic!("the test asked for it"))?)
    }

    fn next(&mut self) -> rusqlite::Result<()> {
        Ok(())
    }

    fn eof(&self) -> bool {
        true
    }

    fn column(&self, _: &mut Context, _: c_int) -> rusqlite::Result<()> {
        Ok(())
    }

    fn rowid(&self) -> rusqlite::Result<i64> {
        Ok(0)
    }
}
