//! [`guard`] and [`unguard`].
//!
//! A guard belongs to a table and a fence column; a table with two fence columns may have two. Everything happens in the
//! caller's transaction, between a savepoint and its release: a refusal takes back what this call did and nothing else.
//! The triggers come first and the rows are looked at after: then the write lock is held, and no row can come in between
//! that the one did not stop and the other did not see.

use fence_core::shown;
use rusqlite::Connection;

use crate::affinity::Affinity;
use crate::mode::Mode;
use crate::query::{Error, Result, compile, failed, first_number, rows, run};
use crate::schema::{Entry, Sort, Table, find};
use crate::sql::{name, same};
use crate::standing::Standing;
use crate::triggers::{Guard, Memory, Part, Rule, no_fence};

/// Guards a table: from now on no statement writes a fence to `column` that is lower than the row's, whatever program
/// runs it. Replaces the guard that the column has; where that is the same already, nothing is written.
///
/// The table is one of main, or `schema.table`; either part may be quoted as in SQL.
///
/// # Errors
///
/// With the reason, and nothing is changed: there is no such table or column; the column's type eats digits; the column
/// is generated or its default is no fence; rows hold something else than a padded fence or ''; it is a view or a virtual
/// table; a unique index cannot be looked through. And SQLite's own errors, with their codes.
#[inline(never)]
pub fn guard(db: &Connection, table: &str, column: &str, mode: &Mode) -> Result<()> {
    let entry = find(db, table)?;
    let table = readable(db, &entry)?;
    let fence = fence_column(db, &table, column)?;
    let rule = match (mode.raises, &mode.columns) {
        (false, _) => Rule::Holder,
        (true, None) => Rule::Write(None),
        (true, Some(columns)) => Rule::Write(Some(written_columns(&table, fence, columns)?)),
    };
    in_savepoint(db, &mut || {
        let rule = rule.clone();
        let standing = Standing::of(db, &table.place)?;
        let standing = standing
            .into_iter()
            .find(|guard| table.position(&guard.fence) == Some(fence));
        let memory = mode
            .remembers
            .then(|| Memory::of(&table, fence, standing.as_ref()))
            .transpose()?;
        let guard = Guard {
            table: &table,
            fence,
            rule,
            memory,
        };
        if standing.as_ref().is_some_and(|standing| standing.is(db, &guard)) {
            return Ok(());
        }
        if let Some(memory) = &guard.memory {
            memory.make(db, &table)?;
        }
        let names = free_names(db, &guard)?;
        if let Some(standing) = &standing {
            standing.drop(db, &table.place.schema)?;
        }
        let doing = format!("cannot guard {}", table.place);
        for (_, sql) in guard.triggers(names) {
            // SQLite keeps the text from the trigger's name on, without the schema; so does `triggers`.
            let sql = sql.replacen(
                "CREATE TRIGGER ",
                &format!("CREATE TRIGGER {}.", name(&table.place.schema)),
                1,
            );
            run(db, &doing, &sql)?;
        }
        try_triggers(db, &guard)?;
        look_at_rows(db, &table, fence)
    })
}

/// Removes the guards of a table, or the one of this column. Whether there was any.
///
/// # Errors
///
/// If there is no such table; and SQLite's own errors, with their codes.
#[inline(never)]
pub fn unguard(db: &Connection, table: &str, column: Option<&str>) -> Result<bool> {
    let entry = find(db, table)?;
    let mut removed = false;
    in_savepoint(db, &mut || {
        for guard in Standing::of(db, &entry.place)? {
            if column.is_none_or(|column| same(column, &guard.fence)) {
                guard.drop(db, &entry.place.schema)?;
                removed = true;
            }
        }
        Ok(())
    })?;
    Ok(removed)
}

/// Runs something of several statements so that a failure takes back all of it, and nothing of the caller's.
fn in_savepoint(db: &Connection, work: &mut dyn FnMut() -> Result<()>) -> Result<()> {
    let doing =
        "cannot open a savepoint: call this in a SELECT of its own, while no INSERT, UPDATE or DELETE is running";
    run(db, doing, "savepoint fence_guard")?;
    let outcome = work().and_then(|()| run(db, "cannot commit", "release fence_guard"));
    if outcome.is_err() {
        // After a full disk and the like SQLite has rolled everything back itself, and there is no savepoint any more.
        // What went wrong first is what is reported.
        let _ = run(db, "", "rollback to fence_guard; release fence_guard");
    }
    outcome
}

/// A table that can have triggers.
fn readable(db: &Connection, entry: &Entry) -> Result<Table> {
    let place = &entry.place;
    match entry.sort {
        Sort::Table => Table::read(db, entry),
        Sort::View => Err(Error::refused(format!(
            "fence: {place} is a view, which stores nothing: guard the tables that it is made of",
        ))),
        Sort::Virtual => Err(Error::refused(format!(
            "fence: {place} is a virtual table, which takes no triggers: guard a table that is written along with it, \
             or compare with fence_admit before each write",
        ))),
        Sort::Shadow => Err(Error::refused(format!(
            "fence: {place} belongs to a virtual table, which alone writes to it: compare with fence_admit before each \
             write to the virtual table",
        ))),
    }
}

/// The fence column, if fences keep their digits in it.
fn fence_column(db: &Connection, table: &Table, argument: &str) -> Result<usize> {
    let place = &table.place;
    let position = table
        .position(argument)
        .ok_or_else(|| no_such_column(table, argument))?;
    let Some(column) = table.columns.get(position) else {
        return Err(no_such_column(table, argument));
    };
    let refused = |what: String| {
        Err(Error::refused(format!(
            "fence: column '{}' of {place} {what}",
            column.name
        )))
    };
    if column.generated {
        return refused("is generated, so no write can set it: choose a column of its own for the fence".to_owned());
    }
    if !column.affinity.keeps_digits() {
        return refused(format!(
            "has {} affinity (its type is '{}'), which turns the 40 digits of a fence into a number of about 16: \
             declare it TEXT",
            column.affinity.name(),
            column.declared,
        ));
    }
    if column.affinity == Affinity::Blob && table.strict && same(&column.declared, "blob") {
        return refused("is BLOB in a STRICT table, which takes no text: declare it TEXT".to_owned());
    }
    if let (Some(default), Some(stored)) = (&column.default, column.stored_default()) {
        let query = format!(
            "select {} from (select {stored} as \"default\")",
            no_fence("\"default\"")
        );
        if first_number(db, "cannot read the fence column's default", &query, &[])? != 0 {
            return refused(format!(
                "has the default {default}, which is no fence: declare it DEFAULT ''"
            ));
        }
    }
    Ok(position)
}

/// Names for a message: the first few.
fn listed(names: &[&str]) -> String {
    let (first, rest) = names.split_at(names.len().min(12));
    let more = if rest.is_empty() { "" } else { ", …" };
    format!("{}{more}", first.join(", "))
}

fn no_such_column(table: &Table, argument: &str) -> Error {
    Error::refused(format!(
        "fence: {} has no column {}: it has {}",
        table.place,
        shown::text(argument.as_bytes()),
        listed(&table.names()),
    ))
}

/// The columns of mode write.
fn written_columns(table: &Table, fence: usize, columns: &[String]) -> Result<Vec<usize>> {
    let mut positions = Vec::with_capacity(columns.len());
    if columns.is_empty() {
        return Err(Error::refused(
            "fence: no column is named whose writes must raise the fence: name one, or leave them out for all",
        ));
    }
    for argument in columns {
        let position = table
            .position(argument)
            .ok_or_else(|| no_such_column(table, argument))?;
        if position == fence {
            return Err(Error::refused(format!(
                "fence: {} is the fence column itself: name the columns whose writes must raise it",
                shown::text(argument.as_bytes()),
            )));
        }
        if table.columns.get(position).is_some_and(|column| column.generated) {
            return Err(Error::refused(format!(
                "fence: column {} of {} is generated, so no write sets it: name the columns that it is made of",
                shown::text(argument.as_bytes()),
                table.place,
            )));
        }
        positions.push(position);
    }
    positions.sort_unstable();
    positions.dedup();
    Ok(positions)
}

/// Lets SQLite compile the triggers, which it else does at the first write.
fn try_triggers(db: &Connection, guard: &Guard<'_>) -> Result<()> {
    let place = &guard.table.place;
    let doing = format!("cannot guard {place}: this SQLite does not take the triggers");
    let table = format!("{}.{}", name(&place.schema), name(&place.table));
    let fence = guard
        .table
        .columns
        .get(guard.fence)
        .map(|column| name(&column.name))
        .unwrap_or_default();
    let mut writes = vec![
        format!("insert into {table} ({fence}) values ('')"),
        format!("update {table} set {fence} = ''"),
        format!("delete from {table}"),
    ];
    if let Rule::Write(Some(columns)) = &guard.rule {
        let columns = columns.iter().filter_map(|&position| guard.table.columns.get(position));
        writes.extend(columns.map(|column| format!("update {table} set {} = null", name(&column.name))));
    }
    for write in writes {
        compile(db, &write).map_err(|error| failed(&doing, &error))?;
    }
    Ok(())
}

/// Refuses a table in which something stands that is no fence.
fn look_at_rows(db: &Connection, table: &Table, fence: usize) -> Result<()> {
    let place = &table.place;
    let Some(column) = table.columns.get(fence) else {
        return Ok(());
    };
    let query = format!(
        "select count(*), substr(quote(min({column})), 1, 60) from {}.{} where {}",
        name(&place.schema),
        name(&place.table),
        no_fence(&name(&column.name)),
        column = name(&column.name),
    );
    let found = rows(db, &format!("cannot look at the rows of {place}"), &query, &[])?;
    let (count, one) = found
        .first()
        .map(|row| (row.number(0), row.text(1)))
        .unwrap_or_default();
    match count {
        0 => Ok(()),
        _ => Err(Error::refused(format!(
            "fence: {count} {} of {place} {} no padded fence in '{}', such as {}: \
             set it to fence_pad() of what it holds, or to '' for none",
            if count == 1 { "row" } else { "rows" },
            if count == 1 { "has" } else { "have" },
            column.name,
            one,
        ))),
    }
}

/// The names of the triggers: `chats_summary_fence_guard_insert`, with a number where another table's trigger has it.
fn free_names(db: &Connection, guard: &Guard<'_>) -> Result<impl Fn(Part) -> String> {
    let place = &guard.table.place;
    let column = guard
        .table
        .columns
        .get(guard.fence)
        .map(|column| column.name.as_str())
        .unwrap_or_default();
    let base = format!("{}_{column}_guard", place.table);
    let query = format!(
        "select count(*) from {}.sqlite_schema where type = 'trigger' and tbl_name <> ?1 collate nocase \
         and name in (?2 || '_insert', ?2 || '_update', ?2 || '_write', ?2 || '_delete') collate nocase",
        name(&place.schema),
    );
    let mut number = 1_u32;
    loop {
        let base = if number == 1 {
            base.clone()
        } else {
            format!("{base}_{number}")
        };
        if first_number(db, "cannot read the triggers", &query, &[&place.table, &base])? == 0 {
            return Ok(move |part: Part| format!("{base}_{}", part.word()));
        }
        number = number.saturating_add(1);
    }
}
