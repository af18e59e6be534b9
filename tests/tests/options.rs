//! The options of an acquire: one JSON text. Whatever it does not know, it says, and acquires nothing.

use fence_tests::{LONG, folder, shell_in};

/// Each acquire, up to its options.
const ACQUIRES: [&str; 3] = [
    "fence_acquire('k', 30000, 0, ",
    "fence_acquire_all('[\"k\"]', 30000, 0, ",
    "semaphore_acquire('k', 1, 30000, 0, ",
];

#[test]
fn what_is_no_json_object_is_an_error() {
    let folder = folder();
    let mut shell = shell_in(&folder);
    for acquire in ACQUIRES {
        let (function, _) = acquire.split_once('(').expect("a call");
        for options in [
            "NULL",
            "''",
            "' '",
            "'[]'",
            "'null'",
            "'true'",
            "'\"bound\"'",
            "'bound'",
            "'{bound: true}'",
            "'{\"bound\": true'",
            "'{\"bound\": true,}'",
            "'{\"bound\": true} {}'",
            "'{\"bound\": tru}'",
            "7",
            "1.5",
            "x'7b7d'",
            "'{\"bound\": true' || char(0) || '}'",
            "'{\"bound\": ' || printf('%.100000c', ' ') || 'true}'",
        ] {
            let answer = shell.ask(&format!("select {acquire}{options})"));
            assert!(
                answer.contains(&format!("fence: not options: {function}(options) is ")),
                "{options}: {answer}"
            );
            assert!(
                answer.contains("give a JSON object such as '{\"bound\":true}'"),
                "{answer}"
            );
            assert!(answer.len() < 400, "{answer}");
        }
    }
    assert_eq!(shell.ask("select count(*) from fence_leases"), "0");
}

#[test]
fn an_unknown_name_a_wrong_type_and_a_name_twice_are_errors_that_name_it() {
    let folder = folder();
    let mut shell = shell_in(&folder);
    let delay = "\"delay_ms\" takes an integer, 0 to 31536000000 ms (365 days)";
    let bound = "\"bound\" takes true or false";
    for (options, complaint) in [
        (
            r#"{"delay": 1}"#,
            "'delay' is no option; the names are \"delay_ms\" and \"bound\"",
        ),
        (r#"{"bound": true, "Bound": true}"#, "'Bound' is no option"),
        (r#"{"ttl_ms": 1}"#, "'ttl_ms' is no option"),
        (r#"{"": 1}"#, "'' is no option"),
        (r#"{"delay_ms": "1"}"#, delay),
        (r#"{"delay_ms": 1.5}"#, delay),
        (r#"{"delay_ms": 1e3}"#, delay),
        (r#"{"delay_ms": null}"#, delay),
        (r#"{"delay_ms": -1}"#, delay),
        (r#"{"delay_ms": 31536000001}"#, delay),
        (r#"{"delay_ms": 9223372036854775808}"#, delay),
        (r#"{"delay_ms": [1]}"#, delay),
        (r#"{"bound": 1}"#, bound),
        (r#"{"bound": "true"}"#, bound),
        (r#"{"bound": null}"#, bound),
        (
            r#"{"bound": true, "bound": true}"#,
            "\"bound\" is there twice; give it once",
        ),
        (
            r#"{"delay_ms": 1, "delay\u005fms": 2}"#,
            "\"delay_ms\" is there twice; give it once",
        ),
    ] {
        for acquire in &ACQUIRES[..2] {
            let answer = shell.ask(&format!("select {acquire}'{options}')"));
            assert!(answer.contains("fence: not options: "), "{options}: {answer}");
            assert!(answer.contains(complaint), "{options}: {answer}");
        }
    }
    for (options, complaint) in [
        (
            r#"{"delay_ms": 1}"#,
            "a permit has no \"delay_ms\"; the name it takes is \"bound\"",
        ),
        (r#"{"limit": 1}"#, "'limit' is no option; the names are \"bound\""),
        (r#"{"bound": 0}"#, bound),
    ] {
        let answer = shell.ask(&format!("select {}'{options}')", ACQUIRES[2]));
        assert!(answer.contains(complaint), "{options}: {answer}");
    }
    assert_eq!(shell.ask("select count(*) from fence_leases"), "0");
}

#[test]
fn options_are_read_in_any_order_and_spelling_of_json() {
    let folder = folder();
    let mut shell = shell_in(&folder);
    for (n, (options, delay, bound)) in [
        ("{}", 0, 0),
        (" {\n} ", 0, 0),
        (r#"{"bound": false, "delay_ms": 0}"#, 0, 0),
        (r#"{"delay_ms":31536000000,"bound":true}"#, 31_536_000_000_u64, 1),
        (r#"{ "\u0062ound" : true }"#, 0, 1),
    ]
    .into_iter()
    .enumerate()
    {
        let answer = shell.ask(&format!("select fence_acquire({n}, {LONG}, 0, '{options}')"));
        assert!(answer.len() > 20, "{options}: {answer}");
        let listed = shell.ask(&format!("select delay_ms, bound from fence_leases where key = {n}"));
        assert_eq!(listed, format!("{delay}|{bound}"), "{options}");
    }
    assert_ne!(shell.ask("select semaphore_acquire('s', 1, 1000, 0, '{}')"), "NULL");
}

#[test]
fn a_time_out_of_range_is_an_error_that_names_it_and_nothing_is_held() {
    let folder = folder();
    let mut shell = shell_in(&folder);
    let wrong = [
        "-1",
        "1.5",
        "1.0",
        "'1000'",
        "'abc'",
        "NULL",
        "1e18",
        "9223372036854775807",
        "x'01'",
    ];
    let calls = |ttl: &str, wait: &str| {
        [
            format!("fence_acquire('k', {ttl}, {wait})"),
            format!("fence_acquire_all('[1]', {ttl}, {wait})"),
            format!("semaphore_acquire('k', 1, {ttl}, {wait})"),
        ]
    };
    for value in wrong.into_iter().chain(["0", "31536000001"]) {
        for call in calls(value, "0") {
            let answer = shell.ask(&format!("select {call}"));
            assert!(answer.contains("(ttl_ms) is "), "{call}: {answer}");
            assert!(
                answer.contains("give an INTEGER from 1 to 31536000000"),
                "{call}: {answer}"
            );
        }
    }
    for value in wrong.into_iter().chain(["3600001"]) {
        for call in calls("1000", value) {
            let answer = shell.ask(&format!("select {call}"));
            assert!(answer.contains("(wait_ms) is "), "{call}: {answer}");
            assert!(answer.contains("give an INTEGER from 0 to 3600000"), "{call}: {answer}");
        }
    }
    assert_eq!(shell.ask("select count(*) from fence_leases"), "0");
    for call in calls("31536000000", "3600000") {
        assert_ne!(shell.ask(&format!("select {call}")), "NULL");
    }
}
