//! Acquire and release in a store with 1,000,000 live leases, beside one with 1,000; and how much of the file a lease
//! takes. The keys that are acquired lie all over the table.

use std::path::Path;

use rusqlite::Connection;
use tempfile::TempDir;

use crate::report::Line;
use crate::times::in_turn;
use crate::{Result, host};

const MANY: u64 = 1_000_000;
const FEW: u64 = 1_000;
const ROUNDS: usize = 50_000;

/// Measures the row.
pub fn measure() -> Result<Vec<Line>> {
    let (many, few) = (Store::with(MANY)?, Store::with(FEW)?);
    let bytes = file_size(&many.folder.path().join("kv.db"))? as f64 / MANY as f64;
    let (mut mine, mut other) = (0, 0);
    let (ours, theirs) = in_turn(ROUNDS, || many.pair(&mut mine), || few.pair(&mut other))?;
    Ok(vec![
        Line::ratio(
            "acquire + release with 1,000,000 live leases",
            "with 1,000 live leases",
            ours,
            theirs,
            1.5,
        ),
        Line::at_most("a lease's share of the file with 1,000,000", bytes, 120.0, "bytes"),
    ])
}

/// A store with so many live leases.
struct Store {
    folder: TempDir,
    db: Connection,
    leases: u64,
}

impl Store {
    fn with(leases: u64) -> Result<Self> {
        let folder = host::folder();
        let db = host::connect(&folder.path().join("app.db"))?;
        let mut acquire = db.prepare("select fence_acquire(?1, 86400000)")?;
        for n in 0..leases {
            acquire.query_row([format!("chat:{n}")], |row| row.get::<_, String>(0))?;
        }
        drop(acquire);
        Ok(Self { folder, db, leases })
    }

    /// Acquires and releases the next key; the turn is a number that nobody else uses.
    fn pair(&self, turn: &mut u64) -> Result<()> {
        *turn += 1;
        let key = format!("chat:{}:more", *turn * 7_919 % self.leases);
        let fence: String = self
            .db
            .prepare_cached("select fence_acquire(?1, 30000)")?
            .query_row([&key], |row| row.get(0))?;
        let released: i64 = self
            .db
            .prepare_cached("select fence_release(?1, ?2)")?
            .query_row([&key, &fence], |row| row.get(0))?;
        if released == 1 {
            Ok(())
        } else {
            Err("not released".into())
        }
    }
}

/// How large the file is, with all that still stands in the WAL.
fn file_size(store: &Path) -> Result<u64> {
    let sql = "select page_count * page_size from pragma_page_count, pragma_page_size";
    Ok(Connection::open(store)?
        .query_row(sql, [], |row| row.get::<_, i64>(0))?
        .unsigned_abs())
}
