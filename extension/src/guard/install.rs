//! `fence_guard(table, column [, mode [, columns]])` and `fence_unguard(table [, column])`.
//!
//! A guard belongs to a table and a fence column; a table with two fence columns may have two. Everything happens in the
//! caller's transaction, between a savepoint and its release: a refusal takes back what this call did and nothing else.
//! The triggers come first and the rows are looked at after: then the write lock is held, and no row can come in between
//! that the one did not stop and the other did not see.

use fence_core::shown;
use rusqlite::Connection;

use super::affinity::Affinity;
use super::schema::{Entry, Sort, Table, find};
use super::sql::{name, same};
use super::standing::Standing;
use super::triggers::{Guard, MODES, Memory, Mode, Part, no_fence};
use super::{borrowed, failed};
use crate::answer::{Answer, SqlError};
use crate::connection::HostConnection;
use crate::value::{Args, Value};

/// `fence_guard(table, column [, mode [, columns]])`: 1.
pub(crate) fn guard(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let (table, column) = (args.text(0, "table", TABLES)?, args.text(1, "column", COLUMNS)?);
    let wish = Wish::read(args)?;
    install(&*borrowed(connection)?, table, column, &wish)?;
    Ok(Answer::Int(1))
}

/// `fence_unguard(table [, column])`: 1, or 0 if there was no guard.
pub(crate) fn unguard(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let table = args.text(0, "table", TABLES)?;
    let column = if args.len() > 1 {
        Some(args.text(1, "column", COLUMNS)?)
    } else {
        None
    };
    Ok(Answer::Int(remove(&*borrowed(connection)?, table, column)?.into()))
}

/// What counts as the name of a table or a column.
const TABLES: &str = "give the name of a table, as 'table' or 'schema.table'";
const COLUMNS: &str = "give the name of the fence column";

/// What the caller asks for: the mode, and whether deleted rows' fences are kept.
struct Wish {
    write: bool,
    remember: bool,
    /// The columns of mode write, by name.
    columns: Option<Vec<String>>,
}

impl Wish {
    /// Reads the third and the fourth argument.
    fn read(args: &Args<'_>) -> Result<Self, SqlError> {
        let mut wish = Self {
            write: false,
            remember: false,
            columns: None,
        };
        if args.len() > 2 {
            let accepted = "give 'holder', 'write', 'holder+remember' or 'write+remember'";
            let mode = args.text(2, "mode", accepted)?;
            let Some((_, write, remember)) = MODES.iter().find(|(word, ..)| *word == mode) else {
                return Err(args.refused("no such mode", "mode", args.value(2)?, accepted));
            };
            (wish.write, wish.remember) = (*write, *remember);
        }
        if args.len() > 3 {
            if !wish.write {
                let accepted = "leave them out, or choose mode 'write', in which writes to them must raise the fence";
                return Err(args.refused("columns without mode write", "columns", args.value(3)?, accepted));
            }
            wish.columns = Some(read_columns(args, 3)?);
        }
        Ok(wish)
    }
}

/// A JSON array of names.
fn read_columns(args: &Args<'_>, index: usize) -> Result<Vec<String>, SqlError> {
    let value = args.value(index)?;
    let names: Option<Vec<String>> = match value {
        Value::Text(text) => serde_json::from_slice(text).ok(),
        _ => None,
    };
    names.filter(|names| !names.is_empty()).ok_or_else(|| {
        let accepted = "give a JSON array of names, such as '[\"summary\", \"title\"]'";
        args.refused("no columns", "columns", value, accepted)
    })
}

/// Installs a guard, or replaces the one that the column has.
fn install(db: &Connection, table: &str, column: &str, wish: &Wish) -> Result<(), SqlError> {
    let entry = find(db, table)?;
    let table = readable(db, &entry)?;
    let fence = fence_column(db, &table, column)?;
    let mode = match (wish.write, &wish.columns) {
        (false, _) => Mode::Holder,
        (true, None) => Mode::Write(None),
        (true, Some(columns)) => Mode::Write(Some(written_columns(&table, fence, columns)?)),
    };
    in_savepoint(db, || {
        let standing = Standing::of(db, &table.place)?;
        let standing = standing
            .into_iter()
            .find(|guard| table.position(&guard.fence) == Some(fence));
        let memory = wish
            .remember
            .then(|| Memory::of(&table, fence, standing.as_ref()))
            .transpose()?;
        let guard = Guard {
            table: &table,
            fence,
            mode,
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
        let doing = failed(format!("cannot guard {}", table.place));
        for (_, sql) in guard.triggers(names) {
            // SQLite keeps the text from the trigger's name on, without the schema; so does `triggers`.
            let sql = sql.replacen(
                "CREATE TRIGGER ",
                &format!("CREATE TRIGGER {}.", name(&table.place.schema)),
                1,
            );
            db.execute_batch(&sql).map_err(&doing)?;
        }
        try_triggers(db, &guard)?;
        look_at_rows(db, &table, fence)
    })
}

/// Removes the guards of a table, or the one of this column. Whether there was any.
fn remove(db: &Connection, table: &str, column: Option<&str>) -> Result<bool, SqlError> {
    let entry = find(db, table)?;
    in_savepoint(db, || {
        let mut removed = false;
        for guard in Standing::of(db, &entry.place)? {
            if column.is_none_or(|column| same(column, &guard.fence)) {
                guard.drop(db, &entry.place.schema)?;
                removed = true;
            }
        }
        Ok(removed)
    })
}

/// Runs something of several statements so that a failure takes back all of it, and nothing of the caller's.
fn in_savepoint<T>(db: &Connection, run: impl FnOnce() -> Result<T, SqlError>) -> Result<T, SqlError> {
    db.execute_batch("savepoint fence_guard").map_err(failed(
        "cannot open a savepoint: call this in a SELECT of its own, while no INSERT, UPDATE or DELETE is running",
    ))?;
    let outcome = run().and_then(|value| {
        db.execute_batch("release fence_guard")
            .map_err(failed("cannot commit"))?;
        Ok(value)
    });
    if outcome.is_err() {
        // After a full disk and the like SQLite has rolled everything back itself, and there is no savepoint any more.
        // What went wrong first is what is reported.
        let _ = db.execute_batch("rollback to fence_guard; release fence_guard");
    }
    outcome
}

/// A table that can have triggers.
fn readable(db: &Connection, entry: &Entry) -> Result<Table, SqlError> {
    let place = &entry.place;
    match entry.sort {
        Sort::Table => Table::read(db, entry),
        Sort::View => Err(SqlError::error(format!(
            "fence: {place} is a view, which stores nothing: guard the tables that it is made of",
        ))),
        Sort::Virtual => Err(SqlError::error(format!(
            "fence: {place} is a virtual table, which takes no triggers: guard a table that is written along with it, \
             or compare with fence_admit before each write",
        ))),
        Sort::Shadow => Err(SqlError::error(format!(
            "fence: {place} belongs to a virtual table, which alone writes to it: compare with fence_admit before each \
             write to the virtual table",
        ))),
    }
}

/// The fence column, if fences keep their digits in it.
fn fence_column(db: &Connection, table: &Table, argument: &str) -> Result<usize, SqlError> {
    let place = &table.place;
    let position = table
        .position(argument)
        .ok_or_else(|| no_such_column(table, argument))?;
    let Some(column) = table.columns.get(position) else {
        return Err(no_such_column(table, argument));
    };
    let refused = |what: String| {
        Err(SqlError::error(format!(
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
    if let Some(default) = &column.default {
        let stored = match column.affinity {
            Affinity::Text => format!("cast({default} as text)"),
            _ => default.clone(),
        };
        let query = format!(
            "select {} from (select {stored} as \"default\")",
            no_fence("\"default\"")
        );
        let wrong: bool = db
            .query_row(&query, [], |row| row.get(0))
            .map_err(failed("cannot read the fence column's default"))?;
        if wrong {
            return refused(format!(
                "has the default {default}, which is no fence: declare it DEFAULT ''"
            ));
        }
    }
    Ok(position)
}

fn no_such_column(table: &Table, argument: &str) -> SqlError {
    SqlError::error(format!(
        "fence: {} has no column {}: it has {}",
        table.place,
        shown::text(argument.as_bytes()),
        super::listed(&table.names()),
    ))
}

/// The columns of mode write.
fn written_columns(table: &Table, fence: usize, columns: &[String]) -> Result<Vec<usize>, SqlError> {
    let mut positions = Vec::with_capacity(columns.len());
    for argument in columns {
        let position = table
            .position(argument)
            .ok_or_else(|| no_such_column(table, argument))?;
        if position == fence {
            return Err(SqlError::error(format!(
                "fence: {} is the fence column itself: name the columns whose writes must raise it",
                shown::text(argument.as_bytes()),
            )));
        }
        if table.columns.get(position).is_some_and(|column| column.generated) {
            return Err(SqlError::error(format!(
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
fn try_triggers(db: &Connection, guard: &Guard<'_>) -> Result<(), SqlError> {
    let place = &guard.table.place;
    let doing = failed(format!("cannot guard {place}: this SQLite does not take the triggers"));
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
    if let Mode::Write(Some(columns)) = &guard.mode {
        let columns = columns.iter().filter_map(|&position| guard.table.columns.get(position));
        writes.extend(columns.map(|column| format!("update {table} set {} = null", name(&column.name))));
    }
    for write in writes {
        db.prepare(&write).map_err(&doing)?;
    }
    Ok(())
}

/// Refuses a table in which something stands that is no fence.
fn look_at_rows(db: &Connection, table: &Table, fence: usize) -> Result<(), SqlError> {
    let place = &table.place;
    let doing = failed(format!("cannot look at the rows of {place}"));
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
    let (count, one): (i64, Option<String>) = db
        .query_row(&query, [], |row| Ok((row.get(0)?, row.get(1)?)))
        .map_err(&doing)?;
    match count {
        0 => Ok(()),
        _ => Err(SqlError::error(format!(
            "fence: {count} {} of {place} {} no padded fence in '{}', such as {}: \
             set it to fence_pad() of what it holds, or to '' for none",
            if count == 1 { "row" } else { "rows" },
            if count == 1 { "has" } else { "have" },
            column.name,
            one.unwrap_or_default(),
        ))),
    }
}

/// The names of the triggers: `chats_summary_fence_guard_insert`, with a number where another table's trigger has it.
fn free_names(db: &Connection, guard: &Guard<'_>) -> Result<impl Fn(Part) -> String, SqlError> {
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
    let doing = failed("cannot read the triggers");
    let mut number = 1_u32;
    loop {
        let base = if number == 1 {
            base.clone()
        } else {
            format!("{base}_{number}")
        };
        let taken: i64 = db
            .query_row(&query, [&place.table, &base], |row| row.get(0))
            .map_err(&doing)?;
        if taken == 0 {
            return Ok(move |part: Part| format!("{base}_{}", part.word()));
        }
        number = number.saturating_add(1);
    }
}
