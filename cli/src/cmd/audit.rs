//! `fence audit DATABASE`: the table `fence_audit`, for people and for CI.

use std::path::PathBuf;

use clap::Args;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use serde_json::{Value as Json, json};

use crate::exit::Exit;
use crate::sql::{open, run::message};
use crate::table::{Form, Table};

/// Show which tables refuse a stale write; status 1 if a fence column does not
///
/// One row for each table, or for each fence column of a table. A table without a fence column is shown and is no fault;
/// a fence column that has no guard, or a wrong type, or rows that hold no fence, or fences that the store is behind of,
/// is one. Nothing is written.
#[derive(Args, Debug)]
pub struct Audit {
    /// The database
    database: PathBuf,
    #[command(flatten)]
    form: Form,
    /// The store's file; without it the one that FENCE_STORE names, else kv.db beside the database
    #[arg(long, value_name = "PATH")]
    store: Option<PathBuf>,
}

impl Audit {
    pub fn run(self) -> Result<Exit, String> {
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        // SAFETY: nothing has started a thread yet.
        let db = unsafe { open(Some(&self.database), self.store.as_deref(), flags) }?;
        let (table, faults) = read(&db).map_err(|error| {
            let (database, what) = (&self.database, message(&error));
            format!("fence: {database:?} cannot be audited: {what}: name a SQLite database that this user may read")
        })?;
        table.print(&self.form)?;
        Ok(if faults { Exit::NO } else { Exit::DONE })
    }
}

/// The rows, and whether one of them is a fault.
fn read(db: &Connection) -> rusqlite::Result<(Table, bool)> {
    let mut select = db.prepare("select * from fence_audit")?;
    let columns: Vec<String> = select.column_names().into_iter().map(str::to_owned).collect();
    let mut table = Table::new(&columns);
    let mut faults = false;
    let mut rows = select.query([])?;
    while let Some(row) = rows.next()? {
        faults |= row.get::<_, Option<bool>>("ok")? == Some(false);
        let values = (0..columns.len()).map(|column| row.get_ref(column).map(value));
        table.push(values.collect::<rusqlite::Result<_>>()?);
    }
    Ok((table, faults))
}

fn value(value: ValueRef<'_>) -> Json {
    match value {
        ValueRef::Null => Json::Null,
        ValueRef::Integer(number) => json!(number),
        ValueRef::Real(number) => json!(number),
        ValueRef::Text(bytes) | ValueRef::Blob(bytes) => json!(String::from_utf8_lossy(bytes)),
    }
}
