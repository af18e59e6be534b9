//! A table as the guard sees it: its columns, and every key by which one row can take the place of another.
//!
//! Read through SQLite's own table-valued pragmas. What they do not tell (STRICT, the text of an expression, what a
//! generated column is made of) is read from the CREATE statements, whose words SQLite keeps.

use fence_core::shown;
use rusqlite::{Connection, OptionalExtension, params};

use super::affinity::Affinity;
use super::ddl::{default_expression, generated_from, has_option};
use super::failed;
use super::key::Key;
use super::sql::{self, Token, same, tokens};
use crate::answer::SqlError;

/// Where a table is: the schema and the name, as SQLite spells them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) schema: String,
    pub(crate) table: String,
}

impl std::fmt::Display for Place {
    /// `chats`, or `other.chats` outside of main: what [`find`] takes.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.schema.as_str() {
            "main" => write!(f, "{}", self.table),
            other => write!(f, "{other}.{}", self.table),
        }
    }
}

/// A column.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    pub(crate) name: String,
    pub(crate) declared: String,
    pub(crate) affinity: Affinity,
    pub(crate) collation: String,
    pub(crate) not_null: bool,
    /// The default as an expression that may stand anywhere.
    pub(crate) default: Option<String>,
    pub(crate) generated: bool,
}

/// A table that may be guarded.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) place: Place,
    pub(crate) columns: Vec<Column>,
    pub(crate) strict: bool,
    /// The column that is the rowid (INTEGER PRIMARY KEY).
    pub(crate) rowid_alias: Option<usize>,
    /// Whether a generated column is made of the row's id.
    pub(crate) generated_from_rowid: bool,
    pub(crate) keys: Vec<Key>,
}

/// What stands under a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sort {
    Table,
    View,
    Virtual,
    /// A table in which a virtual table keeps what it stores.
    Shadow,
}

/// A table, view or virtual table of a schema.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    pub(crate) sort: Sort,
    pub(crate) sql: String,
}

/// The schemas of a connection, in SQLite's order: main first.
pub(crate) fn schemas(db: &Connection) -> Result<Vec<String>, SqlError> {
    let doing = failed("cannot list the databases");
    let mut statement = db
        .prepare("select name from pragma_database_list order by seq")
        .map_err(&doing)?;
    let names = statement.query_map([], |row| row.get(0)).map_err(&doing)?;
    names.collect::<rusqlite::Result<_>>().map_err(&doing)
}

/// The tables and views of a schema, without SQLite's own.
pub(crate) fn entries(db: &Connection, schema: &str) -> Result<Vec<Entry>, SqlError> {
    let doing = failed("cannot list the tables");
    let query = format!(
        "select name, type, coalesce(sql, '') from {}.sqlite_schema \
         where type in ('table', 'view') and name not like 'sqlite\\_%' escape '\\' order by name",
        sql::name(schema),
    );
    let shadows = shadows(db, schema);
    let mut statement = db.prepare(&query).map_err(&doing)?;
    let entries = statement
        .query_map([], |row| {
            let (table, sort, sql): (String, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
            let is_virtual = tokens(&sql).get(1).is_some_and(|word| word.is_word("virtual"));
            Ok(Entry {
                sort: match sort.as_str() {
                    "view" => Sort::View,
                    _ if is_virtual => Sort::Virtual,
                    _ if shadows.contains(&table) => Sort::Shadow,
                    _ => Sort::Table,
                },
                place: Place {
                    schema: schema.to_owned(),
                    table,
                },
                sql,
            })
        })
        .map_err(&doing)?;
    entries.collect::<rusqlite::Result<_>>().map_err(&doing)
}

/// The tables of virtual tables. SQLite tells them since 3.37; before, they look like any other.
fn shadows(db: &Connection, schema: &str) -> Vec<String> {
    let listed = db
        .prepare("select name from pragma_table_list where schema = ?1 and type = 'shadow'")
        .and_then(|mut statement| statement.query_map([schema], |row| row.get(0))?.collect());
    listed.unwrap_or_default()
}

/// Finds what an argument names: `table` of main, or `schema.table`; either part may be quoted as in SQL.
///
/// A table of main that is called so altogether comes first, so that every name of main can be named as it is.
pub(crate) fn find(db: &Connection, argument: &str) -> Result<Entry, SqlError> {
    let schemas = schemas(db)?;
    let mut readings = vec![("main".to_owned(), argument.to_owned())];
    let words: Vec<_> = tokens(argument).iter().map(Token::identifier).collect();
    match words.as_slice() {
        [Some(table)] => readings.push(("main".to_owned(), table.clone())),
        [Some(schema), None, Some(table)] => readings.push((schema.clone(), table.clone())),
        _ => {}
    }
    for (dot, _) in argument.match_indices('.') {
        if let (Some(schema), Some(table)) = (argument.get(..dot), argument.get(dot + 1..)) {
            readings.push((schema.to_owned(), table.to_owned()));
        }
    }
    for (schema, table) in readings {
        let Some(schema) = schemas.iter().find(|known| same(known, &schema)) else {
            continue;
        };
        if let Some(found) = entries(db, schema)?
            .into_iter()
            .find(|entry| same(&entry.place.table, &table))
        {
            return Ok(found);
        }
    }
    Err(SqlError::error(format!(
        "fence: no table is called {}: name one of main as 'table', one of another database as 'schema.table'",
        shown::text(argument.as_bytes()),
    )))
}

impl Table {
    /// Reads a table; `entry` is one of sort [`Sort::Table`].
    pub(crate) fn read(db: &Connection, entry: &Entry) -> Result<Self, SqlError> {
        let words = tokens(&entry.sql);
        let mut table = Self {
            place: entry.place.clone(),
            columns: columns(db, entry)?,
            strict: has_option(&words, "strict"),
            rowid_alias: None,
            generated_from_rowid: false,
            keys: Vec::new(),
        };
        let indexes = unique_indexes(db, &table.place)?;
        if !has_option(&words, "without") {
            table.rowid_alias = rowid_alias(db, &table, &indexes)?;
            let id = table
                .rowid_alias
                .and_then(|i| table.columns.get(i))
                .map(|column| column.name.clone());
            table.generated_from_rowid = id.is_some_and(|id| generated_from(&words, &id));
            table.keys.extend(Key::rowid(&table));
        }
        for index in &indexes {
            let key = Key::index(db, &table, index)?;
            table.keys.push(key);
        }
        Ok(table)
    }

    /// The position of a column.
    pub(crate) fn position(&self, column: &str) -> Option<usize> {
        self.columns.iter().position(|known| same(&known.name, column))
    }

    /// The quoted name of the column at a position.
    pub(crate) fn quoted(&self, position: usize) -> String {
        self.columns
            .get(position)
            .map(|column| sql::name(&column.name))
            .unwrap_or_default()
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }
}

/// A unique index, as the pragmas list it.
#[derive(Clone, Debug)]
pub(crate) struct Index {
    pub(crate) name: String,
    pub(crate) of_primary_key: bool,
    pub(crate) partial: bool,
    /// CREATE INDEX; empty for an index that SQLite made for a UNIQUE or a PRIMARY KEY.
    pub(crate) sql: String,
    pub(crate) terms: Vec<IndexTerm>,
}

/// One of its terms: a column, or none for an expression; and by which collation it compares.
#[derive(Clone, Debug)]
pub(crate) struct IndexTerm {
    pub(crate) column: Option<usize>,
    pub(crate) collation: String,
}

/// The columns of a table, whatever its indexes are.
pub(crate) fn columns(db: &Connection, entry: &Entry) -> Result<Vec<Column>, SqlError> {
    let (place, strict) = (&entry.place, has_option(&tokens(&entry.sql), "strict"));
    let doing = failed("cannot read the columns");
    let mut statement = db
        .prepare("select name, type, \"notnull\", dflt_value, hidden from pragma_table_xinfo(?1, ?2) order by cid")
        .map_err(&doing)?;
    let columns = statement
        .query_map(params![place.table, place.schema], |row| {
            let (name, declared): (String, String) = (row.get(0)?, row.get(1)?);
            let (default, hidden): (Option<String>, i64) = (row.get(3)?, row.get(4)?);
            let (_, collation, ..) =
                db.column_metadata(Some(place.schema.as_str()), place.table.as_str(), name.as_str())?;
            Ok(Column {
                affinity: Affinity::of(&declared, strict),
                collation: collation.map_or_else(|| "BINARY".into(), |name| name.to_string_lossy().into_owned()),
                not_null: row.get(2)?,
                default: default.as_deref().and_then(default_expression),
                generated: hidden == 2 || hidden == 3,
                name,
                declared,
            })
        })
        .map_err(&doing)?;
    columns.collect::<rusqlite::Result<_>>().map_err(&doing)
}

fn unique_indexes(db: &Connection, place: &Place) -> Result<Vec<Index>, SqlError> {
    let doing = failed("cannot read the indexes");
    let mut statement = db
        .prepare(
            "select name, origin = 'pk', partial from pragma_index_list(?1, ?2) where \"unique\" \
             order by origin <> 'pk', name",
        )
        .map_err(&doing)?;
    let listed = statement
        .query_map(params![place.table, place.schema], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .and_then(Iterator::collect::<rusqlite::Result<Vec<(String, bool, bool)>>>)
        .map_err(&doing)?;
    let mut sql = db
        .prepare(&format!(
            "select coalesce(sql, '') from {}.sqlite_schema where type = 'index' and name = ?1",
            super::sql::name(&place.schema),
        ))
        .map_err(&doing)?;
    let mut terms = db
        .prepare("select cid, coll from pragma_index_xinfo(?1, ?2) where key order by seqno")
        .map_err(&doing)?;
    let mut indexes = Vec::with_capacity(listed.len());
    for (name, of_primary_key, partial) in listed {
        let sql = sql
            .query_row([&name], |row| row.get(0))
            .optional()
            .map_err(&doing)?
            .unwrap_or_default();
        let terms = terms
            .query_map(params![name, place.schema], |row| {
                let cid: i64 = row.get(0)?;
                Ok(IndexTerm {
                    column: usize::try_from(cid).ok(),
                    collation: row.get(1)?,
                })
            })
            .and_then(Iterator::collect)
            .map_err(&doing)?;
        indexes.push(Index {
            name,
            of_primary_key,
            partial,
            sql,
            terms,
        });
    }
    Ok(indexes)
}

/// The column that is the rowid: the only one of the primary key, declared INTEGER, and without an index for it.
/// (`INTEGER PRIMARY KEY DESC` has one, and is an ordinary column.)
fn rowid_alias(db: &Connection, table: &Table, indexes: &[Index]) -> Result<Option<usize>, SqlError> {
    if indexes.iter().any(|index| index.of_primary_key) {
        return Ok(None);
    }
    let doing = failed("cannot read the primary key");
    let name: Option<String> = db
        .query_row(
            "select name from pragma_table_xinfo(?1, ?2) where pk = 1 and lower(type) = 'integer'",
            params![table.place.table, table.place.schema],
            |row| row.get(0),
        )
        .optional()
        .map_err(&doing)?;
    Ok(name.and_then(|name| table.position(&name)))
}
