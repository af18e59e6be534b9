//! The SQLite that is linked: what `host.rs` is where the functions are built into a program. There is nothing to meet and
//! nothing to refuse.

use std::ffi::{CString, c_int, c_void};

use rusqlite::ffi;

use crate::register::values_of;

/// The right to call the SQLite, which never goes.
pub(crate) struct Guest;

impl Guest {
    /// One more, for whom a guest lets in.
    pub(crate) fn another(&self) -> Self {
        Self
    }
}

/// Whether the statement that runs on this connection was told to stop.
pub(crate) fn is_interrupted(db: *mut ffi::sqlite3) -> bool {
    // SAFETY: `db` is open while a function of it runs.
    unsafe { ffi::sqlite3_is_interrupted(db) != 0 }
}

/// Registers a pure function. The closure has no size, so there is nothing to free when the connection closes.
pub(crate) fn define_pure<F>(
    db: *mut ffi::sqlite3,
    name: &str,
    arguments: c_int,
    flags: c_int,
    run: F,
) -> Result<(), c_int>
where
    F: Fn(*mut ffi::sqlite3_context, &[*mut ffi::sqlite3_value]) + 'static,
{
    let Ok(name) = CString::new(name) else {
        return Err(ffi::SQLITE_MISUSE);
    };
    // Of a type without a size every box is the same place, and no memory.
    let run: *mut F = Box::into_raw(Box::new(run));
    let run = run.cast::<c_void>();
    // SAFETY: the connection is open, and `call` is given the closure that it expects.
    let code = unsafe {
        ffi::sqlite3_create_function_v2(
            db,
            name.as_ptr(),
            arguments,
            flags,
            run,
            Some(call::<F>),
            None,
            None,
            None,
        )
    };
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(code) }
}

unsafe extern "C" fn call<F>(context: *mut ffi::sqlite3_context, count: c_int, passed: *mut *mut ffi::sqlite3_value)
where
    F: Fn(*mut ffi::sqlite3_context, &[*mut ffi::sqlite3_value]) + 'static,
{
    // SAFETY: `define_pure` registered this with a closure of this type, without a size; and SQLite passes as many values
    // as it says.
    let (run, values) = unsafe { (&*ffi::sqlite3_user_data(context).cast::<F>(), values_of(count, passed)) };
    run(context, values);
}
