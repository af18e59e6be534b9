//! What anybody would write by hand: a table with the epoch and the count, a table of leases, and two commits.
//!
//! This is what a grant and a release are measured beside: the least that has to be written, by prepared statements, with
//! the pragmas of a store. It looks at nothing, waits for nobody and notices nothing.

use std::path::Path;

use rusqlite::{Connection, params};

use crate::Result;

/// The tables, as one would naturally make them, and the pragmas of a store.
pub const SETUP: &str = include_str!("bare.sql");

/// A store without any promise.
pub struct Bare(Connection);

impl Bare {
    /// A new one in this file.
    pub fn create(path: &Path) -> Result<Self> {
        let db = Connection::open(path)?;
        db.execute_batch(SETUP)?;
        Ok(Self(db))
    }

    /// The two commits: the store's row and the lease's, then the lease's end.
    pub fn pair(&self, key: &str) -> Result<()> {
        self.0.prepare_cached("begin immediate")?.execute([])?;
        self.0
            .prepare_cached("update store set count = count + 1 where id = 1")?
            .execute([])?;
        self.0
            .prepare_cached(
                "insert into leases (key, epoch, count, expires, ttl, delay, pid) values (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 on conflict (key) do update set epoch = ?2, count = ?3, expires = ?4, ttl = ?5, delay = ?6, pid = ?7",
            )?
            .execute(params![
                key,
                1_796_134_800_000_i64,
                1,
                123_456_789,
                30_000,
                0,
                std::process::id()
            ])?;
        self.0.prepare_cached("commit")?.execute([])?;
        self.0
            .prepare_cached("delete from leases where key = ?1")?
            .execute([key])?;
        Ok(())
    }
}
