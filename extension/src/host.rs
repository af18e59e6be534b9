//! The host's SQLite: what it is, what it offers, and that there is but one at a time.
//!
//! An extension calls its host through a struct of function pointers that SQLite passes to the entry point. rusqlite and
//! sqlite-loadable both keep it in statics of their own, and both panic at a function that is missing, rusqlite inside
//! `extern "C"`, where a panic ends the process. So before either of them runs, [`meet`] looks at the host itself and
//! refuses, with a message and a living host:
//!
//! - a SQLite older than 3.34.1, which is what rusqlite's bindings describe;
//! - a SQLite built without threads, or without a function that is called here;
//! - a second SQLite library in the process, while connections of the first have our functions. It would replace the
//!   first one's functions under them; and the two do not know of each other's POSIX locks, so they must not open one file
//!   in one process anyway.
//!
//! A program may unload its SQLite, as Node does with an addon when the last worker that used it ends, and load it again
//! elsewhere. We stay in the process, for we are loaded permanently. So what may call the host is counted, by a [`Guest`]
//! each: every registered function, until SQLite calls its destructor, and what belongs to a connection, its store
//! included. While there is one the host cannot have gone, since SQLite calls the destructors when a connection closes;
//! when there is none nothing of the host is called any more, and whoever comes next is the host.
//!
//! What comes after 3.34.1 is asked for by version and may be missing: [`is_interrupted`].

use std::cell::UnsafeCell;
use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::ffi;
use sqlite_loadable::{ErrorKind, FunctionFlags};
use sqlite3ext_sys::sqlite3_api_routines;

use crate::answer::SqlError;

/// The oldest SQLite that will do.
const OLDEST: Version = Version(3_034_001);
/// The first with `sqlite3_vtab_in` and the slots before it.
const WITH_VTAB_IN: Version = Version(3_038_000);
/// The first with `sqlite3_is_interrupted`.
const WITH_IS_INTERRUPTED: Version = Version(3_041_000);

/// The host of this process.
static HOST: Mutex<Host> = Mutex::new(Host {
    guests: 0,
    address: 0,
    version: Version(0),
});

struct Host {
    /// How many [`Guest`]s there are. The host is another one only while there is none.
    guests: usize,
    /// Where its functions stand in memory: no two SQLite libraries have that in common.
    address: usize,
    version: Version,
}

/// A copy of the host's functions, with `None` where it is too old to have one.
static API: Api = Api(UnsafeCell::new(MaybeUninit::uninit()));

struct Api(UnsafeCell<MaybeUninit<sqlite3_api_routines>>);

// SAFETY: it is written under the mutex of `HOST` while there is no guest, and read by guests alone.
unsafe impl Sync for Api {}

/// The right to call the host: it does not change, and has not gone, while there is a guest.
pub(crate) struct Guest(());

impl Guest {
    /// One more, for whom a guest lets in.
    pub(crate) fn another(&self) -> Self {
        Self::enter(&mut host())
    }

    fn enter(host: &mut Host) -> Self {
        host.guests += 1;
        Self(())
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut host = host();
        host.guests = host.guests.saturating_sub(1);
    }
}

fn host() -> MutexGuard<'static, Host> {
    // Nothing that can panic runs under this mutex with the host half changed.
    HOST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A version as SQLite numbers it: 3034001 for 3.34.1.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Version(c_int);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.0 / 1_000_000, self.0 / 1000 % 1000, self.0 % 1000)
    }
}

/// Whether the statement that runs on this connection was told to stop.
///
/// From 3.41 on SQLite tells. Before, it shows it: until the statement has ended, it refuses to begin another one. Nothing
/// but a space is begun here, so that nothing runs, and no authorizer or trace of the host's is called.
pub(crate) fn is_interrupted(db: *mut ffi::sqlite3) -> bool {
    // SAFETY: a function runs on a connection, and it is a guest: the copy was written, and is not now.
    let is_interrupted = unsafe { (*API.0.get()).assume_init_ref() }.is_interrupted;
    if let Some(is_interrupted) = is_interrupted {
        // SAFETY: the function is the host's own, and `db` one of its open connections.
        return unsafe { is_interrupted(db) } != 0;
    }
    let mut nothing = ptr::null_mut();
    // SAFETY: `db` is open; the text is a C string; of a space SQLite makes no statement, so there is none to finalize.
    let code = unsafe { ffi::sqlite3_prepare_v2(db, c" ".as_ptr(), -1, &raw mut nothing, ptr::null_mut()) };
    code == ffi::SQLITE_INTERRUPT
}

/// Registers a pure function with sqlite-loadable.
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
    sqlite_loadable::define_scalar_function(
        db,
        name,
        arguments,
        // Never an error of sqlite-loadable's, for it knows no result codes.
        move |context, values| {
            run(context, values);
            Ok(())
        },
        FunctionFlags::from_bits_truncate(flags),
    )
    .map_err(|error| match error.kind() {
        ErrorKind::DefineScalarFunction(code) => *code,
        _ => ffi::SQLITE_ERROR,
    })
}

/// What sqlite-loadable calls for the host's `sqlite3_create_function_v2`. It passes no destructor; with one the function
/// is a guest for as long as SQLite has it.
unsafe extern "C" fn create_guest(
    db: *mut ffi::sqlite3,
    name: *const c_char,
    arguments: c_int,
    flags: c_int,
    run: *mut c_void,
    call: Option<unsafe extern "C" fn(*mut ffi::sqlite3_context, c_int, *mut *mut ffi::sqlite3_value)>,
    step: Option<unsafe extern "C" fn(*mut ffi::sqlite3_context, c_int, *mut *mut ffi::sqlite3_value)>,
    last: Option<unsafe extern "C" fn(*mut ffi::sqlite3_context)>,
    _: Option<unsafe extern "C" fn(*mut c_void)>,
) -> c_int {
    unsafe extern "C" fn leave(_: *mut c_void) {
        drop(Guest(()));
    }
    std::mem::forget(Guest::enter(&mut host()));
    // SAFETY: these are the arguments of a registration; SQLite calls the destructor exactly once, also if it refuses.
    unsafe { ffi::sqlite3_create_function_v2(db, name, arguments, flags, run, call, step, last, Some(leave)) }
}

/// Looks at the host and, while it has no guest, hands its functions to rusqlite and sqlite-loadable; while it has some,
/// makes sure that it is the same host. The answer is a guest, to be kept until something else of the connection is one.
///
/// # Safety
///
/// `api` is what a SQLite passed to an entry point.
pub(crate) unsafe fn meet(api: *mut ffi::sqlite3_api_routines) -> Result<Guest, SqlError> {
    if api.is_null() {
        return Err(SqlError::error(
            "fence: this SQLite passes no functions to its extensions: use one that does",
        ));
    }
    // SAFETY: `api` is a SQLite's struct.
    let version = unsafe { version(api) }?;
    let mut host = host();
    if host.guests == 0 {
        // Also when the address is that of the last one: another library may stand there by now.
        // SAFETY: as above, and the version was looked at.
        unsafe { introduce(api, version) }?;
        (host.address, host.version) = (api.addr(), version);
    }
    if host.address != api.addr() {
        return Err(SqlError::error(format!(
            "fence: this process has two SQLite libraries, {} which loaded fence first, and {version}: \
             let the program use one SQLite library for all of its connections",
            host.version,
        )));
    }
    Ok(Guest::enter(&mut host))
}

/// The host's version, if it is new enough.
///
/// # Safety
///
/// `api` is a SQLite's struct. Of an old one nothing may be read here but what stood in it from the start.
unsafe fn version(api: *const ffi::sqlite3_api_routines) -> Result<Version, SqlError> {
    // SAFETY: this function has been in the struct since SQLite has extensions.
    let libversion_number = unsafe { (&raw const (*api).libversion_number).read() };
    let Some(libversion_number) = libversion_number else {
        return Err(missing("libversion_number"));
    };
    // SAFETY: it takes nothing and returns a constant.
    let version = Version(unsafe { libversion_number() });
    if version < OLDEST {
        return Err(SqlError::error(format!(
            "fence: the SQLite of this program is {version}, and fence needs {OLDEST} or newer: \
             update the program or the SQLite library that it uses",
        )));
    }
    Ok(version)
}

/// Checks the host for all that will be called, and passes its functions on.
///
/// # Safety
///
/// `api` is the struct of a SQLite of this version, and that is no older than [`OLDEST`]. The mutex of [`HOST`] is locked,
/// and there is no guest.
unsafe fn introduce(api: *mut ffi::sqlite3_api_routines, version: Version) -> Result<(), SqlError> {
    // SAFETY: the struct is at least as long as that of 3.34.1, which `ffi` describes.
    let mut base = unsafe { api.read() };
    if let Some(name) = missing_slot(&base) {
        return Err(missing(name));
    }
    // SAFETY: it takes nothing and returns a constant.
    if base.xthreadsafe.is_some_and(|threadsafe| unsafe { threadsafe() } == 0) {
        return Err(SqlError::error(
            "fence: this SQLite was built without threads (SQLITE_THREADSAFE=0): use one that was built with them",
        ));
    }
    // SAFETY: every function that rusqlite can be made to call here is there, and the version was checked.
    unsafe { ffi::rusqlite_extension_init2(api) }
        .map_err(|error| SqlError::error(format!("fence: this SQLite cannot be used: {error}")))?;
    base.create_function_v2 = Some(create_guest);
    // SAFETY: the caller's promises: there is no guest, so nobody else writes or reads the copy or sqlite-loadable's
    // static, which only reads through the pointer.
    unsafe {
        (*API.0.get()).write(copy(base, api.cast(), version));
        sqlite_loadable::ext::faux_sqlite_extension_init2(API.0.get().cast());
    }
    Ok(())
}

/// The host's functions, as far as its version goes.
///
/// # Safety
///
/// `api` is the struct of a SQLite of this version.
unsafe fn copy(
    base: ffi::sqlite3_api_routines,
    api: *const sqlite3_api_routines,
    version: Version,
) -> sqlite3_api_routines {
    /// The slot, if the host is new enough to have it.
    macro_rules! since {
        ($version:expr, $slot:ident) => {
            if version >= $version {
                // SAFETY: the caller's promise, and SQLite never moves a slot.
                unsafe { (&raw const (*api).$slot).read() }
            } else {
                None
            }
        };
    }
    sqlite3_api_routines {
        base,
        changes64: None,
        total_changes64: None,
        autovacuum_pages: None,
        error_offset: None,
        vtab_rhs_value: None,
        vtab_distinct: since!(WITH_VTAB_IN, vtab_distinct),
        vtab_in: since!(WITH_VTAB_IN, vtab_in),
        vtab_in_first: since!(WITH_VTAB_IN, vtab_in_first),
        vtab_in_next: since!(WITH_VTAB_IN, vtab_in_next),
        deserialize: None,
        serialize: None,
        db_name: None,
        value_encoding: None,
        is_interrupted: since!(WITH_IS_INTERRUPTED, is_interrupted),
    }
}

fn missing(slot: &str) -> SqlError {
    // Two of the slots have an x that their functions have not.
    let name = slot.trim_matches('x');
    SqlError::error(format!(
        "fence: this SQLite was built without sqlite3_{name}: use one that was built with it"
    ))
}

/// Names the first function that is called here and that the host lacks.
fn missing_slot(api: &ffi::sqlite3_api_routines) -> Option<&'static str> {
    macro_rules! first_missing {
        ($($slot:ident)*) => {
            $(if api.$slot.is_none() {
                return Some(stringify!($slot));
            })*
        };
    }
    first_missing! {
        // What an extension is.
        libversion libversion_number xthreadsafe create_function_v2 create_module_v2 declare_vtab user_data
        context_db_handle get_auxdata set_auxdata overload_function vtab_config vtab_on_conflict
        // Values and results.
        value_type value_int value_int64 value_double value_text value_blob value_bytes value_pointer value_subtype
        value_nochange
        result_null result_int result_int64 result_double result_text result_text64 result_blob result_blob64
        result_zeroblob result_value result_pointer result_subtype
        result_error result_error_code result_error_nomem result_error_toobig
        // Connections.
        open_v2 close extended_result_codes errcode extended_errcode errmsg errstr busy_handler busy_timeout
        changes total_changes last_insert_rowid get_autocommit txn_state interruptx db_filename db_readonly db_config
        file_control wal_hook table_column_metadata db_release_memory db_cacheflush
        // Statements.
        prepare_v2 prepare_v3 step reset finalize clear_bindings sql expanded_sql next_stmt db_handle
        stmt_readonly stmt_busy stmt_status stmt_isexplain
        bind_null bind_int bind_int64 bind_double bind_text bind_text64 bind_blob64 bind_zeroblob bind_pointer
        bind_parameter_count bind_parameter_index bind_parameter_name
        column_count column_name column_type column_int64 column_double column_text column_blob column_bytes
        column_value
        // Memory and mutexes.
        malloc malloc64 free mprintf mutex_alloc mutex_free mutex_enter mutex_leave keyword_check
    }
    None
}

/// Gives SQLite the message of a load that failed. Without a message if there is no memory for it.
///
/// # Safety
///
/// `api` and `message` are what a SQLite passed to an entry point.
pub(crate) unsafe fn set_load_message(api: *const ffi::sqlite3_api_routines, message: *mut *mut c_char, text: &str) {
    if api.is_null() || message.is_null() {
        return;
    }
    // SAFETY: this function has been in the struct since SQLite has extensions.
    let Some(malloc) = (unsafe { (&raw const (*api).malloc).read() }) else {
        return;
    };
    let bytes = text.as_bytes();
    let Ok(size) = c_int::try_from(bytes.len() + 1) else {
        return;
    };
    // SAFETY: SQLite frees this with the function that belongs to this one.
    let copy = unsafe { malloc(size) }.cast::<c_char>();
    if copy.is_null() {
        return;
    }
    // SAFETY: the new memory has room for the bytes and the NUL, and `message` is SQLite's own variable.
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr().cast(), copy, bytes.len());
        copy.add(bytes.len()).write(0);
        message.write(copy);
    }
}
