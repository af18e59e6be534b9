//! A guard as it stands in the schema, read from its triggers alone: they are right after every rename.

use rusqlite::Connection;

use crate::memory;
use crate::mode::Mode;
use crate::query::{Result, rows, run};
use crate::schema::{Place, Table};
use crate::sql::{Token, literal, name, same, tokens};
use crate::triggers::{Guard, MADE_BY, Memory, Part, Rule};

/// A guard as it stands in the schema, read from its triggers alone: they are right after every rename.
#[derive(Clone, Debug, Default)]
pub(crate) struct Standing {
    /// The fence column.
    pub(crate) fence: String,
    /// The mode that the triggers say they were made in.
    mode: String,
    /// The columns of mode write.
    pub(crate) columns: Option<Vec<String>>,
    /// The table that remembers.
    pub(crate) memory: Option<Remembered>,
    /// Name and text of each trigger.
    triggers: Vec<(Part, String, String)>,
}

/// The table that remembers, as the triggers name it and its columns.
#[derive(Clone, Debug)]
pub(crate) struct Remembered {
    pub(crate) table: String,
    /// Columns of the guarded table, each with its name in this one.
    pub(crate) columns: Vec<(String, String)>,
    /// The fence column in this one.
    pub(crate) fence: String,
}

impl Standing {
    /// The guards of a table.
    pub(crate) fn of(db: &Connection, place: &Place) -> Result<Vec<Self>> {
        let query = format!(
            "select name, sql from {}.sqlite_schema where type = 'trigger' and tbl_name = ?1 collate nocase \
             and instr(sql, {}) > 0 order by name",
            name(&place.schema),
            literal(MADE_BY),
        );
        let mut guards: Vec<Self> = Vec::new();
        for row in rows(db, "cannot read the triggers", &query, &[&place.table])? {
            let (name, sql) = (row.text(0), row.text(1));
            let Some((part, read)) = read_trigger(&sql) else {
                continue;
            };
            let known = guards.iter().position(|guard| same(&guard.fence, &read.fence));
            let known = known.unwrap_or_else(|| {
                guards.push(Self {
                    fence: read.fence.clone(),
                    ..Self::default()
                });
                guards.len() - 1
            });
            if let Some(guard) = guards.get_mut(known) {
                guard.mode = read.mode;
                guard.columns = guard.columns.take().or(read.columns);
                guard.memory = guard.memory.take().or(read.memory);
                guard.triggers.push((part, name, sql));
            }
        }
        Ok(guards)
    }

    /// The mode that the triggers say they were made in.
    pub(crate) fn mode(&self) -> &str {
        &self.mode
    }

    /// Whether this is the guard that the table would be given today, in the mode that it says, with all that it needs.
    pub(crate) fn is_whole(&self, db: &Connection, table: &Table) -> bool {
        let Some(fence) = table.position(&self.fence) else {
            return false;
        };
        let columns = self.columns.as_ref().map(|columns| {
            let mut positions: Vec<_> = columns.iter().filter_map(|column| table.position(column)).collect();
            positions.sort_unstable();
            positions
        });
        let Some(mode) = Mode::named(&self.mode) else {
            return false;
        };
        let rule = if mode.raises {
            Rule::Write(columns)
        } else {
            Rule::Holder
        };
        let memory = match mode.remembers.then(|| Memory::of(table, fence, Some(self))).transpose() {
            Ok(memory) => memory,
            Err(_) => return false,
        };
        self.is(
            db,
            &Guard {
                table,
                fence,
                rule,
                memory,
            },
        )
    }

    /// Whether its triggers do what this guard's would, and the table that remembers is there.
    pub(crate) fn is(&self, db: &Connection, guard: &Guard<'_>) -> bool {
        let exists = |memory: &Memory| memory::exists(db, &guard.table.place.schema, &memory.name);
        let name = |wanted: Part| {
            let named = self.triggers.iter().find(|(part, ..)| *part == wanted);
            named.map(|(_, name, _)| name.clone()).unwrap_or_default()
        };
        let wanted = guard.triggers(name);
        guard.memory.iter().all(exists)
            && wanted.len() == self.triggers.len()
            && wanted.iter().all(|(part, sql)| {
                self.triggers
                    .iter()
                    .any(|(known, _, standing)| known == part && unsigned(standing) == unsigned(sql))
            })
    }

    pub(crate) fn drop(&self, db: &Connection, schema: &str) -> Result<()> {
        for (_, trigger, _) in &self.triggers {
            let sql = format!("drop trigger {}.{}", name(schema), name(trigger));
            run(db, "cannot drop a trigger of the guard", &sql)?;
        }
        Ok(())
    }
}

/// A trigger without its name and without the line that says what made it, word by word.
fn unsigned(sql: &str) -> Vec<&str> {
    tokens(sql).iter().skip(3).map(|token| token.text).collect()
}

/// Reads a trigger of a guard.
fn read_trigger(sql: &str) -> Option<(Part, Standing)> {
    let words = tokens(sql);
    let signature = sql.lines().find(|line| line.starts_with(MADE_BY))?;
    let mode = signature.split_once("mode ")?.1.split_once('.')?.0;
    let event = words.iter().position(|word| word.is_word("before"))? + 1;
    let part = match words.get(event)? {
        insert if insert.is_word("insert") => Part::Insert,
        delete if delete.is_word("delete") => Part::Delete,
        _ if words.get(event + 1)?.is_word("of") => Part::Write,
        _ => Part::Update,
    };
    let columns = (part == Part::Write).then(|| {
        let listed = words.iter().skip(event + 2).take_while(|word| !word.is_word("on"));
        listed.filter_map(Token::identifier).collect()
    });
    let mut named = words.windows(3).filter_map(|window| match window {
        [row, dot, column] if row.is_word("new") && dot.is_sign(".") => column.identifier(),
        _ => None,
    });
    let (fence, memory) = match part {
        Part::Delete => read_memory(&words).map(|(fence, memory)| (fence, Some(memory)))?,
        _ => (named.next()?, None),
    };
    Some((
        part,
        Standing {
            fence,
            mode: mode.to_owned(),
            columns,
            memory,
            triggers: Vec::new(),
        },
    ))
}

/// Reads the trigger for deletion: the fence column, and what is kept of a row where. It first says
/// `select old.… as k1, …, old.… as f`, and then `insert into … (…, …)`, with as many columns.
fn read_memory(words: &[Token<'_>]) -> Option<(String, Remembered)> {
    let into = words.iter().position(|word| word.is_word("into"))? + 1;
    let table = words.get(into)?.identifier()?;
    let listed = words.iter().skip(into + 2).take_while(|word| !word.is_sign(")"));
    let mut there: Vec<_> = listed.filter_map(Token::identifier).collect();
    let kept = words.windows(3).filter_map(|window| match window {
        [row, dot, column] if row.is_word("old") && dot.is_sign(".") => column.identifier(),
        _ => None,
    });
    let mut kept: Vec<_> = kept.take(there.len()).collect();
    let (fence, fence_there) = (kept.pop()?, there.pop()?);
    let memory = Remembered {
        table,
        columns: kept.into_iter().zip(there).collect(),
        fence: fence_there,
    };
    Some((fence, memory))
}
