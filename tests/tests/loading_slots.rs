//! A host that was built without a part of SQLite: said at load, by name, and never found out later.
//!
//! A file of its own, so a process of its own: the library takes the functions of the first host that it accepts, and
//! here that is a doctored one.

use fence_tests::surface::examples;
use fence_tests::{doctored, folder, library};
use rusqlite::types::Value;
use rusqlite::{Connection, ffi};

/// The host's functions that the library asks for, but `malloc`: without that nobody could say what else is missing.
const NEEDED: &str = "
    libversion libversion_number xthreadsafe create_function_v2 create_module_v2 declare_vtab user_data
    context_db_handle get_auxdata set_auxdata overload_function vtab_config vtab_on_conflict
    value_type value_int value_int64 value_double value_text value_blob value_bytes value_pointer value_subtype
    value_nochange
    result_null result_int result_int64 result_double result_text result_text64 result_blob result_blob64
    result_zeroblob result_value result_pointer result_subtype
    result_error result_error_code result_error_nomem result_error_toobig
    open_v2 close extended_result_codes errcode extended_errcode errmsg errstr busy_handler busy_timeout
    changes total_changes last_insert_rowid get_autocommit txn_state interruptx db_filename db_readonly db_config
    file_control wal_hook table_column_metadata db_release_memory db_cacheflush
    prepare_v2 prepare_v3 step reset finalize clear_bindings sql expanded_sql next_stmt db_handle
    stmt_readonly stmt_busy stmt_status stmt_isexplain
    bind_null bind_int bind_int64 bind_double bind_text bind_text64 bind_blob64 bind_zeroblob bind_pointer
    bind_parameter_count bind_parameter_index bind_parameter_name
    column_count column_name column_type column_int64 column_double column_text column_blob column_bytes
    column_value
    malloc64 free mprintf mutex_alloc mutex_free mutex_enter mutex_leave keyword_check";

#[test]
fn a_missing_function_of_the_host_is_named_at_load_and_nothing_else_is_ever_called() {
    let folder = folder();
    let db = Connection::open(folder.path().join("app.db")).expect("a database");
    let full = *doctored::api();

    for slot in NEEDED.split_whitespace() {
        let mut api = full;
        *api.slot(slot) = 0;
        let api = doctored::host(api);
        // The struct calls two of them by another name.
        let name = slot.trim_matches('x');
        let message = format!("fence: this SQLite was built without sqlite3_{name}: use one that was built with it");
        for entry in ["sqlite3_fence_init", "sqlite3_fencepure_init"] {
            let refused = doctored::load(library(), entry, &db, api);
            assert_eq!(refused, Err((ffi::SQLITE_ERROR, message.clone())));
        }
    }

    // And with these alone everything works. A call of anything else would be a panic, and so an error.
    let mut these = doctored::Api::nothing();
    for slot in NEEDED.split_whitespace().chain(["malloc"]) {
        *these.slot(slot) = *full.clone().slot(slot);
    }
    let loaded = doctored::load(library(), "sqlite3_fence_init", &db, doctored::host(these));
    assert_eq!(loaded, Ok(ffi::SQLITE_OK_LOAD_PERMANENTLY));
    for (example, gives) in examples() {
        let value = match db.query_row(example, (), |row| row.get(0)) {
            Ok(Value::Integer(number)) => number.to_string(),
            Ok(Value::Text(text)) => text,
            other => panic!("{example}: {other:?}"),
        };
        assert_eq!(value, gives, "{example}");
    }
    let error = db
        .query_row("select fence_ok('x', 1)", (), |_| Ok(()))
        .expect_err("no fence");
    assert!(error.to_string().contains("fence: not a fence: "), "{error}");
}
