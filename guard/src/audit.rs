//! [`audit`]: the inventory of all that can be written, and what of it turns a stale write away.
//!
//! One [`Finding`] for each table of each attached database, or for each fence column of a table that has several. The
//! rows of a table are only counted when [`Finding::counts`] is asked, by one statement that keeps none of them.

use fence_core::{Epoch, Fence, Padded};
use rusqlite::{Connection, ffi};

use crate::query::{Error, Result, rows};
use crate::schema::{self, Column, Entry, Place, Sort, Table};
use crate::sql::{literal, name, same};
use crate::standing::Standing;
use crate::triggers::no_fence;

/// What there is to say of a table, and of one fence column of it.
#[derive(Clone, Debug)]
pub struct Finding {
    place: Place,
    column: Option<Column>,
    state: State,
    mode: Option<String>,
    columns: Option<Vec<String>>,
}

/// What there is to say of a table before its rows are looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// A table with nothing to compare.
    NoColumn,
    /// The fence column has no guard.
    Unguarded,
    /// The guard is the one that the table would be given today.
    Whole,
    /// It is not: a trigger is missing, or the table has changed.
    Broken,
    /// The table cannot have a guard; why.
    Impossible(String),
    /// A table that no program writes to by itself; what it is.
    Inner(String),
}

/// What the rows tell.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many have no fence yet. None without a fence column, or if the rows could not be read.
    pub without_fence: Option<i64>,
    /// How many hold something that is no padded fence.
    pub not_a_fence: Option<i64>,
    /// The largest fence.
    pub largest: Option<Fence>,
    /// Why the rows could not be read.
    pub unread: Option<String>,
}

impl Counts {
    /// Whether the data is ahead of a store of this epoch, which was then restored or lost.
    pub fn is_ahead(&self, epoch: Option<Epoch>) -> Option<bool> {
        self.largest.zip(epoch).map(|(largest, epoch)| largest.epoch() > epoch)
    }
}

/// What is to be said of a table and its rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// Whether the fence column does what it should: it has a whole guard, its rows hold fences, the store is not behind
    /// of them; or it is one of our own, which only our triggers and functions write. None without a fence column.
    pub ok: Option<bool>,
    /// A short sentence, and what to do.
    pub says: String,
}

/// Takes stock of the attached databases.
///
/// ```
/// let db = rusqlite::Connection::open_in_memory()?;
/// db.execute_batch("create table chats (id integer primary key, summary text, summary_fence text)")?;
/// for finding in fence_guard::audit(&db)? {
///     let counts = finding.counts(&db)?;
///     let verdict = finding.verdict(&counts, None);
///     assert_eq!(verdict.ok, Some(false));
///     assert_eq!(verdict.says, "not guarded: select fence_guard('chats', 'summary_fence')");
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
///
/// SQLite's own, with their codes.
#[inline(never)]
pub fn audit(db: &Connection) -> Result<Vec<Finding>> {
    let mut found: Vec<Finding> = Vec::new();
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
                finding.state = State::Inner(format!("remembers the fences of rows deleted from {of}"));
            }
        }
    }
    Ok(found)
}

fn findings_of(db: &Connection, entry: &Entry, guards: &[Standing]) -> Result<Vec<Finding>> {
    let finding = |column: Option<&Column>, state: State| Finding {
        place: entry.place.clone(),
        column: column.cloned(),
        state,
        mode: None,
        columns: None,
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
                    _ => State::Unguarded,
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
fn reason(error: &Error) -> String {
    error.to_string().trim_start_matches("fence: ").to_owned()
}

impl Finding {
    /// The schema that the table is in.
    pub fn schema(&self) -> &str {
        &self.place.schema
    }

    /// The table.
    pub fn table(&self) -> &str {
        &self.place.table
    }

    /// The fence column: the guarded one; of a table without a guard, one that is called `fence`, `…_fence` or `…Fence`.
    pub fn column(&self) -> Option<&str> {
        self.column.as_ref().map(|column| column.name.as_str())
    }

    /// Its declared type.
    pub fn declared(&self) -> Option<&str> {
        self.column.as_ref().map(|column| column.declared.as_str())
    }

    /// Its affinity.
    pub fn affinity(&self) -> Option<&'static str> {
        self.column.as_ref().map(|column| column.affinity.name())
    }

    /// Whether it is guarded.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The guard's mode.
    pub fn mode(&self) -> Option<&str> {
        self.mode.as_deref()
    }

    /// The columns of mode write, as a JSON array.
    pub fn columns(&self) -> Option<String> {
        self.columns.as_ref().map(|columns| json(columns))
    }

    /// Reads the rows.
    ///
    /// # Errors
    ///
    /// SQLite's own, with their codes. A table that this connection cannot read, for want of a collation or a function,
    /// is no error: [`Counts::unread`] says so.
    #[inline(never)]
    pub fn counts(&self, db: &Connection) -> Result<Counts> {
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
        let found = match rows(db, &format!("cannot look at the rows of {}", self.place), &query, &[]) {
            Ok(found) => found,
            // The table itself: a collation or a function that this connection lacks. Anything else is no finding.
            Err(error) if error.code() & 0xff == ffi::SQLITE_ERROR => {
                return Ok(Counts {
                    unread: Some(reason(&error)),
                    ..Counts::default()
                });
            }
            Err(error) => return Err(error),
        };
        let Some(row) = found.first() else {
            return Ok(Counts::default());
        };
        let largest = row.optional(2).and_then(|text| Padded::from_bytes(text.as_bytes()));
        let largest = largest.map(|padded| padded.fence());
        Ok(Counts {
            without_fence: Some(row.number(0)),
            not_a_fence: Some(row.number(1)),
            largest,
            unread: None,
        })
    }

    /// What is to be said of it, the most urgent first; with the epoch of the store, if there is one.
    #[inline(never)]
    pub fn verdict(&self, counts: &Counts, epoch: Option<Epoch>) -> Verdict {
        let (ok, says) = self.judged(counts, epoch);
        let ok = self.column.as_ref().map(|_| ok);
        Verdict { ok, says }
    }

    /// Whether its fence column does what it should, and the sentence.
    fn judged(&self, counts: &Counts, epoch: Option<Epoch>) -> (bool, String) {
        let Some(column) = &self.column else {
            return match &self.state {
                State::Impossible(why) => (false, format!("cannot be guarded: {why}")),
                State::Inner(what) => (true, what.clone()),
                _ => (
                    false,
                    "no fence column: nothing here can turn a stale write away".to_owned(),
                ),
            };
        };
        if let State::Inner(what) = &self.state {
            return (true, what.clone());
        }
        if let Some(unread) = &counts.unread {
            return (false, unread.clone());
        }
        let call = self.call(column);
        if !column.affinity.keeps_digits() {
            let (affinity, name) = (column.affinity.name(), &column.name);
            let wrong =
                format!("wrong type: {affinity} affinity eats a fence's digits: declare {name} TEXT, then {call}");
            return (false, wrong);
        }
        let wrong = counts.not_a_fence.unwrap_or(0);
        if wrong > 0 {
            let wrong = format!("rows without a padded fence: {wrong}: set them to fence_pad() or '', then {call}");
            return (false, wrong);
        }
        match &self.state {
            State::Impossible(why) => return (false, format!("cannot be guarded: {why}")),
            State::Unguarded => return (false, format!("not guarded: {call}")),
            State::Broken => return (false, format!("the guard is not whole: {call}")),
            _ => {}
        }
        match (counts.is_ahead(epoch), counts.largest, counts.without_fence) {
            (Some(true), Some(largest), _) => {
                let behind = format!("the store is behind this data: select fence_advance('{largest}')");
                (false, behind)
            }
            (_, _, Some(rows)) if rows > 0 => (true, format!("guarded; rows that have no fence yet: {rows}")),
            _ => (true, "guarded".to_owned()),
        }
    }

    /// The call that guards it, in the mode that it has.
    fn call(&self, column: &Column) -> String {
        let mut arguments = vec![self.place.to_string(), column.name.clone()];
        if let Some(mode) = self.mode.as_ref().filter(|mode| *mode != "holder") {
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
