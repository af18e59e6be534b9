//! The table that remembers the fences of rows that are gone (mode `…+remember`).
//!
//! It has the columns that the guarded table's keys look at, and the fence column, so the words by which a key finds a
//! standing row find a remembered one as well. One row for each set of key values, with the largest
//! fence that a row with them had when it was deleted, replaced or given another key. It outlives the guard and the
//! table: a migration that rebuilds the table and guards it again forgets nothing.

use fence_core::shown;
use rusqlite::Connection;

use crate::key::Key;
use crate::query::{Error, Result, rows, run};
use crate::schema::{Column, Table};
use crate::sql::{name, same};
use crate::standing::{Remembered, Standing};
use crate::triggers::Memory;

impl Memory {
    /// The table that remembers for this fence column: the one that the guard has already, or a new one.
    pub(crate) fn of(table: &Table, fence: usize, standing: Option<&Standing>) -> Result<Self> {
        let place = &table.place;
        let fence_name = table
            .columns
            .get(fence)
            .map(|column| column.name.clone())
            .unwrap_or_default();
        let keys = || table.keys.iter().filter(|key| key.hidden_rowid.is_none());
        let mut positions: Vec<_> = keys().flat_map(Key::columns).collect();
        positions.sort_unstable();
        positions.dedup();
        if positions.is_empty() {
            return Err(Error::refused(format!(
                "fence: {place} has no primary key and no unique index, so a row that comes back cannot be known again: \
                 give it a primary key, or guard it without '+remember'",
            )));
        }
        if positions.contains(&fence) {
            return Err(Error::refused(format!(
                "fence: '{fence_name}' is part of a unique index of {place}, so a deleted row cannot be known again by \
                 another fence: guard it without '+remember'",
            )));
        }
        let known = standing.and_then(|standing| standing.memory.clone());
        let known = known.unwrap_or_else(|| Remembered {
            table: format!("{}_{fence_name}_deleted", place.table),
            columns: Vec::new(),
            fence: fence_name,
        });
        let mut columns: Vec<(usize, String)> = Vec::new();
        for position in positions {
            let Some(column) = table.columns.get(position) else {
                continue;
            };
            let renamed = known.columns.iter().find(|(guarded, _)| same(guarded, &column.name));
            let mut there = renamed.map_or(&column.name, |(_, there)| there).clone();
            while renamed.is_none() && known.columns.iter().any(|(_, taken)| same(taken, &there)) {
                there.push('_');
            }
            columns.push((position, there));
        }
        let memory = Self {
            name: known.table,
            columns,
            fence: known.fence,
        };
        if memory.id().is_none() {
            return Err(Error::refused(format!(
                "fence: {place} has columns rowid, oid and _rowid_ in its keys, so what is remembered cannot be kept \
                 tidy: rename one of them, or guard it without '+remember'",
            )));
        }
        Ok(memory)
    }

    /// Makes sure that the table is there, with its columns and its indexes.
    pub(crate) fn make(&self, db: &Connection, table: &Table) -> Result<()> {
        let place = &table.place;
        let doing = format!("cannot make the table that remembers the fences of rows deleted from {place}");
        let [schema, quoted, fence] = [&place.schema, &self.name, &self.fence].map(|word| name(word));
        let existing = column_names(db, &place.schema, &self.name)?;
        let exists = |column: &str| existing.iter().any(|known| same(known, column));
        let declare = |(position, there): &(usize, String)| {
            let column = table.columns.get(*position)?;
            let (affinity, collation) = (column.affinity.name(), name(&column.collation));
            Some(format!("{} {affinity} collate {collation}", name(there)))
        };
        if existing.is_empty() {
            let mut declared: Vec<_> = self.columns.iter().filter_map(declare).collect();
            declared.push(format!("{fence} TEXT not null"));
            let sql = format!("create table {schema}.{quoted} ({})", declared.join(", "));
            run(db, &doing, &sql)?;
        } else if !exists(&self.fence) {
            return Err(Error::refused(format!(
                "fence: the table {} is to remember the fences of rows deleted from {place}, and has no column '{}': \
                 rename that table or its column",
                shown::text(self.name.as_bytes()),
                self.fence,
            )));
        } else {
            // A key that came later.
            let later = self.columns.iter().filter(|(_, there)| !exists(there));
            for declared in later.filter_map(declare) {
                let sql = format!("alter table {schema}.{quoted} add column {declared}");
                run(db, &doing, &sql)?;
            }
        }
        let standing = index_names(db, &place.schema, &self.name)?;
        for (i, terms) in self.indexes(table).iter().enumerate() {
            let index = format!("{}_{}", self.name, i + 1);
            let quoted_index = name(&index);
            if standing.iter().any(|known| same(known, &index)) {
                run(db, &doing, &format!("drop index {schema}.{quoted_index}"))?;
            }
            let sql = format!("create index {schema}.{quoted_index} on {quoted} ({terms})");
            run(db, &doing, &sql)?;
        }
        Ok(())
    }

    /// One index for each key, as the guarded table has it, and one for all columns, by which a row is found again.
    fn indexes(&self, table: &Table) -> Vec<String> {
        let keys = table.keys.iter().filter(|key| key.hidden_rowid.is_none());
        let by_key = keys.map(|key| key.indexed(table, |position| self.column(position)));
        let by_row = self.columns.iter().map(|(position, there)| {
            let is_binary = |column: &Column| same(&column.collation, "binary");
            let collate = if table.columns.get(*position).is_some_and(is_binary) {
                ""
            } else {
                " collate binary"
            };
            format!("{}{collate}", name(there))
        });
        let by_row = by_row.collect::<Vec<_>>().join(", ");
        let mut indexes = Vec::new();
        for terms in by_key.chain([by_row]) {
            if !indexes.contains(&terms) {
                indexes.push(terms);
            }
        }
        indexes
    }
}

/// Whether the table that remembers is there.
pub(crate) fn exists(db: &Connection, schema: &str, memory: &str) -> bool {
    column_names(db, schema, memory).is_ok_and(|columns| !columns.is_empty())
}

/// The indexes of a table.
fn index_names(db: &Connection, schema: &str, table: &str) -> Result<Vec<String>> {
    let query = "select name from pragma_index_list(?1, ?2)";
    let rows = rows(db, "cannot read the indexes", query, &[table, schema])?;
    Ok(rows.iter().map(|row| row.text(0)).collect())
}

/// The columns of a table; none if there is no such table.
fn column_names(db: &Connection, schema: &str, table: &str) -> Result<Vec<String>> {
    let query = "select name from pragma_table_info(?1, ?2)";
    let rows = rows(db, "cannot read the columns", query, &[table, schema])?;
    Ok(rows.iter().map(|row| row.text(0)).collect())
}
