//! The SQL of a guard. Pure text: what goes in is a table as it was read, what comes out are CREATE TRIGGERs.
//!
//! | trigger | refuses |
//! |---|---|
//! | `…_guard_insert` | a row that is no fence's; a row that would take the place of one with a larger fence, by any key |
//! | `…_guard_update` | a fence lower than the row's; a new key that belongs to a row with a larger fence |
//! | `…_guard_write` | mode `write` with columns: an UPDATE of one of them that does not raise the fence |
//! | `…_guard_delete` | nothing: with `+remember` it keeps the fence of a row that is deleted |
//!
//! All are BEFORE triggers, for REPLACE deletes the standing row before an AFTER trigger could see it. All refuse by
//! RAISE(ABORT), which IGNORE and REPLACE do not soften. They write nothing (but for what `+remember` keeps), so
//! `changes()`, `last_insert_rowid()` and RETURNING are as without them, and SQLite's rule against recursion, by which a
//! trigger does not fire inside itself, never silences them. They use no function that is not SQLite's own since 3.34.
//!
//! The text holds no name outside of the places in which ALTER TABLE RENAME finds and changes it. So a guard survives a
//! rename, and after one it still reads as [`Guard::triggers`] would write it: that is how the audit tells a guard that
//! is whole from one that is not.

use crate::expression::ROWIDS;
use crate::key::{Key, stands_in};
use crate::mode::Mode;
use crate::schema::Table;
use crate::sql::{literal, name, same};

/// What a trigger says. Fixed texts: SQLite before 3.47 takes no others.
pub(crate) mod message {
    /// The fence column holds something else than '' or 40 digits.
    pub(crate) const NOT_A_FENCE: &str =
        "fence: not a fence: the fence column takes the 40 digits that fence_pad() gives, or '' for none";
    /// The row has a larger fence.
    pub(crate) const STALE: &str =
        "fence: stale: a later holder already wrote this row: drop the work, or take the lease again and start over";
    /// Mode `holder`: the row has a fence, the write has none.
    pub(crate) const UNFENCED: &str =
        "fence: unfenced: the row has a fence and this write has none: set the fence column to the fence of its lease";
    /// Mode `write`: the fence stays as it is.
    pub(crate) const NOT_RAISED: &str = "fence: unfenced: this write does not raise the fence column: set it to the fence of a lease taken for this write";
    /// A NULL will become a default, and a key is made of it in words of its own.
    pub(crate) const UNSEEN: &str =
        "fence: unfenced: a NULL stands for a default here and hides which row it replaces: write the value itself";
}

/// 2^128 - 1, padded.
const LARGEST: &str = "0340282366920938463463374607431768211455";

/// What passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A fence that is not lower than the row's.
    Holder,
    /// A fence that is larger than the row's, for each write to these columns, by position. None: for each write, which
    /// no UPDATE OF could say: it would not see a column that is added later, nor a `set rowid = …`.
    Write(Option<Vec<usize>>),
}

/// A guard of a table, to be written as triggers.
#[derive(Clone, Debug)]
pub(crate) struct Guard<'a> {
    pub(crate) table: &'a Table,
    /// The fence column.
    pub(crate) fence: usize,
    pub(crate) rule: Rule,
    /// The table that remembers the fences of deleted rows, if there is one.
    pub(crate) memory: Option<Memory>,
}

/// The table that remembers, as a guard writes to it.
#[derive(Clone, Debug)]
pub(crate) struct Memory {
    pub(crate) name: String,
    /// The positions of the columns that are remembered, each with its name there. A renamed column keeps its old one.
    pub(crate) columns: Vec<(usize, String)>,
    /// The fence column's name there.
    pub(crate) fence: String,
}

/// Which trigger of a guard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Part {
    Insert,
    Update,
    Write,
    Delete,
}

impl Part {
    /// The last word of the trigger's name.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Write => "write",
            Self::Delete => "delete",
        }
    }
}

/// How the first line of a trigger's body begins. It names what made the trigger, and is not part of the comparison.
pub(crate) const MADE_BY: &str = "  -- Made by fence_guard";

impl Guard<'_> {
    /// The mode's name.
    fn mode(&self) -> &'static str {
        let mode = Mode {
            raises: self.rule != Rule::Holder,
            columns: None,
            remembers: self.memory.is_some(),
        };
        mode.name()
    }

    /// The triggers, each as the text that SQLite keeps (which has no schema before the trigger's name).
    pub(crate) fn triggers(&self, trigger_name: impl Fn(Part) -> String) -> Vec<(Part, String)> {
        let mut bodies = vec![(Part::Insert, self.insert()), (Part::Update, self.update())];
        if let Rule::Write(Some(_)) = self.rule {
            bodies.push((Part::Write, vec![self.refuse_not_raised("")]));
        }
        if let Some(memory) = &self.memory {
            bodies.push((Part::Delete, self.remember(memory, &[self.old_row(memory, "")])));
        }
        let trigger = |(part, body): (Part, Vec<String>)| {
            let event = match (&self.rule, part) {
                (Rule::Write(Some(columns)), Part::Write) => {
                    let columns: Vec<_> = columns.iter().map(|&position| self.column(position)).collect();
                    format!("update of {}", columns.join(", "))
                }
                _ => part.word().to_owned(),
            };
            let head = format!(
                "CREATE TRIGGER {} before {event} on {} begin",
                name(&trigger_name(part)),
                self.table()
            );
            let made = format!("{MADE_BY} {}, mode {}", env!("CARGO_PKG_VERSION"), self.mode());
            (
                part,
                format!(
                    "{head}\n{made}. Plain SQL: needs no extension.\n  {};\nend",
                    body.join(";\n  ")
                ),
            )
        };
        bodies.into_iter().map(trigger).collect()
    }

    fn insert(&self) -> Vec<String> {
        let mut body = vec![self.refuse_no_fence()];
        body.extend(self.refuse_unseen());
        if let Rule::Write(columns) = &self.rule {
            body.push(self.refuse_without_fence(columns.as_deref()));
        }
        let replaced: Vec<_> = self.table.keys.iter().map(|key| (key, String::new())).collect();
        // Without any key a new row takes no other's place.
        if !replaced.is_empty() {
            body.push(self.refuse_lower_than(&self.seen_by(&replaced), matches!(self.rule, Rule::Write(_))));
        }
        if let Some(memory) = self.memory.as_ref().filter(|_| self.table.keys.len() > 1) {
            body.extend(self.remember(memory, &self.rows_of(memory, &replaced)));
        }
        body
    }

    fn update(&self) -> Vec<String> {
        let mut body = vec![self.refuse_no_fence()];
        body.extend(self.refuse_unseen());
        match &self.rule {
            Rule::Holder => {}
            Rule::Write(None) => body.push(self.refuse_not_raised("")),
            // `set rowid = …` is an UPDATE OF no column, whatever the column is called.
            Rule::Write(Some(columns)) => {
                let alias = self.table.rowid_alias.filter(|alias| columns.contains(alias));
                let moved = |alias| self.refuse_not_raised(&format!("{} and ", self.changed(&self.column(alias))));
                body.extend(alias.map(moved));
            }
        }
        let moved: Vec<_> = self
            .table
            .keys
            .iter()
            .map(|key| (key, format!("({}) and ", self.moved(key))))
            .collect();
        let mut seen = vec![format!("select old.{} as seen", self.fence())];
        seen.extend(self.seen_by(&moved));
        body.push(self.refuse_lower_than(&seen, false));
        if let Some(memory) = &self.memory {
            let changed = memory
                .columns
                .iter()
                .map(|(position, _)| self.changed(&self.column(*position)));
            let changed = changed.collect::<Vec<_>>().join(" or ");
            let mut gone = vec![self.old_row(memory, &format!(" where {changed}"))];
            if self.table.keys.len() > 1 {
                gone.extend(self.rows_of(memory, &moved));
            }
            body.extend(self.remember(memory, &gone));
        }
        body
    }

    /// What is stored is NULL or '' (nothing seen yet), or exactly 40 digits of a number below 2^128.
    fn refuse_no_fence(&self) -> String {
        refuse(message::NOT_A_FENCE, &no_fence(&format!("new.{}", self.fence())))
    }

    /// A NULL that becomes a default would change a key behind our back where that is not the column's own value: in an
    /// expression, a predicate, a generated column.
    fn refuse_unseen(&self) -> Option<String> {
        let hidden = |position: usize| {
            let mut keys = self.table.keys.iter();
            keys.any(|key| key.in_words().any(|used| used == position) || key.is_generated(self.table))
        };
        let defaulted = self.table.columns.iter().enumerate().filter_map(|(position, column)| {
            let hides = position != self.fence && hidden(position) && stands_in(self.table, position, column);
            hides.then(|| format!("new.{} is null", name(&column.name)))
        });
        let defaulted = defaulted.collect::<Vec<_>>().join(" or ");
        (!defaulted.is_empty()).then(|| refuse(message::UNSEEN, &defaulted))
    }

    /// Mode write: a new row must bring a fence. If the mode is for some columns: unless it leaves them at their
    /// defaults.
    fn refuse_without_fence(&self, columns: Option<&[usize]>) -> String {
        let mut when = format!("{} = ''", self.brought());
        if let Some(columns) = columns {
            let written = columns.iter().filter_map(|&position| {
                let column = self.table.columns.get(position)?;
                let default = column.stored_default().unwrap_or_else(|| "null".to_owned());
                // The default comes first: `is not true` would ask for the truth of what is written.
                Some(format!("{default} is not new.{} collate binary", name(&column.name)))
            });
            when = format!("{when} and ({})", written.collect::<Vec<_>>().join(" or "));
        }
        refuse(message::NOT_RAISED, &when)
    }

    /// Mode write: an UPDATE must raise the row's fence.
    fn refuse_not_raised(&self, only: &str) -> String {
        let (new, old) = (self.brought(), format!("coalesce(old.{}, '')", self.fence()));
        format!(
            "select case when {new} in ('', {old})\n    then {}\n    else {} end\n   where {only}{new} <= {old}",
            raise(message::NOT_RAISED),
            raise(message::STALE),
        )
    }

    /// A fence must not be lower than any that was seen; or, to raise them, must be larger.
    fn refuse_lower_than(&self, seen: &[String], raises: bool) -> String {
        let new = self.brought();
        let (nothing, lower) = match raises {
            true => ("in ('', coalesce(seen, ''))", ">="),
            false => ("= ''", ">"),
        };
        let unfenced = match self.rule {
            Rule::Holder => message::UNFENCED,
            Rule::Write(_) => message::NOT_RAISED,
        };
        format!(
            "select case when {new} {nothing}\n    then {}\n    else {} end\n   \
             from ({})\n   where coalesce(seen, '') {lower} {new}",
            raise(unfenced),
            raise(message::STALE),
            seen.join("\n     union all "),
        )
    }

    /// The fences that were seen under the new row's keys: in the table, and in the one that remembers.
    fn seen_by(&self, keys: &[(&Key, String)]) -> Vec<String> {
        let standing = keys.iter().map(|(key, only)| {
            let matches = key.matches(self.table, |position| self.column(position));
            format!(
                "select {} as seen from {} where {only}{matches}",
                self.fence(),
                self.standing()
            )
        });
        let deleted = keys.iter().filter_map(|(key, only)| {
            let memory = self.memory.as_ref().filter(|_| key.hidden_rowid.is_none())?;
            let matches = key.matches(self.table, |position| memory.column(position));
            let (fence, table) = (name(&memory.fence), name(&memory.name));
            Some(format!(
                "select {fence} as seen from {table} as kept where {only}{matches}"
            ))
        });
        standing.chain(deleted).collect()
    }

    /// Whether an UPDATE changes what a key looks at. An UPDATE OF would not do: `set rowid = …` names no column.
    fn moved(&self, key: &Key) -> String {
        // A trigger computes a generated column from those columns alone that it mentions, as if the others were NULL. So
        // all of them are mentioned.
        let columns = match key.is_generated(self.table) {
            true => (0..self.table.columns.len()).collect(),
            false => key.columns(),
        };
        let hidden = key.hidden_rowid.map(str::to_owned);
        let words = hidden
            .into_iter()
            .chain(columns.into_iter().map(|position| self.column(position)));
        words.map(|word| self.changed(&word)).collect::<Vec<_>>().join(" or ")
    }

    fn changed(&self, word: &str) -> String {
        format!("new.{word} is not old.{word} collate binary")
    }

    // What is remembered: the columns of all keys (`k1`, `k2` … below), and the largest fence (`f`) that a row with these
    // values had when it was deleted, replaced or given another key.

    /// The row that is deleted or changed.
    fn old_row(&self, memory: &Memory, only: &str) -> String {
        format!("select {}{only}", self.kept(memory, "old."))
    }

    /// The standing rows that make way, by each key: their other keys are gone with them.
    fn rows_of(&self, memory: &Memory, keys: &[(&Key, String)]) -> Vec<String> {
        let columns = self.kept(memory, "");
        let rows = |(key, only): &(&Key, String)| {
            let matches = key.matches(self.table, |position| self.column(position));
            format!("select {columns} from {} where {only}{matches}", self.standing())
        };
        keys.iter().map(rows).collect()
    }

    /// What is kept of a row of the guarded table. Each value as it is: two that only a collation takes for one are two.
    fn kept(&self, memory: &Memory, row: &str) -> String {
        let is_binary = |position: usize| {
            let column = self.table.columns.get(position);
            column.is_some_and(|column| same(&column.collation, "binary"))
        };
        let keys = (1..).zip(&memory.columns).map(|(i, &(position, _))| {
            let collate = if is_binary(position) { "" } else { " collate binary" };
            format!("{row}{}{collate} as k{i}", self.column(position))
        });
        keys.chain([format!("{row}{} as f", self.fence())])
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Keeps the fences of these rows: one row for each set of values, with the largest fence.
    fn remember(&self, memory: &Memory, rows: &[String]) -> Vec<String> {
        let (table, fence, id) = (name(&memory.name), name(&memory.fence), memory.id().unwrap_or("rowid"));
        let same = (1..).zip(&memory.columns);
        let same = same.map(|(i, (_, column))| format!("kept.{} is gone.k{i} collate binary", name(column)));
        let same = same.collect::<Vec<_>>().join(" and ");
        let columns: Vec<_> = memory.columns.iter().map(|(_, column)| name(column)).collect();
        // UNION, for a row that is changed may be found by its own new key as well.
        let gone = format!("({}) as gone", rows.join("\n     union "));
        vec![
            format!(
                "delete from {table} where {id} in (select kept.{id}\n   from {gone}, {table} as kept\n   \
                 where {same} and kept.{fence} < gone.f)"
            ),
            format!(
                "insert into {table} ({}, {fence}) select gone.*\n   from {gone}\n   \
                 where coalesce(gone.f, '') <> '' and not exists (select 1 from {table} as kept where {same})",
                columns.join(", "),
            ),
        ]
    }

    fn table(&self) -> String {
        name(&self.table.place.table)
    }

    /// The table as a query names it. Under another name, for one that is called `old` or `new` would hide the row.
    fn standing(&self) -> String {
        format!("{} as standing", self.table())
    }

    fn column(&self, position: usize) -> String {
        self.table.quoted(position)
    }

    fn fence(&self) -> String {
        self.column(self.fence)
    }

    /// The new row's fence, '' for none. (A function's value compares by BINARY, whatever the column's collation is.)
    fn brought(&self) -> String {
        format!("coalesce(new.{}, '')", self.fence())
    }
}

impl Memory {
    /// The name there of the column at a position.
    pub(crate) fn column(&self, position: usize) -> String {
        let known = self.columns.iter().find(|(known, _)| *known == position);
        known.map(|(_, column)| name(column)).unwrap_or_default()
    }

    /// What its rowid is called: not as one of its columns.
    pub(crate) fn id(&self) -> Option<&'static str> {
        let taken = |id: &str| {
            let mut columns = self.columns.iter().map(|(_, column)| column).chain([&self.fence]);
            columns.any(|column| same(column, id))
        };
        ROWIDS.into_iter().find(|id| !taken(id))
    }
}

/// Whether a value is neither NULL nor '' nor a padded fence. `ltrim` sees what stands behind a NUL, which `length` does
/// not.
pub(crate) fn no_fence(value: &str) -> String {
    format!(
        "coalesce({value}, '') <> '' and not (typeof({value}) = 'text' and length({value}) = 40\n   \
         and ltrim({value}, '0123456789') = '' and coalesce({value}, '') <= '{LARGEST}')"
    )
}

fn raise(message: &str) -> String {
    format!("raise(abort, {})", literal(message))
}

fn refuse(message: &str, when: &str) -> String {
    format!("select {}\n   where {when}", raise(message))
}
