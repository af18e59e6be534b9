//! Hosts with which it cannot work: refused at load with a message, and alive. And two for which it must.
//!
//! The test process is the host, with the SQLite that is built into it, doctored. The library takes the functions of the
//! first host that it accepts, once for the process: so this is one test, in which the refusals come first.

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

/// The answer of a load that went well.
const PERMANENTLY: Result<i32, (i32, String)> = Ok(ffi::SQLITE_OK_LOAD_PERMANENTLY);

#[test]
fn a_host_that_cannot_do_is_refused_and_lives_and_one_that_just_can_has_everything() {
    let folder = folder();
    let db = Connection::open(folder.path().join("app.db")).expect("a database");
    too_old(&db);
    without_threads(&db);
    without_a_function(&db);
    without_any_function(&db);
    let first = with_the_needed_functions_alone(&db);
    second_library(&db, first);
}

/// A message with both versions, and nothing else of such a host is called: most of it was not there yet.
fn too_old(db: &Connection) {
    unsafe extern "C" fn just_too_old() -> i32 {
        3_034_000
    }
    unsafe extern "C" fn old() -> i32 {
        3_008_011
    }
    unsafe extern "C" fn ancient() -> i32 {
        3_003_008
    }
    let versions: [(unsafe extern "C" fn() -> i32, &str); 3] =
        [(just_too_old, "3.34.0"), (old, "3.8.11"), (ancient, "3.3.8")];
    for (libversion_number, version) in versions {
        let mut api = doctored::Api::nothing();
        *api.slot("malloc") = *doctored::api().clone().slot("malloc");
        *api.slot("libversion_number") = libversion_number as usize;
        let api = doctored::host(api);
        for entry in ["sqlite3_fence_init", "sqlite3_extension_init", "sqlite3_fencepure_init"] {
            let message = format!(
                "fence: the SQLite of this program is {version}, and fence needs 3.34.1 or newer: \
                 update the program or the SQLite library that it uses"
            );
            assert_eq!(
                doctored::load(library(), entry, db, api),
                Err((ffi::SQLITE_ERROR, message))
            );
        }
    }
    lives(db);
}

fn without_threads(db: &Connection) {
    unsafe extern "C" fn no_threads() -> i32 {
        0
    }
    let mut api = *doctored::api();
    *api.slot("xthreadsafe") = no_threads as *const () as usize;
    let refused = doctored::load(library(), "sqlite3_fence_init", db, doctored::host(api));
    let (_, message) = refused.expect_err("it has no threads");
    assert!(message.contains("SQLITE_THREADSAFE=0"), "{message}");
    lives(db);
}

/// Each is named, where there is a function to pass a message with.
fn without_a_function(db: &Connection) {
    for slot in NEEDED.split_whitespace() {
        let mut api = *doctored::api();
        *api.slot(slot) = 0;
        let api = doctored::host(api);
        // The struct calls two of them by another name.
        let name = slot.trim_matches('x');
        let message = format!("fence: this SQLite was built without sqlite3_{name}: use one that was built with it");
        for entry in ["sqlite3_fence_init", "sqlite3_fencepure_init"] {
            let refused = doctored::load(library(), entry, db, api);
            assert_eq!(refused, Err((ffi::SQLITE_ERROR, message.clone())));
        }
    }
    let mut api = *doctored::api();
    *api.slot("malloc") = 0;
    let refused = doctored::load(library(), "sqlite3_fence_init", db, doctored::host(api));
    assert_eq!(refused, Err((ffi::SQLITE_ERROR, String::new())));
    lives(db);
}

fn without_any_function(db: &Connection) {
    let refused = doctored::load(library(), "sqlite3_fence_init", db, None);
    assert_eq!(refused, Err((ffi::SQLITE_ERROR, String::new())));
    let refused = doctored::load(
        library(),
        "sqlite3_fence_init",
        db,
        doctored::host(doctored::Api::nothing()),
    );
    assert_eq!(refused, Err((ffi::SQLITE_ERROR, String::new())));
    lives(db);
}

/// Everything works. A call of anything else would be a panic, and so an error.
fn with_the_needed_functions_alone(db: &Connection) -> &'static doctored::Api {
    let mut api = doctored::Api::nothing();
    for slot in NEEDED.split_whitespace().chain(["malloc"]) {
        *api.slot(slot) = *doctored::api().clone().slot(slot);
    }
    let api = doctored::host(api);
    assert_eq!(doctored::load(library(), "sqlite3_fence_init", db, api), PERMANENTLY);
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
    api
}

/// The pointer tells them apart; that both are the same SQLite is of no account.
fn second_library(db: &Connection, first: &'static doctored::Api) {
    let other = Connection::open_in_memory().expect("a database in memory");
    for entry in ["sqlite3_fence_init", "sqlite3_fencepure_init"] {
        let (code, message) = doctored::load(library(), entry, &other, doctored::api()).expect_err("a second library");
        assert_eq!(code, ffi::SQLITE_ERROR);
        assert!(
            message.starts_with("fence: this process has two SQLite libraries, "),
            "{message}"
        );
    }
    lives(&other);
    // The first goes on, in this connection and in new ones.
    assert_eq!(db.query_row("select fence_ok(1, 2)", (), |row| row.get(0)), Ok(1));
    assert_eq!(
        doctored::load(library(), "sqlite3_fence_init", &other, first),
        PERMANENTLY
    );
    assert_eq!(other.query_row("select fence_ok(1, 2)", (), |row| row.get(0)), Ok(1));
}

fn lives(db: &Connection) {
    assert_eq!(db.query_row("select 1", (), |row| row.get(0)), Ok(1));
}
