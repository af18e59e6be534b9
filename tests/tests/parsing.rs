//! The options of `fence_acquire`, as SQL gives them: what is no JSON object of known options is an error, and the
//! connection works on.

use fence_tests::library;
use proptest::prelude::*;
use rusqlite::Connection;

fn options() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        "(true|false|null|-?[0-9]{1,20}|[0-9]\\.[0-9]|1e[0-9]{1,3})".prop_map(|value| value),
        "\"[a-z]{0,4}\"".prop_map(|value| value),
        Just("{}".to_owned()),
    ];
    let name = prop_oneof![
        Just("bound".to_owned()),
        Just("delay_ms".to_owned()),
        "[a-z_]{0,9}".prop_map(|name| name)
    ];
    let pairs = proptest::collection::vec((name, value), 0..3);
    let object = pairs.prop_map(|pairs| {
        let pairs: Vec<_> = pairs
            .iter()
            .map(|(name, value)| format!("\"{name}\": {value}"))
            .collect();
        format!("{{{}}}", pairs.join(", "))
    });
    prop_oneof![
        object,
        any::<String>(),
        "[\\[\\]{}\",:a-z0-9 ]{0,24}".prop_map(|text| text)
    ]
}

#[test]
fn options_are_taken_or_refused_with_a_message_and_nothing_else_happens() {
    let db = Connection::open_in_memory().expect("memory");
    // SAFETY: the library is our own.
    unsafe {
        db.load_extension_enable().expect("allowed");
        db.load_extension(library(), None::<&str>).expect("it loads");
    }
    let config = ProptestConfig {
        cases: 2_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    proptest!(config, |(options in options())| {
        let fence = db.query_row("select fence_acquire('k', 60000, 0, ?1)", [&options], |row| row.get::<_, String>(0));
        match fence {
            Ok(fence) => {
                let released = db.query_row("select fence_release('k', ?1)", [&fence], |row| row.get::<_, i64>(0));
                prop_assert_eq!(released, Ok(1), "{}", options);
                let known = options.contains("bound") || options.contains("delay_ms");
                let is_empty = options.trim() == "{}" || options.replace([' ', '{', '}'], "").is_empty();
                prop_assert!(known || is_empty, "{} was taken", options);
            }
            Err(error) => prop_assert!(error.to_string().starts_with("fence: "), "{}: {}", options, error),
        }
    });
}
