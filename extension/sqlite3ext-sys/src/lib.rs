//! SQLite's names as sqlite-loadable wants them, from the bindings that rusqlite uses.
//!
//! The published crate of this name builds a SQLite of its own and runs bindgen on it, for which it needs libclang; on a
//! fresh machine that fails. All that sqlite-loadable takes from it are types, a few constants and the struct through
//! which an extension calls its host, and libsqlite3-sys has them ready, for SQLite 3.34.1.
//!
//! Two things differ. The constants are unsigned here. And the struct goes on: sqlite-loadable names four functions of
//! SQLite 3.38, and [`sqlite3_api_routines`] appends them to the struct of 3.34.1.

#![allow(non_camel_case_types)]

use std::ffi::{c_char, c_int};
use std::ops::Deref;

pub use libsqlite3_sys::{
    sqlite3, sqlite3_context, sqlite3_index_constraint as sqlite3_index_info_sqlite3_index_constraint,
    sqlite3_index_constraint_usage as sqlite3_index_info_sqlite3_index_constraint_usage, sqlite3_index_info,
    sqlite3_index_orderby as sqlite3_index_info_sqlite3_index_orderby, sqlite3_int64, sqlite3_module, sqlite3_stmt,
    sqlite3_value, sqlite3_vtab, sqlite3_vtab_cursor,
};

macro_rules! unsigned {
    ($($name:ident)*) => {
        $(pub const $name: u32 = libsqlite3_sys::$name as u32;)*
    };
}

unsigned! {
    SQLITE_OK
    SQLITE_INTEGER SQLITE_FLOAT SQLITE_TEXT SQLITE_BLOB SQLITE_NULL
    SQLITE_UTF8 SQLITE_UTF16 SQLITE_UTF16BE SQLITE_UTF16LE
    SQLITE_DETERMINISTIC SQLITE_DIRECTONLY SQLITE_SUBTYPE SQLITE_INNOCUOUS
}

/// The functions of a host: those of SQLite 3.34.1 through `Deref`, then what SQLite appended, in its order, up to what
/// anybody here calls. `None` stands for what the host is too old for.
///
/// An older host's own struct ends earlier, so never point one of these at it: copy what it has.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct sqlite3_api_routines {
    /// Up to 3.34.1.
    pub base: libsqlite3_sys::sqlite3_api_routines,
    // 3.36.1
    pub changes64: Option<unsafe extern "C" fn(*mut sqlite3) -> sqlite3_int64>,
    pub total_changes64: Option<unsafe extern "C" fn(*mut sqlite3) -> sqlite3_int64>,
    // 3.37.0; nobody calls it here.
    pub autovacuum_pages: Option<unsafe extern "C" fn()>,
    // 3.38.0
    pub error_offset: Option<unsafe extern "C" fn(*mut sqlite3) -> c_int>,
    pub vtab_rhs_value: Option<unsafe extern "C" fn(*mut sqlite3_index_info, c_int, *mut *mut sqlite3_value) -> c_int>,
    pub vtab_distinct: Option<unsafe extern "C" fn(*mut sqlite3_index_info) -> c_int>,
    pub vtab_in: Option<unsafe extern "C" fn(*mut sqlite3_index_info, c_int, c_int) -> c_int>,
    pub vtab_in_first: Option<unsafe extern "C" fn(*mut sqlite3_value, *mut *mut sqlite3_value) -> c_int>,
    pub vtab_in_next: Option<unsafe extern "C" fn(*mut sqlite3_value, *mut *mut sqlite3_value) -> c_int>,
    // 3.39.0; nobody calls them here.
    pub deserialize: Option<unsafe extern "C" fn()>,
    pub serialize: Option<unsafe extern "C" fn()>,
    pub db_name: Option<unsafe extern "C" fn(*mut sqlite3, c_int) -> *const c_char>,
    // 3.40.0
    pub value_encoding: Option<unsafe extern "C" fn(*mut sqlite3_value) -> c_int>,
    // 3.41.0
    pub is_interrupted: Option<unsafe extern "C" fn(*mut sqlite3) -> c_int>,
}

impl Deref for sqlite3_api_routines {
    type Target = libsqlite3_sys::sqlite3_api_routines;

    fn deref(&self) -> &Self::Target {
        &self.base
    }
}
