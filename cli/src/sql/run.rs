//! Running statements and printing their rows, as the list mode of the sqlite3 shell does: values with `|` between them,
//! NULL as nothing.

use std::ffi::CString;
use std::io::{self, Write};

use rusqlite::fallible_iterator::FallibleIterator;
use rusqlite::types::ValueRef;
use rusqlite::{Batch, Connection, Error, Row, ffi};

/// What became of statements.
pub enum Ran {
    /// All of them were run.
    All,
    /// One failed, and those behind it were not run; what SQLite said.
    Failed(String),
    /// Nobody reads what is printed.
    Unread,
}

/// Whether the text ends with the end of a statement.
pub fn is_complete(text: &str) -> bool {
    let Ok(text) = CString::new(text) else {
        return true; // Let SQLite say what it thinks of a NUL.
    };
    // SAFETY: a C string that lives through the call.
    unsafe { ffi::sqlite3_complete(text.as_ptr()) != 0 }
}

/// Runs the statements one after the other, up to the first that fails.
pub fn run(db: &Connection, text: &str) -> Ran {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let ran = print_rows(db, text, &mut out);
    match (out.flush(), ran) {
        (Ok(()), Ok(())) => Ran::All,
        (Ok(()), Err(Trouble::Statement(error))) => Ran::Failed(message(&error)),
        _ => Ran::Unread,
    }
}

enum Trouble {
    Statement(Error),
    Output,
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Statement(error)
    }
}

impl From<io::Error> for Trouble {
    fn from(_: io::Error) -> Self {
        Self::Output
    }
}

fn print_rows(db: &Connection, text: &str, out: &mut impl Write) -> Result<(), Trouble> {
    let mut statements = Batch::new(db, text);
    while let Some(mut statement) = statements.next()? {
        let columns = statement.column_count();
        // A parameter that nobody binds is NULL.
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            print_row(db, row, columns, out)?;
        }
    }
    Ok(())
}

fn print_row(db: &Connection, row: &Row<'_>, columns: usize, out: &mut impl Write) -> Result<(), Trouble> {
    for column in 0..columns {
        if column > 0 {
            out.write_all(b"|")?;
        }
        match row.get_ref(column)? {
            ValueRef::Null => {}
            ValueRef::Integer(number) => write!(out, "{number}")?,
            ValueRef::Text(text) => out.write_all(text)?,
            ValueRef::Blob(bytes) => out.write_all(bytes)?,
            // As SQLite itself spells it.
            ValueRef::Real(number) => {
                let text: String = db
                    .prepare_cached("select cast(?1 as text)")?
                    .query_row([number], |row| row.get(0))?;
                out.write_all(text.as_bytes())?;
            }
        }
    }
    out.write_all(b"\n")?;
    Ok(())
}

/// What SQLite said, without the `fence: ` of our own functions, which stands in front of every message anyway.
pub fn message(error: &Error) -> String {
    let said = match error {
        Error::SqliteFailure(_, Some(said)) => said.clone(),
        Error::SqlInputError { msg, .. } => msg.clone(),
        other => other.to_string(),
    };
    said.strip_prefix("fence: ").map_or(said.clone(), str::to_owned)
}
