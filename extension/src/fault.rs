//! Functions that panic on purpose, and say what became of what they own. Built for the tests alone.
//!
//! - `fault_pure()` panics.
//! - `fault_store()` panics as well; `fault_store(n)` answers the error with result code n.
//! - `fault_rows` is a table that panics when it is read.

#![allow(clippy::panic)]

use std::ffi::{CStr, c_int};
use std::sync::Arc;

use rusqlite::vtab::Context;

use crate::answer::{Answer, SqlError};
use crate::connection::HostConnection;
use crate::listing::Listing;
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

/// The table `fault_rows`.
pub(crate) struct Rows;

impl Listing for Rows {
    const COLUMNS: &'static CStr = c"create table x(row)";
    const COST: f64 = 1.0;
    type Row = ();
    type Rows = std::iter::Empty<Result<(), SqlError>>;

    fn rows(_: &Arc<HostConnection>) -> Result<Self::Rows, SqlError> {
        panic!("the test asked for it");
    }

    fn show((): &(), _: c_int, _: &mut Context) -> rusqlite::Result<()> {
        Ok(())
    }
}
