//! A table as the guard sees it: its columns, and every key by which one row can take the place of another.
//!
//! Read through SQLite's own table-valued pragmas. What they do not tell (STRICT, the text of an expression, what a
//! generated column is made of) is read from the CREATE statements, whose words SQLite keeps.

use fence_core::shown;
use rusqlite::Connection;

use crate::affinity::Affinity;
use crate::ddl::{default_expression, generated_from, has_option};
use crate::key::Key;
use crate::query::{Error, Result, Row, failed, rows};
use crate::sql::{self, Token, same, tokens};

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

impl Column {
    /// The default as the column holds it, by its affinity: `n integer default '0'` holds the number, and `n integer
    /// default 'none'` the text. (In a comparison with a CAST to a number, text that looks like one counts as one.)
    pub(crate) fn stored_default(&self) -> Option<String> {
        let default = self.default.as_ref()?;
        Some(match self.affinity {
            Affinity::Text => format!("cast({default} as text)"),
            Affinity::Integer | Affinity::Real | Affinity::Numeric if default.starts_with(['\'', '(']) => {
                let number = format!("cast({default} as numeric)");
                format!("case when {number} = {default} then {number} else {default} end")
            }
            _ => default.clone(),
        })
    }
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
pub(crate) fn schemas(db: &Connection) -> Result<Vec<String>> {
    let query = "select name from pragma_database_list order by seq";
    let rows = rows(db, "cannot list the databases", query, &[])?;
    Ok(rows.iter().map(|row| row.text(0)).collect())
}

/// The tables and views of a schema, without SQLite's own.
pub(crate) fn entries(db: &Connection, schema: &str) -> Result<Vec<Entry>> {
    let query = format!(
        "select name, type, sql from {}.sqlite_schema \
         where type in ('table', 'view') and name not like 'sqlite\\_%' escape '\\' order by name",
        sql::name(schema),
    );
    let found = rows(db, "cannot list the tables", &query, &[])?;
    // SQLite tells the tables of virtual tables since 3.37; before, they look like any other.
    let shadows = "select name from pragma_table_list where schema = ?1 and type = 'shadow'";
    let shadows = rows(db, "", shadows, &[schema]).unwrap_or_default();
    let entry = |row: Row| {
        let (table, sql) = (row.text(0), row.text(2));
        let is_virtual = tokens(&sql).get(1).is_some_and(|word| word.is_word("virtual"));
        let sort = if row.optional(1) == Some("view") {
            Sort::View
        } else if is_virtual {
            Sort::Virtual
        } else if shadows.iter().any(|shadow| shadow.text(0) == table) {
            Sort::Shadow
        } else {
            Sort::Table
        };
        let schema = schema.to_owned();
        Entry {
            place: Place { schema, table },
            sort,
            sql,
        }
    };
    Ok(found.into_iter().map(entry).collect())
}

/// Finds what an argument names: `table` of main, or `schema.table`; either part may be quoted as in SQL.
///
/// A table of main that is called so altogether comes first, so that every name of main can be named as it is.
pub(crate) fn find(db: &Connection, argument: &str) -> Result<Entry> {
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
    Err(Error::refused(format!(
        "fence: no table is called {}: name one of main as 'table', one of another database as 'schema.table'",
        shown::text(argument.as_bytes()),
    )))
}

impl Table {
    /// Reads a table; `entry` is one of sort [`Sort::Table`].
    pub(crate) fn read(db: &Connection, entry: &Entry) -> Result<Self> {
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
pub(crate) fn columns(db: &Connection, entry: &Entry) -> Result<Vec<Column>> {
    const DOING: &str = "cannot read the columns";
    let (place, strict) = (&entry.place, has_option(&tokens(&entry.sql), "strict"));
    let query = "select name, type, \"notnull\", dflt_value, hidden from pragma_table_xinfo(?1, ?2) order by cid";
    let mut columns = Vec::new();
    for row in rows(db, DOING, query, &[&place.table, &place.schema])? {
        let (name, declared) = (row.text(0), row.text(1));
        let (_, collation, ..) = db
            .column_metadata(Some(place.schema.as_str()), place.table.as_str(), name.as_str())
            .map_err(|error| failed(DOING, &error))?;
        columns.push(Column {
            affinity: Affinity::of(&declared, strict),
            collation: collation.map_or_else(|| "BINARY".into(), |name| name.to_string_lossy().into_owned()),
            not_null: row.number(2) != 0,
            default: row.optional(3).and_then(default_expression),
            generated: matches!(row.number(4), 2 | 3),
            name,
            declared,
        });
    }
    Ok(columns)
}

fn unique_indexes(db: &Connection, place: &Place) -> Result<Vec<Index>> {
    const DOING: &str = "cannot read the indexes";
    let query = "select name, origin = 'pk', partial from pragma_index_list(?1, ?2) where \"unique\" \
                 order by origin <> 'pk', name";
    let schema = sql::name(&place.schema);
    let mut indexes = Vec::new();
    for row in rows(db, DOING, query, &[&place.table, &place.schema])? {
        let name = row.text(0);
        let query = format!("select sql from {schema}.sqlite_schema where type = 'index' and name = ?1");
        let sql = rows(db, DOING, &query, &[&name])?;
        let query = "select cid, coll from pragma_index_xinfo(?1, ?2) where key order by seqno";
        let terms = rows(db, DOING, query, &[&name, &place.schema])?;
        let term = |row: &Row| IndexTerm {
            column: usize::try_from(row.number(0)).ok(),
            collation: row.text(1),
        };
        indexes.push(Index {
            of_primary_key: row.number(1) != 0,
            partial: row.number(2) != 0,
            sql: sql.first().map(|row| row.text(0)).unwrap_or_default(),
            terms: terms.iter().map(term).collect(),
            name,
        });
    }
    Ok(indexes)
}

/// The column that is the rowid: the only one of the primary key, declared INTEGER, and without an index for it.
/// (`INTEGER PRIMARY KEY DESC` has one, and is an ordinary column.)
fn rowid_alias(db: &Connection, table: &Table, indexes: &[Index]) -> Result<Option<usize>> {
    if indexes.iter().any(|index| index.of_primary_key) {
        return Ok(None);
    }
    let query = "select name from pragma_table_xinfo(?1, ?2) where pk = 1 and lower(type) = 'integer'";
    let (name, schema) = (&table.place.table, &table.place.schema);
    let rows = rows(db, "cannot read the primary key", query, &[name, schema])?;
    Ok(rows.first().and_then(|row| table.position(&row.text(0))))
}
