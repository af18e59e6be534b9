//! The entry points, which SQLite calls when a connection loads the library.

use std::ffi::{c_char, c_int};

use rusqlite::ffi;

use crate::host;
use crate::register::{self, Scope};

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
        let guest = unsafe { host::meet(api) }?;
        // SAFETY: `db` is the connection that is loading, and the host's functions are known by now.
        unsafe { register::register(db, scope, &guest) }
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
