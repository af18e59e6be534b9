//! The acquires as tables: `select fence from fence_acquire('chat:42', 30000)`.
//!
//! SQLite may call a scalar function more often than it is written: in
//! `select f from (select fence_acquire('k') as f) where f is not null` it is called twice, and the second call finds the
//! key held. A table's arguments are read once and its row is made once for each time that the table is scanned. The
//! table has the name of the function, its arguments as hidden columns, and always one row: the function's answer.

use std::borrow::Cow;
use std::ffi::{CStr, c_int};
use std::marker::PhantomData;
use std::sync::Arc;

use rusqlite::Connection;
use rusqlite::types::Null;
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConfig, VTabConnection, VTabCursor, sqlite3_vtab,
    sqlite3_vtab_cursor,
};

use super::{lease, permit, several};
use crate::answer::{Answer, SqlError};
use crate::connection::HostConnection;
use crate::functions::Stateful;
use crate::register::barrier;
use crate::value::{Args, Value};

/// One such table.
struct Form {
    name: &'static str,
    /// The answer's column, then the arguments in order.
    declaration: &'static CStr,
    /// How many arguments there may be.
    most: c_int,
    run: Stateful,
}

static FORMS: [Form; 3] = [
    Form {
        name: "fence_acquire",
        declaration: c"create table x(fence, key hidden, ttl_ms hidden, wait_ms hidden, options hidden)",
        most: 4,
        run: lease::acquire,
    },
    Form {
        name: "fence_acquire_all",
        declaration: c"create table x(fence, keys hidden, ttl_ms hidden, wait_ms hidden, options hidden)",
        most: 4,
        run: several::acquire,
    },
    Form {
        name: "semaphore_acquire",
        declaration:
            c"create table x(permit, key hidden, \"limit\" hidden, ttl_ms hidden, wait_ms hidden, options hidden)",
        most: 5,
        run: permit::acquire,
    },
];

/// Registers the table of this name.
pub(crate) fn register(db: &Connection, name: &'static str, connection: Arc<HostConnection>) -> rusqlite::Result<()> {
    const MODULE: Module<'_, AsTable> = Module::eponymous_only_module();
    match FORMS.iter().find(|form| form.name == name) {
        Some(form) => db.create_module(name, &MODULE, Some((connection, form))),
        None => Err(SqlError::error(format!("fence: there is no table {name}")).into()),
    }
}

#[repr(C)]
struct AsTable {
    base: sqlite3_vtab,
    call: Option<(Arc<HostConnection>, &'static Form)>,
}

#[repr(C)]
struct Cursor<'vtab> {
    base: sqlite3_vtab_cursor,
    call: Option<(Arc<HostConnection>, &'static Form)>,
    answer: Option<Answer>,
    table: PhantomData<&'vtab AsTable>,
}

// SAFETY: `base` is the first field of a `repr(C)` struct.
unsafe impl<'vtab> VTab<'vtab> for AsTable {
    type Aux = (Arc<HostConnection>, &'static Form);
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
        let declaration = aux.map_or(c"create table x(fence)", |(_, form)| form.declaration);
        Ok((
            Cow::Borrowed(declaration),
            Self {
                base: sqlite3_vtab::default(),
                call: aux.cloned(),
            },
        ))
    }

    /// Asks for the arguments, which are equations on the hidden columns, in the order of the columns. The plan's number
    /// tells how many there are.
    fn best_index(&self, info: &mut IndexInfo) -> rusqlite::Result<bool> {
        let most = self.call.as_ref().map_or(0, |(_, form)| form.most);
        let mut places: Vec<(c_int, usize)> = Vec::new();
        for (place, constraint) in info.constraints().enumerate() {
            let column = constraint.column();
            if !(1..=most).contains(&column) || constraint.operator() != IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ {
                continue;
            }
            if !constraint.is_usable() {
                return Ok(false); // SQLite asks again with the tables in another order.
            }
            if !places.iter().any(|(known, _)| *known == column) {
                places.push((column, place));
            }
        }
        places.sort_unstable();
        for (position, (column, place)) in (1..).zip(&places) {
            if *column != position {
                let name = self.call.as_ref().map_or("fence", |(_, form)| form.name);
                return Err(SqlError::error(format!(
                    "fence: {name} as a table was given argument {column} without those before it: give them all"
                ))
                .into());
            }
            let mut usage = info.constraint_usage(*place);
            usage.set_argv_index(position);
            usage.set_omit(true);
        }
        info.set_idx_num(c_int::try_from(places.len()).unwrap_or(0));
        info.set_estimated_cost(1.0);
        info.set_estimated_rows(1);
        Ok(true)
    }

    fn open(&'vtab mut self) -> rusqlite::Result<Cursor<'vtab>> {
        Ok(Cursor {
            base: sqlite3_vtab_cursor::default(),
            call: self.call.clone(),
            answer: None,
            table: PhantomData,
        })
    }
}

// SAFETY: `base` is the first field of a `repr(C)` struct.
unsafe impl VTabCursor for Cursor<'_> {
    fn filter(&mut self, _: c_int, _: Option<&str>, filters: &Filters<'_>) -> rusqlite::Result<()> {
        self.answer = None;
        let Some((connection, form)) = &self.call else {
            return Ok(());
        };
        let answer = barrier(form.name, || {
            let values: Vec<Value<'_>> = filters.iter().map(Value::from).collect();
            if values.is_empty() {
                return Err(SqlError::error(format!(
                    "fence: {} as a table was given no argument: give it those of the function",
                    form.name
                )));
            }
            (form.run)(connection, &Args::read(form.name, &values))
        })?;
        self.answer = Some(answer);
        Ok(())
    }

    fn next(&mut self) -> rusqlite::Result<()> {
        self.answer = None;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.answer.is_none()
    }

    fn column(&self, context: &mut Context, column: c_int) -> rusqlite::Result<()> {
        match (&self.answer, column) {
            (Some(Answer::Wire(fence)), 0) => context.set_result(&fence.as_str()),
            (Some(Answer::Text(text)), 0) => context.set_result(text),
            _ => context.set_result(&Null),
        }
    }

    fn rowid(&self) -> rusqlite::Result<i64> {
        Ok(1)
    }
}
