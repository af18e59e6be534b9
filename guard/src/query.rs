//! Asking the caller's database: one way for all files here, and one form of the error.

use std::ffi::c_int;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, ffi, params_from_iter};

/// What was refused or went wrong: the message for people, SQLite's result code for programs.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    code: c_int,
    message: String,
}

/// What this crate's functions give.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An argument, or something in the schema or in the rows, does not do.
    #[cold]
    pub(crate) fn refused(message: impl Into<String>) -> Self {
        Self {
            code: ffi::SQLITE_ERROR,
            message: message.into(),
        }
    }

    /// SQLite's result code, extended: SQLITE_ERROR for what was refused here.
    pub fn code(&self) -> c_int {
        self.code
    }
}

/// A row. Its values are read as text: what is asked here are names, words and small numbers.
pub(crate) struct Row(Vec<Option<String>>);

impl Row {
    /// A value, if it is not NULL.
    pub(crate) fn optional(&self, column: usize) -> Option<&str> {
        self.0.get(column)?.as_deref()
    }

    /// A value; NULL is ''.
    pub(crate) fn text(&self, column: usize) -> String {
        self.optional(column).unwrap_or_default().to_owned()
    }

    /// A number; what is none is 0.
    pub(crate) fn number(&self, column: usize) -> i64 {
        self.optional(column).and_then(|text| text.parse().ok()).unwrap_or(0)
    }
}

/// All rows of a query. `doing` is how its error begins: 'cannot …'.
pub(crate) fn rows(db: &Connection, doing: &str, sql: &str, parameters: &[&str]) -> Result<Vec<Row>> {
    read(db, sql, parameters).map_err(|error| failed(doing, &error))
}

/// The first value of a query that gives one row, as a number.
pub(crate) fn first_number(db: &Connection, doing: &str, sql: &str, parameters: &[&str]) -> Result<i64> {
    let rows = rows(db, doing, sql, parameters)?;
    Ok(rows.first().map_or(0, |row| row.number(0)))
}

/// Runs statements.
pub(crate) fn run(db: &Connection, doing: &str, sql: &str) -> Result<()> {
    db.execute_batch(sql).map_err(|error| failed(doing, &error))
}

/// Lets SQLite compile a statement.
pub(crate) fn compile(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare(sql).map(|_| ())
}

/// An error of SQLite, with what was being done. The code stays SQLite's.
#[cold]
pub(crate) fn failed(doing: &str, error: &rusqlite::Error) -> Error {
    let code = error
        .sqlite_error()
        .map_or(ffi::SQLITE_ERROR, |error| error.extended_code);
    Error {
        code,
        message: format!("fence: {doing}: {error}"),
    }
}

fn read(db: &Connection, sql: &str, parameters: &[&str]) -> rusqlite::Result<Vec<Row>> {
    let mut statement = db.prepare(sql)?;
    let columns = statement.column_count();
    let mut found = statement.query(params_from_iter(parameters))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let mut values = Vec::with_capacity(columns);
        for column in 0..columns {
            values.push(match row.get_ref(column)? {
                ValueRef::Null => None,
                ValueRef::Integer(number) => Some(number.to_string()),
                ValueRef::Real(number) => Some(number.to_string()),
                ValueRef::Text(bytes) | ValueRef::Blob(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
            });
        }
        rows.push(Row(values));
    }
    Ok(rows)
}
