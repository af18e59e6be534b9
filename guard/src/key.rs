//! A key: one way in which a new row takes the place of a standing one.
//!
//! A rowid, a primary key, a UNIQUE, a unique index. `REPLACE` deletes every row that stands under one of the new row's
//! keys, without a word to the triggers for deletion, so the guard looks at each of them before the new row comes in.
//! A key says `standing row = new row` in SQL: of the standing row by the bare names of its columns, so that the same
//! words can be said of any table that has these columns; of the new row by `new.`.
//!
//! The collation is the index's, NULL equals nothing, and where a NULL would be replaced by the column's default (`NOT
//! NULL` with `OR REPLACE`), it is the default that is compared.

use fence_core::shown;
use rusqlite::Connection;

use crate::affinity::Affinity;
use crate::ddl::{IndexText, index_text};
use crate::expression::{Expression, ROWIDS, compares};
use crate::query::{Error, Result, compile};
use crate::schema::{Column, Index, Table};
use crate::sql::{name, same};

/// A key of a table.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    terms: Vec<Term>,
    /// The WHERE of a partial index.
    predicate: Option<Predicate>,
    /// The rowid's name where it is no column.
    pub(crate) hidden_rowid: Option<&'static str>,
}

/// One term of a key, and the collation by which it compares.
#[derive(Clone, Debug)]
struct Term {
    of: Of,
    collation: String,
}

/// What a term is.
#[derive(Clone, Debug)]
enum Of {
    Column(usize),
    Expression(Expression),
}

/// The WHERE of a partial index, and whether it compares values.
#[derive(Clone, Debug)]
struct Predicate {
    says: Expression,
    compares: bool,
}

impl Key {
    /// The rowid of a table that has one. (None if three columns hide it: then no statement can name it either.)
    pub(crate) fn rowid(table: &Table) -> Option<Self> {
        let (terms, hidden_rowid) = match table.rowid_alias {
            Some(alias) => {
                let (of, collation) = (Of::Column(alias), "BINARY".to_owned());
                (vec![Term { of, collation }], None)
            }
            None => (
                Vec::new(),
                Some(ROWIDS.into_iter().find(|id| table.position(id).is_none())?),
            ),
        };
        Some(Self {
            terms,
            predicate: None,
            hidden_rowid,
        })
    }

    /// A unique index, if all that it says of a row can be said of a new one.
    pub(crate) fn index(db: &Connection, table: &Table, index: &Index) -> Result<Self> {
        Self::read(db, table, index).map_err(|why| {
            Error::refused(format!(
                "fence: cannot look through the unique index {} of {}: {why}: a write could replace a row by it unseen; \
                 make it an index on columns, or guard a table without it",
                shown::text(index.name.as_bytes()),
                table.place,
            ))
        })
    }

    fn read(db: &Connection, table: &Table, index: &Index) -> std::result::Result<Self, String> {
        const UNREAD: &str = "its text cannot be read";
        let in_words = index.partial || index.terms.iter().any(|term| term.column.is_none());
        let text = if in_words {
            index_text(&index.sql).ok_or(UNREAD)?
        } else {
            IndexText::default()
        };
        let mut terms = Vec::with_capacity(index.terms.len());
        for (i, term) in index.terms.iter().enumerate() {
            let of = match term.column {
                Some(position) => Of::Column(position),
                None => {
                    let said = text.terms.get(i).copied().ok_or(UNREAD)?;
                    if compares(said) {
                        return Err(format!(
                            "its expression {} compares values, which comes out differently in a trigger",
                            shown::text(said.as_bytes())
                        ));
                    }
                    Of::Expression(read_expression(db, table, said)?)
                }
            };
            let collation = term.collation.clone();
            terms.push(Term { of, collation });
        }
        let predicate = match text.predicate {
            Some(said) => Some(Predicate {
                says: read_expression(db, table, said)?,
                compares: compares(said),
            }),
            None if index.partial => return Err(UNREAD.to_owned()),
            None => None,
        };
        let key = Self {
            terms,
            predicate,
            hidden_rowid: None,
        };
        if table.generated_from_rowid && key.is_generated(table) {
            return Err("a generated column uses the row's id, which is not known before an insert".to_owned());
        }
        Ok(key)
    }

    /// The columns that it looks at, by position.
    pub(crate) fn columns(&self) -> Vec<usize> {
        let mut columns: Vec<_> = self.in_words().collect();
        columns.extend(self.terms.iter().filter_map(|term| match &term.of {
            Of::Column(position) => Some(*position),
            Of::Expression(_) => None,
        }));
        columns.sort_unstable();
        columns.dedup();
        columns
    }

    /// The columns that an expression or a predicate of it looks at.
    pub(crate) fn in_words(&self) -> impl Iterator<Item = usize> {
        let expressions = self.terms.iter().filter_map(|term| match &term.of {
            Of::Column(_) => None,
            Of::Expression(expression) => Some(expression),
        });
        let predicates = self.predicate.iter().map(|predicate| &predicate.says);
        expressions.chain(predicates).flat_map(Expression::columns)
    }

    /// Whether it looks at a generated column.
    pub(crate) fn is_generated(&self, table: &Table) -> bool {
        let generated = |position: &usize| table.columns.get(*position).is_some_and(|column| column.generated);
        self.columns().iter().any(generated)
    }

    /// `standing row = new row`; `standing` gives the names of the standing row's columns.
    pub(crate) fn matches(&self, table: &Table, standing: impl Fn(usize) -> String) -> String {
        let mut conditions: Vec<_> = self.hidden_rowid.iter().map(|id| format!("{id} = new.{id}")).collect();
        for term in &self.terms {
            let collate = term.collate(table);
            conditions.push(match &term.of {
                Of::Column(position) => format!("{} = {}{collate}", standing(*position), incoming(table, *position)),
                Of::Expression(expression) => {
                    let new = expression.say(|position| new(table, position));
                    format!("{} = {new}{collate}", expression.say(&standing))
                }
            });
        }
        if let Some(predicate) = &self.predicate {
            conditions.push(predicate.says.say(&standing));
            conditions.push(predicate.of_new(table));
        }
        conditions.join(" and ")
    }

    /// Its terms as those of an index of another table, which has the columns under the names that `standing` gives.
    pub(crate) fn indexed(&self, table: &Table, standing: impl Fn(usize) -> String) -> String {
        let term = |term: &Term| {
            let said = match &term.of {
                Of::Column(position) => standing(*position),
                Of::Expression(expression) => expression.say(&standing),
            };
            format!("{said}{}", term.collate(table))
        };
        self.terms.iter().map(term).collect::<Vec<_>>().join(", ")
    }
}

impl Term {
    /// The collation, where it is not the one that the comparison has anyhow.
    fn collate(&self, table: &Table) -> String {
        match &self.of {
            Of::Column(position)
                if table
                    .columns
                    .get(*position)
                    .is_some_and(|column| same(&column.collation, &self.collation)) =>
            {
                String::new()
            }
            _ => format!(" collate {}", name(&self.collation)),
        }
    }
}

impl Predicate {
    /// Said of the new row. `new.column` has no affinity in a trigger, so where the predicate compares, the new values
    /// are given theirs by CAST. That changes no value that fits the column; a value that does not (text in an INTEGER
    /// column) counts as within the index.
    fn of_new(&self, table: &Table) -> String {
        if !self.compares {
            return self.says.say(|position| new(table, position));
        }
        let affinity = |position: usize| table.columns.get(position).map(|column| column.affinity);
        let mut conditions: Vec<String> = Vec::new();
        for position in self.says.columns() {
            let fit = match affinity(position) {
                Some(Affinity::Text) => "'text', 'null'",
                Some(Affinity::Integer | Affinity::Real | Affinity::Numeric) => "'integer', 'real', 'null'",
                Some(Affinity::Blob) | None => continue,
            };
            let unfit = format!("typeof({}) not in ({fit})", new(table, position));
            if !conditions.contains(&unfit) {
                conditions.push(unfit);
            }
        }
        conditions.push(self.says.say(|position| {
            let value = new(table, position);
            match affinity(position) {
                Some(Affinity::Text) => format!("cast({value} as text)"),
                Some(Affinity::Real) => format!("cast({value} as real)"),
                Some(Affinity::Integer | Affinity::Numeric) => format!("cast({value} as numeric)"),
                Some(Affinity::Blob) | None => value,
            }
        }));
        format!("({})", conditions.join(" or "))
    }
}

/// Reads an expression of an index, and makes sure that no column was overlooked: it would be the standing row's in what is
/// said of the new one. Without any table there is nothing that it could be, and SQLite says so.
fn read_expression(db: &Connection, table: &Table, text: &str) -> std::result::Result<Expression, String> {
    let expression = Expression::read(text, &table.names())?;
    if expression.columns().any(|position| Some(position) == table.rowid_alias) {
        return Err("it uses the row's id, which is not known before an insert".to_owned());
    }
    compile(db, &format!("select {}", expression.say(|_| "null".to_owned()))).map_err(|error| error.to_string())?;
    Ok(expression)
}

/// A column of the new row.
fn new(table: &Table, position: usize) -> String {
    format!("new.{}", table.quoted(position))
}

/// What a column of the new row will hold. A NULL in a NOT NULL column becomes the default under OR REPLACE, and that
/// happens behind the triggers' back.
fn incoming(table: &Table, position: usize) -> String {
    let value = new(table, position);
    match table.columns.get(position) {
        Some(column) if stands_in(table, position, column) => {
            format!("coalesce({value}, {})", column.default.as_deref().unwrap_or("null"))
        }
        _ => value,
    }
}

/// Whether a column's default stands in for a NULL.
pub(crate) fn stands_in(table: &Table, position: usize, column: &Column) -> bool {
    column.not_null && column.default.is_some() && !column.generated && table.rowid_alias != Some(position)
}
