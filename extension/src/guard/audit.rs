//! The table `fence_audit`: the inventory of all that a holder can write in the attached databases, one row for each
//! table, or for each fence column of a table that has several.
//!
//! | column | |
//! |---|---|
//! | `schema`, `"table"` | where |
//! | `fence_column` | the guarded column; of a table without a guard one called `fence`, `…_fence` or `…Fence`; else NULL |
//! | `type`, `affinity` | the column's declared type, and what SQLite makes of it |
//! | `guard` | `whole`, `broken` (a trigger is missing, or the table has changed) or `none` |
//! | `mode`, `columns` | the guard's mode; the columns of mode `write` as a JSON array |
//! | `without_fence` | rows that have no fence yet |
//! | `not_a_fence` | rows with something that is no padded fence |
//! | `largest` | the largest fence |
//! | `ahead` | 1 if that is larger than the epoch of the store: the store was restored or lost; NULL without a store |
//! | `verdict` | all of this in a short sentence, and what to do |
//!
//! The rows of a table are counted by one statement that keeps none of them, and only when a column asks for the counts:
//! `where "table" = 'chats'` looks at no other table. The store is neither opened nor created for it.

use std::borrow::Cow;
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::sync::Arc;

use fence_core::{Fence, Padded};
use rusqlite::types::{Null, ValueRef};
use rusqlite::vtab::{
    Context, Filters, IndexInfo, Module, VTab, VTabConfig, VTabConnection, VTabCursor, sqlite3_vtab,
    sqlite3_vtab_cursor,
};
use rusqlite::{Connection, ErrorCode};

use super::schema::{self, Column, Entry, Place, Sort, Table};
use super::sql::{literal, name, same};
use super::standing::Standing;
use super::triggers::no_fence;
use super::{borrowed, failed};
use crate::answer::SqlError;
use crate::connection::HostConnection;
use crate::register::barrier;

/// The table's name, and the place that a fault of ours is reported at.
const NAME: &str = "fence_audit";

/// Registers the table.
pub(crate) fn register(db: &Connection, name: &'static str, connection: Arc<HostConnection>) -> rusqlite::Result<()> {
    const MODULE: Module<'_, Audit> = Module::eponymous_only_module();
    db.create_module(name, &MODULE, Some(connection))
}

/// What one row says, without what only the table's rows tell.
struct Finding {
    place: Place,
    column: Option<Column>,
    guard: State,
    mode: Option<String>,
    columns: Option<Vec<String>>,
    counts: OnceCell<Counts>,
}

/// What there is to say of a table before its rows are looked at.
enum State {
    /// A table with nothing to compare.
    NoColumn,
    /// The fence column has no guard.
    None,
    /// The guard is the one that the table would be given today.
    Whole,
    /// It is not.
    Broken,
    /// The table cannot have a guard; why.
    Impossible(String),
    /// A table that no program writes to by itself; what it is.
    Inner(String),
}

/// What the rows tell.
#[derive(Clone, Default)]
struct Counts {
    without_fence: Option<i64>,
    not_a_fence: Option<i64>,
    largest: Option<Fence>,
    ahead: Option<bool>,
    /// Why the rows could not be read.
    unread: Option<String>,
}

/// All findings of a connection.
fn findings(db: &Connection) -> Result<VecDeque<Finding>, SqlError> {
    let mut found = VecDeque::new();
    for schema in schema::schemas(db)? {
        let mut memories: Vec<(String, Place)> = Vec::new();
        let start = found.len();
        for entry in schema::entries(db, &schema)? {
            if entry.sort == Sort::View {
                continue;
            }
            let guards = Standing::of(db, &entry.place)?;
            let remembering = guards.iter().filter_map(|guard| guard.memory.as_ref());
            memories.extend(remembering.map(|memory| (memory.table.clone(), entry.place.clone())));
            found.extend(findings_of(db, &entry, &guards)?);
        }
        for finding in found.iter_mut().skip(start) {
            if let Some((_, of)) = memories.iter().find(|(memory, _)| same(memory, &finding.place.table)) {
                finding.guard = State::Inner(format!("remembers the fences of rows deleted from {of}"));
            }
        }
    }
    Ok(found)
}

fn findings_of(db: &Connection, entry: &Entry, guards: &[Standing]) -> Result<Vec<Finding>, SqlError> {
    let finding = |column: Option<&Column>, guard: State| Finding {
        place: entry.place.clone(),
        column: column.cloned(),
        guard,
        mode: None,
        columns: None,
        counts: OnceCell::new(),
    };
    match entry.sort {
        Sort::Virtual => {
            let why = "a virtual table takes no triggers: compare with fence_admit() before each write".to_owned();
            return Ok(vec![finding(None, State::Impossible(why))]);
        }
        Sort::Shadow => {
            return Ok(vec![finding(
                None,
                State::Inner("belongs to a virtual table".to_owned()),
            )]);
        }
        Sort::Table | Sort::View => {}
    }
    let columns = schema::columns(db, entry)?;
    let table = Table::read(db, entry);
    let guarded = guards.iter().filter_map(|guard| {
        let column = columns.iter().find(|column| same(&column.name, &guard.fence))?;
        let whole = table.as_ref().is_ok_and(|table| guard.is_whole(db, table));
        Some(Finding {
            mode: Some(guard.mode().to_owned()),
            columns: guard.columns.clone(),
            ..finding(Some(column), if whole { State::Whole } else { State::Broken })
        })
    });
    let mut found: Vec<_> = guarded.collect();
    for column in columns.iter().filter(|column| is_fence_name(&column.name)) {
        if !guards.iter().any(|guard| same(&guard.fence, &column.name)) {
            found.push(finding(
                Some(column),
                match &table {
                    _ if same(&entry.place.table, "fence_admitted") => {
                        State::Inner("keeps the largest fence that fence_admit() saw for each key".to_owned())
                    }
                    Err(error) if column.affinity.keeps_digits() => State::Impossible(reason(error)),
                    _ => State::None,
                },
            ));
        }
    }
    if found.is_empty() {
        found.push(finding(None, State::NoColumn));
    }
    Ok(found)
}

/// Whether a column without a guard is taken for a fence column.
fn is_fence_name(name: &str) -> bool {
    same(name, "fence") || name.to_ascii_lowercase().ends_with("_fence") || name.ends_with("Fence")
}

/// A message of ours without what every message begins with.
fn reason(error: &SqlError) -> String {
    error.message.trim_start_matches("fence: ").to_owned()
}

impl Finding {
    /// Counts the rows, at the first time.
    fn counts(&self, connection: &HostConnection, db: &Connection) -> Result<&Counts, SqlError> {
        if let Some(counts) = self.counts.get() {
            return Ok(counts);
        }
        let counts = self.count(connection, db)?;
        Ok(self.counts.get_or_init(|| counts))
    }

    fn count(&self, connection: &HostConnection, db: &Connection) -> Result<Counts, SqlError> {
        let Some(column) = &self.column else {
            return Ok(Counts::default());
        };
        let fence = name(&column.name);
        let query = format!(
            "select coalesce(sum(coalesce({fence}, '') = ''), 0), coalesce(sum({wrong}), 0), \
             max(case when coalesce({fence}, '') <> '' and not ({wrong}) then {fence} end) from {}.{}",
            name(&self.place.schema),
            name(&self.place.table),
            wrong = no_fence(&fence),
        );
        let read = db.query_row(&query, [], |row| {
            let largest = match row.get_ref(2)? {
                ValueRef::Text(text) => Padded::from_bytes(text).map(|padded| padded.fence()),
                _ => None,
            };
            Ok((row.get(0)?, row.get(1)?, largest))
        });
        match read {
            Ok((without_fence, not_a_fence, largest)) => {
                let epoch = if largest.is_some() { connection.epoch()? } else { None };
                Ok(Counts {
                    without_fence: Some(without_fence),
                    not_a_fence: Some(not_a_fence),
                    largest,
                    ahead: largest.zip(epoch).map(|(largest, epoch)| largest.epoch() > epoch),
                    unread: None,
                })
            }
            // The table itself: a collation or a function that this connection lacks. Anything else is no finding.
            Err(error) if error.sqlite_error_code() == Some(ErrorCode::Unknown) => Ok(Counts {
                unread: Some(error.to_string()),
                ..Counts::default()
            }),
            Err(error) => Err(failed(format!("cannot look at the rows of {}", self.place))(error)),
        }
    }

    /// What is to be said of it, the most urgent first.
    fn verdict(&self, counts: &Counts) -> String {
        let Some(column) = &self.column else {
            return match &self.guard {
                State::Impossible(why) => format!("cannot be guarded: {why}"),
                State::Inner(what) => what.clone(),
                _ => "no fence column: nothing here can turn a stale write away".to_owned(),
            };
        };
        if let State::Inner(what) = &self.guard {
            return what.clone();
        }
        if let Some(unread) = &counts.unread {
            return format!("cannot be read: {unread}");
        }
        let call = self.call(column);
        if !column.affinity.keeps_digits() {
            return format!(
                "wrong type: {} affinity eats a fence's digits: declare {} TEXT, then {call}",
                column.affinity.name(),
                column.name,
            );
        }
        let wrong = counts.not_a_fence.unwrap_or(0);
        if wrong > 0 {
            return format!("rows without a padded fence: {wrong}: set them to fence_pad() or '', then {call}");
        }
        match &self.guard {
            State::Impossible(why) => return format!("cannot be guarded: {why}"),
            State::None => return format!("not guarded: {call}"),
            State::Broken => return format!("the guard is not whole: {call}"),
            _ => {}
        }
        match (counts.ahead, counts.largest, counts.without_fence) {
            (Some(true), Some(largest), _) => {
                format!("the store is behind this data: select fence_advance('{largest}')")
            }
            (_, _, Some(rows)) if rows > 0 => format!("guarded; rows that have no fence yet: {rows}"),
            _ => "guarded".to_owned(),
        }
    }

    /// The call that guards it, in the mode that it has.
    fn call(&self, column: &Column) -> String {
        let mut arguments = vec![self.place.to_string(), column.name.clone()];
        if let Some(mode) = self
            .mode
            .as_ref()
            .filter(|mode| *mode != "holder" || self.columns.is_some())
        {
            arguments.push(mode.clone());
        }
        arguments.extend(self.columns.as_ref().map(|columns| json(columns)));
        let arguments: Vec<_> = arguments.iter().map(|argument| literal(argument)).collect();
        format!("select fence_guard({})", arguments.join(", "))
    }
}

/// Names as a JSON array.
fn json(names: &[String]) -> String {
    serde_json::to_string(names).unwrap_or_default()
}

#[repr(C)]
struct Audit {
    base: sqlite3_vtab,
    connection: Option<Arc<HostConnection>>,
}

#[repr(C)]
struct Cursor<'vtab> {
    base: sqlite3_vtab_cursor,
    connection: Option<Arc<HostConnection>>,
    /// The current row first.
    rows: VecDeque<Finding>,
    rowid: i64,
    table: PhantomData<&'vtab Audit>,
}

// SAFETY: `base` is the first field of a `repr(C)` struct.
unsafe impl<'vtab> VTab<'vtab> for Audit {
    type Aux = Arc<HostConnection>;
    type Cursor = Cursor<'vtab>;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&Self::Aux>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> rusqlite::Result<(Cow<'static, CStr>, Self)> {
        db.config(VTabConfig::DirectOnly)?;
        let columns = c"create table x(schema, \"table\", fence_column, type, affinity, guard, mode, columns, \
                        without_fence, not_a_fence, largest, ahead, verdict)";
        Ok((
            Cow::Borrowed(columns),
            Self {
                base: sqlite3_vtab::default(),
                connection: aux.cloned(),
            },
        ))
    }

    fn best_index(&self, info: &mut IndexInfo) -> rusqlite::Result<bool> {
        info.set_estimated_cost(1_000_000.0);
        Ok(true)
    }

    fn open(&'vtab mut self) -> rusqlite::Result<Cursor<'vtab>> {
        Ok(Cursor {
            base: sqlite3_vtab_cursor::default(),
            connection: self.connection.clone(),
            rows: VecDeque::new(),
            rowid: 0,
            table: PhantomData,
        })
    }
}

// SAFETY: `base` is the first field of a `repr(C)` struct.
unsafe impl VTabCursor for Cursor<'_> {
    fn filter(&mut self, _: c_int, _: Option<&str>, _: &Filters<'_>) -> rusqlite::Result<()> {
        Ok(barrier(NAME, || {
            self.rowid = 1;
            self.rows = match &self.connection {
                Some(connection) => findings(&*borrowed(connection)?)?,
                None => VecDeque::new(),
            };
            Ok(())
        })?)
    }

    fn next(&mut self) -> rusqlite::Result<()> {
        self.rows.pop_front();
        self.rowid += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.rows.is_empty()
    }

    fn column(&self, context: &mut Context, column: c_int) -> rusqlite::Result<()> {
        let (Some(finding), Some(connection)) = (self.rows.front(), &self.connection) else {
            return Ok(());
        };
        let of_column = |what: fn(&Column) -> String| finding.column.as_ref().map(what);
        let counts = || {
            barrier(NAME, || {
                Ok(finding.counts(connection, &*borrowed(connection)?)?.clone())
            })
        };
        match column {
            0 => context.set_result(&finding.place.schema),
            1 => context.set_result(&finding.place.table),
            2 => context.set_result(&of_column(|column| column.name.clone())),
            3 => context.set_result(&of_column(|column| column.declared.clone())),
            4 => context.set_result(&of_column(|column| column.affinity.name().to_owned())),
            5 => context.set_result(&match finding.guard {
                State::Whole => "whole",
                State::Broken => "broken",
                _ => "none",
            }),
            6 => context.set_result(&finding.mode),
            7 => context.set_result(&finding.columns.as_ref().map(|columns| json(columns))),
            8 => context.set_result(&counts()?.without_fence),
            9 => context.set_result(&counts()?.not_a_fence),
            10 => context.set_result(&counts()?.largest.map(|largest| largest.padded().as_str().to_owned())),
            11 => context.set_result(&counts()?.ahead),
            12 => context.set_result(&finding.verdict(&counts()?)),
            _ => context.set_result(&Null),
        }
    }

    fn rowid(&self) -> rusqlite::Result<i64> {
        Ok(self.rowid)
    }
}
