//! Leases with fences for SQLite, as a loadable extension.
//!
//! | entry point | registers |
//! |---|---|
//! | `sqlite3_fence_init` | everything |
//! | `sqlite3_extension_init` | the same; the name that SQLite looks for whatever the file is called |
//! | `sqlite3_fencepure_init` | the pure functions alone, for hosts that let strangers write SQL or replicate statements |
//!
//! All of them answer SQLITE_OK_LOAD_PERMANENTLY: the library stays in the process when the connection that loaded it
//! closes, for other connections may have its functions. (`sqlite3_auto_extension` takes that answer for a failure; load
//! into each connection instead.) Loading twice into one connection changes nothing.
//!
//! The way of a call, and where each thing has its place:
//!
//! - `host`: what the host's SQLite is and offers. It is looked at before anything else runs.
//! - `functions`: the table of all SQL functions and tables.
//! - `register`: how a row of that table becomes a function of a connection, and the barrier that no panic passes.
//! - `value`: the only reader of what SQL passes in. `answer`: what goes back, and errors.
//! - `connection`: what belongs to one connection of the host, and ends with it.
//! - `pure`, `store`, `guard`: the functions themselves.
//!
//! Invariants, each kept at one place: no panic passes into C (`register::barrier`); nothing is allocated for a call or
//! a connection that does not end with it (`register`, `connection`); a value is read as the type that it has, never
//! converted (`value`); a message is set before its code (`answer`).

mod answer;
mod connection;
#[cfg(feature = "fault")]
mod fault;
mod functions;
mod host;
mod pure;
mod register;
mod store;
mod value;

use std::ffi::{c_char, c_int};

use rusqlite::ffi;

use register::Scope;

/// Registers everything in this connection.
///
/// # Safety
///
/// To be called by SQLite, which passes the connection that is loading and its own functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_fence_init(
    db: *mut ffi::sqlite3,
    message: *mut *mut c_char,
    api: *mut ffi::sqlite3_api_routines,
) -> c_int {
    // SAFETY: these are SQLite's own arguments.
    unsafe { load(db, message, api, Scope::Everything) }
}

/// The same as [`sqlite3_fence_init`], under the name that SQLite tries first.
///
/// # Safety
///
/// To be called by SQLite, which passes the connection that is loading and its own functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_extension_init(
    db: *mut ffi::sqlite3,
    message: *mut *mut c_char,
    api: *mut ffi::sqlite3_api_routines,
) -> c_int {
    // SAFETY: these are SQLite's own arguments.
    unsafe { load(db, message, api, Scope::Everything) }
}

/// Registers the pure functions alone in this connection.
///
/// # Safety
///
/// To be called by SQLite, which passes the connection that is loading and its own functions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_fencepure_init(
    db: *mut ffi::sqlite3,
    message: *mut *mut c_char,
    api: *mut ffi::sqlite3_api_routines,
) -> c_int {
    // SAFETY: these are SQLite's own arguments.
    unsafe { load(db, message, api, Scope::Pure) }
}

/// What the entry points share.
///
/// # Safety
///
/// As for [`sqlite3_fence_init`].
unsafe fn load(
    db: *mut ffi::sqlite3,
    message: *mut *mut c_char,
    api: *mut ffi::sqlite3_api_routines,
    scope: Scope,
) -> c_int {
    let outcome = register::barrier("the entry point", || {
        // SAFETY: `api` is what SQLite passed.
        unsafe { host::meet(api) }?;
        // SAFETY: `db` is the connection that is loading, and the host's functions are known by now.
        unsafe { register::register(db, scope) }
    });
    match outcome {
        Ok(()) => ffi::SQLITE_OK_LOAD_PERMANENTLY,
        Err(error) => {
            // SAFETY: `api` and `message` are what SQLite passed.
            unsafe { host::set_load_message(api, message, &error.message) };
            error.code
        }
    }
}
