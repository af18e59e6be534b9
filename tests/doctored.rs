//! Calls the extension's entry points as a host that lacks something, or as a second host.
//!
//! SQLite passes an extension a struct of its functions. Here the test process is the host, with the SQLite that is built
//! into it; the struct is copied, and the copy is doctored before it is passed.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;
use std::sync::Once;
use std::sync::atomic::{AtomicPtr, Ordering};

use rusqlite::{Connection, ffi};

/// What SQLite calls the slots of the struct, in their order, up to SQLite 3.41. No slot ever moved.
const SLOTS: &str = "
    aggregate_context aggregate_count bind_blob bind_double bind_int bind_int64 bind_null bind_parameter_count
    bind_parameter_index bind_parameter_name bind_text bind_text16 bind_value busy_handler busy_timeout changes
    close collation_needed collation_needed16 column_blob column_bytes column_bytes16 column_count
    column_database_name column_database_name16 column_decltype column_decltype16 column_double column_int
    column_int64 column_name column_name16 column_origin_name column_origin_name16 column_table_name
    column_table_name16 column_text column_text16 column_type column_value commit_hook complete complete16
    create_collation create_collation16 create_function create_function16 create_module data_count db_handle
    declare_vtab enable_shared_cache errcode errmsg errmsg16 exec expired finalize free free_table
    get_autocommit get_auxdata get_table global_recover interruptx last_insert_rowid libversion
    libversion_number malloc mprintf open open16 prepare prepare16 profile progress_handler realloc reset
    result_blob result_double result_error result_error16 result_int result_int64 result_null result_text
    result_text16 result_text16be result_text16le result_value rollback_hook set_authorizer set_auxdata
    xsnprintf step table_column_metadata thread_cleanup total_changes trace transfer_bindings update_hook
    user_data value_blob value_bytes value_bytes16 value_double value_int value_int64 value_numeric_type
    value_text value_text16 value_text16be value_text16le value_type vmprintf overload_function prepare_v2
    prepare16_v2 clear_bindings create_module_v2 bind_zeroblob blob_bytes blob_close blob_open blob_read
    blob_write create_collation_v2 file_control memory_highwater memory_used mutex_alloc mutex_enter mutex_free
    mutex_leave mutex_try open_v2 release_memory result_error_nomem result_error_toobig sleep soft_heap_limit
    vfs_find vfs_register vfs_unregister xthreadsafe result_zeroblob result_error_code test_control randomness
    context_db_handle extended_result_codes limit next_stmt sql status backup_finish backup_init
    backup_pagecount backup_remaining backup_step compileoption_get compileoption_used create_function_v2
    db_config db_mutex db_status extended_errcode log soft_heap_limit64 sourceid stmt_status strnicmp
    unlock_notify wal_autocheckpoint wal_checkpoint wal_hook blob_reopen vtab_config vtab_on_conflict close_v2
    db_filename db_readonly db_release_memory errstr stmt_busy stmt_readonly stricmp uri_boolean uri_int64
    uri_parameter xvsnprintf wal_checkpoint_v2 auto_extension bind_blob64 bind_text64 cancel_auto_extension
    load_extension malloc64 msize realloc64 reset_auto_extension result_blob64 result_text64 strglob value_dup
    value_free result_zeroblob64 bind_zeroblob64 value_subtype result_subtype status64 strlike db_cacheflush
    system_errno trace_v2 expanded_sql set_last_insert_rowid prepare_v3 prepare16_v3 bind_pointer result_pointer
    value_pointer vtab_nochange value_nochange vtab_collation keyword_count keyword_name keyword_check str_new
    str_finish str_appendf str_vappendf str_append str_appendall str_appendchar str_reset str_errcode str_length
    str_value create_window_function normalized_sql stmt_isexplain value_frombind drop_modules hard_heap_limit64
    uri_key filename_database filename_journal filename_wal create_filename free_filename database_file_object
    txn_state changes64 total_changes64 autovacuum_pages error_offset vtab_rhs_value vtab_distinct vtab_in
    vtab_in_first vtab_in_next deserialize serialize db_name value_encoding is_interrupted";

/// How many of them there are.
const COUNT: usize = 267;

/// The functions of a host: the struct that SQLite passes, slot by slot. 0 is a function that the host has not.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Api([usize; COUNT]);

impl Api {
    /// A host that has nothing.
    pub fn nothing() -> Self {
        Self([0; COUNT])
    }

    /// The slot of this name.
    pub fn slot(&mut self, name: &str) -> &mut usize {
        let mut slots = SLOTS.split_whitespace();
        let index = slots.position(|slot| slot == name);
        &mut self.0[index.unwrap_or_else(|| panic!("no slot is called {name}"))]
    }
}

/// The functions of the SQLite in this process, as it passes them to its extensions.
pub fn api() -> &'static Api {
    static SEEN: AtomicPtr<Api> = AtomicPtr::new(ptr::null_mut());
    unsafe extern "C" fn see(
        _: *mut ffi::sqlite3,
        _: *mut *mut c_char,
        api: *const ffi::sqlite3_api_routines,
    ) -> c_int {
        SEEN.store(api.cast::<Api>().cast_mut(), Ordering::Release);
        ffi::SQLITE_OK
    }
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: `see` is an entry point, and touches none of its arguments.
        unsafe { ffi::sqlite3_auto_extension(Some(see)) };
        drop(Connection::open_in_memory().expect("a database in memory"));
        // SAFETY: it was registered above.
        unsafe { ffi::sqlite3_cancel_auto_extension(Some(see)) };
    });
    // SAFETY: SQLite passes a constant of its own, and the one in this process is newer than 3.41.
    unsafe { SEEN.load(Ordering::Acquire).as_ref() }.expect("SQLite calls its automatic extensions")
}

/// A host with these functions. It lives on, for an extension keeps its address.
pub fn host(api: Api) -> &'static Api {
    Box::leak(Box::new(api))
}

/// Loads the library into this connection through the entry point of this name, with these functions, or none at all.
/// Gives the entry point's answer, or its code and its message.
pub fn load(
    library: &Path,
    entry: &str,
    db: &Connection,
    api: impl Into<Option<&'static Api>>,
) -> Result<c_int, (c_int, String)> {
    type Entry = unsafe extern "C" fn(*mut ffi::sqlite3, *mut *mut c_char, *mut Api) -> c_int;
    // SAFETY: the symbol is an entry point of an extension, and those have this type.
    let entry: Entry = unsafe { std::mem::transmute(symbol(library, entry)) };
    let api = api.into().map_or(ptr::null(), ptr::from_ref).cast_mut();
    let mut message = ptr::null_mut();
    // SAFETY: the connection is open, and extensions only read through `api`.
    let code = unsafe { entry(db.handle(), &raw mut message, api) };
    if code == ffi::SQLITE_OK || code == ffi::SQLITE_OK_LOAD_PERMANENTLY {
        assert!(message.is_null(), "a message without an error");
        return Ok(code);
    }
    if message.is_null() {
        return Err((code, String::new()));
    }
    // SAFETY: the extension made the message with this SQLite's malloc, as SQLite wants it, and gave it away.
    let text = unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        ffi::sqlite3_free(message.cast());
        text
    };
    Err((code, text))
}

/// A symbol of the library, found as SQLite finds it. The library is never unloaded.
fn symbol(library: &Path, name: &str) -> *mut c_void {
    let path = CString::new(library.to_str().expect("a path in UTF-8")).expect("a path without NUL");
    let name = CString::new(name).expect("a name without NUL");
    // SAFETY: SQLite's default VFS has these methods, and they take what is passed.
    unsafe {
        let vfs = ffi::sqlite3_vfs_find(ptr::null());
        let open = (*vfs).xDlOpen.expect("a VFS that loads libraries");
        let find = (*vfs).xDlSym.expect("a VFS that loads libraries");
        let handle = open(vfs, path.as_ptr());
        assert!(!handle.is_null(), "{} does not open", library.display());
        let symbol = find(vfs, handle, name.as_ptr()).unwrap_or_else(|| panic!("no symbol {name:?}"));
        symbol as *mut c_void
    }
}
