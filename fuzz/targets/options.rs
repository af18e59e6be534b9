//! Options are taken or refused with a message of ours, and the connection works on.
#![no_main]

use libfuzzer_sys::fuzz_target;
use rusqlite::Connection;

thread_local! {
    static DB: Connection = {
        let library = std::env::var("FENCE_LIBRARY").expect("FENCE_LIBRARY names the built library");
        let db = Connection::open_in_memory().expect("memory");
        // SAFETY: the library is our own.
        unsafe {
            db.load_extension_enable().expect("allowed");
            db.load_extension(library, None::<&str>).expect("it loads");
        }
        db
    };
}

fuzz_target!(|options: &str| {
    DB.with(|db| {
        let acquired = db.query_row("select fence_acquire('k', 60000, 0, ?1)", [options], |row| {
            row.get::<_, String>(0)
        });
        match acquired {
            Ok(fence) => {
                let released = db.query_row("select fence_release('k', ?1)", [fence], |row| row.get::<_, i64>(0));
                assert_eq!(released, Ok(1));
            }
            Err(error) => assert!(error.to_string().starts_with("fence: "), "{error}"),
        }
    });
});
