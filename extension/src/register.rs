//! How a row of the table becomes a function of a connection, and the barrier that no panic passes.
//!
//! Pure functions are sqlite-loadable's. It gives SQLite a box with a closure and no way to free it, so each of ours is a
//! closure without a size, whose box is no allocation. It has no barrier either; ours goes round what runs inside.
//!
//! Functions that work on what belongs to a connection are given to SQLite by our own hand, with a destructor, which
//! SQLite calls when the connection closes or another function takes the place.

use std::any::Any;
use std::ffi::{CStr, CString, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::slice;
use std::sync::Arc;

use rusqlite::{Connection, ffi};

use crate::answer::{self, Answer, SqlError};
use crate::connection::HostConnection;
use crate::functions::{FUNCTIONS, Function, Runs, Stateful, TABLES};
use crate::host::{self, Guest};
use crate::pure::version::VERSION;
use crate::value::Args;

/// What an entry point registers.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Everything,
    /// For one of the entry points.
    #[cfg_attr(feature = "embedded", allow(dead_code))]
    Pure,
}

/// A row of the table, for one connection and one number of arguments.
pub(crate) struct Signature {
    db: *mut ffi::sqlite3,
    function: &'static Function,
    arguments: c_int,
}

/// Registers what belongs to the scope. What is registered already stays as it is.
///
/// # Safety
///
/// `db` is an open connection of the guest's host.
pub(crate) unsafe fn register(db: *mut ffi::sqlite3, scope: Scope, guest: &Guest) -> Result<(), SqlError> {
    // SAFETY: the caller's promise; the connection stays the host's, this handle does not close it.
    let handle = unsafe { Connection::from_handle(db) }
        .map_err(|error| SqlError::error(format!("fence: cannot use this connection: {error}")))?;
    register_pure(db, &handle)?;
    match scope {
        Scope::Pure => Ok(()),
        Scope::Everything => register_stateful(db, &handle, guest),
    }
}

fn register_pure(db: *mut ffi::sqlite3, handle: &Connection) -> Result<(), SqlError> {
    for function in FUNCTIONS {
        let Runs::Pure(registration) = function.runs else {
            continue;
        };
        for arguments in function.arity.clone() {
            match registration(&Signature {
                db,
                function,
                arguments,
            }) {
                Ok(()) => {}
                // SQLite replaces no function while statements run, and here one is, if this is the second load by
                // `select load_extension(...)`. The functions of the first will do.
                Err(ffi::SQLITE_BUSY) if has_pure_functions(handle) => return Ok(()),
                Err(code) => return Err(refused(db, function.name, code)),
            }
        }
    }
    Ok(())
}

/// Whether the pure functions of this very version are there.
fn has_pure_functions(handle: &Connection) -> bool {
    let version = handle.query_row("select fence_version()", (), |row| row.get::<_, String>(0));
    version.is_ok_and(|version| version == VERSION)
}

fn register_stateful(db: *mut ffi::sqlite3, handle: &Connection, guest: &Guest) -> Result<(), SqlError> {
    let connection = HostConnection::of(db, guest);
    if connection.is_complete() {
        // A second load must not take its store away from the connection.
        return Ok(());
    }
    for function in FUNCTIONS {
        let (Runs::Store(runs) | Runs::Check(runs)) = function.runs else {
            continue;
        };
        for arguments in function.arity.clone() {
            stateful(
                &Signature {
                    db,
                    function,
                    arguments,
                },
                runs,
                &connection,
            )
            .map_err(|code| refused(db, function.name, code))?;
        }
    }
    for table in TABLES {
        (table.register)(handle, table.name, Arc::clone(&connection))
            .map_err(|error| SqlError::error(format!("fence: cannot register {}: {error}", table.name)))?;
    }
    connection.set_complete();
    Ok(())
}

fn refused(db: *mut ffi::sqlite3, name: &str, code: c_int) -> SqlError {
    // SAFETY: the connection is open, and its message stands until its next call.
    let reason = unsafe { CStr::from_ptr(ffi::sqlite3_errmsg(db)) }.to_string_lossy();
    SqlError::new(
        code,
        format!("fence: cannot register {name}: {reason}: load fence before other statements run"),
    )
}

/// Registers a pure function.
pub(crate) fn pure<F>(signature: &Signature, run: F) -> Result<(), c_int>
where
    F: Fn(*mut ffi::sqlite3_context, &[*mut ffi::sqlite3_value]) + 'static,
{
    const {
        assert!(
            size_of::<F>() == 0,
            "what a closure captures would be left behind by every connection"
        )
    };
    let Signature {
        db,
        function,
        arguments,
    } = *signature;
    host::define_pure(db, function.name, arguments, function.flags, run)
}

/// What SQLite keeps for a stateful function: everything that a call of it needs.
struct Registered {
    name: &'static str,
    runs: Stateful,
    connection: Arc<HostConnection>,
}

/// Registers a stateful function with SQLite.
fn stateful(signature: &Signature, runs: Stateful, connection: &Arc<HostConnection>) -> Result<(), c_int> {
    let Signature {
        db,
        function,
        arguments,
    } = *signature;
    let Ok(name) = CString::new(function.name) else {
        return Err(ffi::SQLITE_MISUSE);
    };
    let registered = Box::new(Registered {
        name: function.name,
        runs,
        connection: Arc::clone(connection),
    });
    // SAFETY: the connection is open; SQLite calls the destructor exactly once, also if it refuses.
    let code = unsafe {
        ffi::sqlite3_create_function_v2(
            db,
            name.as_ptr(),
            arguments,
            function.flags,
            Box::into_raw(registered).cast(),
            Some(call_stateful),
            None,
            None,
            Some(drop_stateful),
        )
    };
    if code == ffi::SQLITE_OK { Ok(()) } else { Err(code) }
}

unsafe extern "C" fn call_stateful(
    context: *mut ffi::sqlite3_context,
    count: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: this function is only registered with a `Registered`, which lives until `drop_stateful`.
    let registered = unsafe { &*ffi::sqlite3_user_data(context).cast::<Registered>() };
    // SAFETY: SQLite passes as many values as it says.
    let values = unsafe { values_of(count, values) };
    let run = || (registered.runs)(&registered.connection, &Args::new(registered.name, values));
    answer(context, run, registered.name);
}

/// The values of a call.
///
/// # Safety
///
/// SQLite passes them to the call, and as many as it says.
pub(crate) unsafe fn values_of<'a>(
    count: c_int,
    values: *mut *mut ffi::sqlite3_value,
) -> &'a [*mut ffi::sqlite3_value] {
    match usize::try_from(count) {
        // SAFETY: the caller's promise.
        Ok(count @ 1..) => unsafe { slice::from_raw_parts(values, count) },
        _ => &[],
    }
}

unsafe extern "C" fn drop_stateful(registered: *mut c_void) {
    // A connection's end may close its store, hence the barrier. Of a fault nobody is there to be told.
    let _ = barrier("the end of a connection", || {
        // SAFETY: SQLite passes what `stateful` gave it, once.
        drop(unsafe { Box::from_raw(registered.cast::<Registered>()) });
        Ok(())
    });
}

/// Answers a call of a function, whatever happens in it.
#[inline]
pub(crate) fn answer(
    context: *mut ffi::sqlite3_context,
    run: impl FnOnce() -> Result<Answer, SqlError>,
    name: &'static str,
) {
    let given = barrier(name, || {
        // SAFETY: `context` is that of the call.
        unsafe { answer::give(context, run()) };
        Ok(())
    });
    if given.is_err() {
        // SAFETY: as above.
        unsafe { answer::give(context, given.map(|()| Answer::Null)) };
    }
}

/// The barrier: runs what is called from C, and turns a panic into an error. Every callback of ours goes through it, also
/// those of the tables, inside of rusqlite's, which have none.
#[inline]
pub(crate) fn barrier<T>(place: &'static str, run: impl FnOnce() -> Result<T, SqlError>) -> Result<T, SqlError> {
    // Nothing is seen half-done after a panic: what a call owns is dropped on its way out, and what outlives a call
    // keeps its own invariants.
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| Err(panicked(place, &*panic)))
}

#[cold]
fn panicked(place: &str, panic: &(dyn Any + Send)) -> SqlError {
    let what = match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(what), _) => what,
        (_, Some(what)) => what.as_str(),
        _ => "it does not say why",
    };
    SqlError::new(
        ffi::SQLITE_INTERNAL,
        format!("fence: a fault of fence itself in {place}: {what}: please report it; the program can go on"),
    )
}
