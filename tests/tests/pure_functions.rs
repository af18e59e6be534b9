//! The pure functions in the sqlite3 shell: every spelling of a fence, and everything that is none.
//!
//! The cases stand in tables. Each is run in a database of every encoding, since SQLite hands text over in the database's.

use fence_tests::{Session, Shell, folder};

const MAX: &str = "340282366920938463463374607431768211455";
const ABOVE_MAX: &str = "340282366920938463463374607431768211456";
const ZEROS_39: &str = "000000000000000000000000000000000000000";

/// What counts as a fence, at the end of most messages.
const ACCEPTED: &str = "give 1 to 40 decimal digits below 2^128 as TEXT, an INTEGER from 0 up, or a BLOB of 16 bytes";

/// A case: an expression, and what it gives: the value as `quote` writes it, or a part of the error.
type Case = (String, Result<String, String>);

fn gives(expression: impl Into<String>, value: impl Into<String>) -> Case {
    (expression.into(), Ok(value.into()))
}

fn fails(expression: impl Into<String>, error: impl Into<String>) -> Case {
    (expression.into(), Err(error.into()))
}

/// Runs the cases in a database of each encoding, and reports all that are not as they should be.
#[track_caller]
fn check(cases: &[Case]) {
    let mut wrong = Vec::new();
    for encoding in ["UTF-8", "UTF-16le", "UTF-16be"] {
        let mut shell = in_encoding(encoding);
        for (expression, expected) in cases {
            let got = ask(&mut shell, expression);
            let right = match (expected, &got) {
                (Ok(expected), Ok(got)) => expected == got,
                (Err(expected), Err(got)) => got.contains(expected),
                _ => false,
            };
            if !right {
                wrong.push(format!(
                    "{encoding}: {expression}\n  expected {expected:?}\n  got      {got:?}"
                ));
            }
        }
        assert_eq!(shell.ask("select 1"), "1");
    }
    let some = &wrong[..wrong.len().min(10)];
    assert!(
        wrong.is_empty(),
        "{} of {} cases, among them\n{}",
        wrong.len(),
        cases.len(),
        some.join("\n")
    );
}

fn in_encoding(encoding: &str) -> Session {
    let mut shell = Shell::new().start();
    shell.ask(&format!("pragma encoding = '{encoding}'"));
    shell.ask("create table t (x)");
    assert_eq!(shell.ask("pragma encoding"), encoding);
    shell
}

/// The value as `quote` writes it, or the error without what the shell puts before it.
fn ask(shell: &mut Session, expression: &str) -> Result<String, String> {
    let answer = shell.ask(&format!("select quote({expression})"));
    match answer.split_once(": ") {
        Some((place, error)) if place.contains("rror") => Err(error.to_string()),
        _ => Ok(answer),
    }
}

fn quoted(text: &str) -> String {
    format!("'{text}'")
}

/// Every spelling of some fences: as SQL writes it, and the number that it is.
fn spellings() -> Vec<(String, u128)> {
    let mut spellings = Vec::new();
    for number in [
        0,
        1,
        9,
        10,
        99_999_999,
        100_000_000,
        u128::from(u64::MAX),
        1 << 64,
        33_132_838_977_483_490_749_893_836_800_001,
        u128::MAX - 1,
        u128::MAX,
    ] {
        spellings.push((quoted(&format!("{number:040}")), number));
        spellings.push((quoted(&number.to_string()), number));
        spellings.push((format!("x'{number:032X}'"), number));
        if let Ok(integer) = i64::try_from(number) {
            spellings.push((integer.to_string(), number));
        }
    }
    spellings.extend([
        ("9223372036854775807".to_string(), 0x7fff_ffff_ffff_ffff),
        ("'0009'".to_string(), 9),
        (quoted(&format!("{:039}", 9)), 9),
        (quoted(ZEROS_39), 0),
        ("'00000000'".to_string(), 0),
        ("zeroblob(16)".to_string(), 0),
        ("(select '9' || '9')".to_string(), 99),
    ]);
    spellings
}

/// Whatever is no fence: as SQL writes it, and how the message goes on after 'function(argument) is '.
fn no_fences() -> Vec<(String, String)> {
    let lost = "which is a REAL and has already lost digits: \
                declare the column that it comes from as TEXT, and bind the fence as text";
    let mut cases: Vec<(String, String)> = [
        ("'+10'", "'+10', which has a sign, '+', at character 1"),
        ("'-1'", "'-1', which has a sign, '-', at character 1"),
        ("'-0'", "'-0', which has a sign, '-', at character 1"),
        ("' '", "' ', which has a space at character 1"),
        ("' 10'", "' 10', which has a space at character 1"),
        ("'10 '", "'10 ', which has a space at character 3"),
        ("'1' || char(9) || '0'", r"'1\u{9}0', which has a space at character 2"),
        ("'10' || char(10)", r"'10\u{a}', which has a space at character 3"),
        (
            "'10' || char(0)",
            r"'10\u{0}', which has '\u{0}', no digit, at character 3",
        ),
        ("char(0)", r"'\u{0}', which has '\u{0}', no digit, at character 1"),
        (
            "'7' || char(0) || '7'",
            r"'7\u{0}7', which has '\u{0}', no digit, at character 2",
        ),
        ("'1e3'", "'1e3', which has 'e', no digit, at character 2"),
        ("'1.0'", "'1.0', which has '.', no digit, at character 2"),
        ("'0x10'", "'0x10', which has 'x', no digit, at character 2"),
        ("'1_000'", "'1_000', which has '_', no digit, at character 2"),
        ("'１０'", "'１０', which has '１', no digit, at character 1"),
        ("'1٣'", "'1٣', which has '٣', no digit, at character 2"),
        ("'12345678:'", "'12345678:', which has ':', no digit, at character 9"),
        ("'abc'", "'abc', which has 'a', no digit, at character 1"),
        ("'it''s'", "'it''s', which has 'i', no digit, at character 1"),
        ("'null'", "'null', which has 'n', no digit, at character 1"),
        ("-1", "-1, which is below 0"),
        ("-9223372036854775808", "-9223372036854775808, which is below 0"),
        ("x''", "x'', which is a BLOB of 0 bytes"),
        ("zeroblob(0)", "x'', which is a BLOB of 0 bytes"),
        ("x'37'", "x'37', which is a BLOB of 1 byte"),
        (
            "x'000000000000000000000000000007'",
            "x'000000000000000000000000000007', which is a BLOB of 15 bytes",
        ),
        (
            "zeroblob(17)",
            "x'0000000000000000000000000000000000', which is a BLOB of 17 bytes",
        ),
    ]
    .into_iter()
    .map(|(sql, said)| (sql.to_string(), format!("{said}: {ACCEPTED}")))
    .collect();
    for (digits, said) in [
        ("0".repeat(41), "has 41 digits"),
        (format!("00{MAX}"), "has 41 digits"),
        (ABOVE_MAX.to_string(), "is 2^128 or above"),
        (format!("0{ABOVE_MAX}"), "is 2^128 or above"),
        ("9".repeat(40), "is 2^128 or above"),
    ] {
        cases.push((quoted(&digits), format!("'{digits}', which {said}: {ACCEPTED}")));
    }
    for (real, shown) in [
        ("1.0", "1.0"),
        ("-0.0", "-0.0"),
        ("1e300", "1e300"),
        ("9e999", "inf"),
        ("33132838977483490749893836800001", "3.313283897748349e31"),
        (
            "cast('33132838977483490749893836800001' as numeric)",
            "3.313283897748349e31",
        ),
    ] {
        cases.push((real.to_string(), format!("{shown}, {lost}")));
    }
    cases
}

/// The functions that take a fence, with the arguments' names; the other arguments are good ones.
const TAKING_A_FENCE: &[(&str, &[&str])] = &[
    ("fence_pad", &["fence"]),
    ("fence_wire", &["fence"]),
    ("fence_blob", &["fence"]),
    ("fence_epoch", &["fence"]),
    ("fence_count", &["fence"]),
    ("fence_ok", &["stored", "incoming"]),
    ("fence_newer", &["stored", "incoming"]),
    ("fence_require", &["stored", "incoming"]),
];

#[test]
fn every_spelling_becomes_every_other() {
    let mut cases = Vec::new();
    for (spelled, number) in spellings() {
        let (epoch, count) = ((number >> 64) as u64, number as u64);
        let half = |half: u64| i64::try_from(half).map_or(quoted(&half.to_string()), |half| half.to_string());
        cases.extend([
            gives(format!("fence_pad({spelled})"), format!("'{number:040}'")),
            gives(format!("fence_wire({spelled})"), format!("'{number}'")),
            gives(format!("fence_blob({spelled})"), format!("X'{number:032X}'")),
            gives(format!("fence_epoch({spelled})"), half(epoch)),
            gives(format!("fence_count({spelled})"), half(count)),
            gives(
                format!("fence_make(fence_epoch({spelled}), fence_count({spelled}))"),
                format!("'{number}'"),
            ),
        ]);
    }
    check(&cases);
}

#[test]
fn check_01_fences_compare_as_numbers_whatever_their_spellings() {
    let mut cases = Vec::new();
    for (stored, low) in spellings() {
        for (incoming, high) in spellings() {
            cases.extend([
                gives(
                    format!("fence_ok({stored}, {incoming})"),
                    u8::from(high >= low).to_string(),
                ),
                gives(
                    format!("fence_newer({stored}, {incoming})"),
                    u8::from(high > low).to_string(),
                ),
            ]);
        }
    }
    check(&cases);
}

#[test]
fn check_01_nines_and_tens_in_text_are_no_trap() {
    check(&[
        gives("fence_ok('9', '10')", "1"),
        gives("fence_ok('10', '9')", "0"),
        gives("fence_ok('0009', '10')", "1"),
        gives("fence_ok('0010', '9')", "0"),
        gives("fence_newer('09', '9')", "0"),
        gives(format!("fence_ok('{:040}', '{:039}')", 10, 9), "0"),
        gives(format!("fence_ok('{:039}', '{:040}')", 9, 10), "1"),
    ]);
}

#[test]
fn check_01_require_gives_the_incoming_fence_padded_or_refuses_a_stale_one() {
    let mut cases = Vec::new();
    for (stored, low) in spellings() {
        for (incoming, high) in spellings() {
            let expression = format!("fence_require({stored}, {incoming})");
            cases.push(if high >= low {
                gives(expression, format!("'{high:040}'"))
            } else {
                // (19) is the shell's word for SQLITE_CONSTRAINT.
                let stale = format!("fence: stale: fence_require(incoming) is {high}, and {low} was seen already: ");
                fails(expression, stale)
            });
        }
    }
    check(&cases);
}

#[test]
fn check_02_no_fence_never_passes_and_anything_passes_where_none_was_seen() {
    let mut cases = Vec::new();
    for nothing in ["NULL", "''", "(select x from t)", "cast(x'' as text)"] {
        let shown = if nothing.contains('\'') { "''" } else { "NULL" };
        for stored in ["NULL", "''", "'7'", "7", "fence_pad(7)"] {
            cases.extend([
                gives(format!("fence_ok({stored}, {nothing})"), "0"),
                gives(format!("fence_newer({stored}, {nothing})"), "0"),
                fails(
                    format!("fence_require({stored}, {nothing})"),
                    format!(
                        "fence: unfenced: fence_require(incoming) is {shown}: \
                         pass the fence of the lease under which this is written (19)"
                    ),
                ),
            ]);
        }
        for incoming in ["'0'", "0", "'7'", "fence_pad(7)", "fence_blob(7)"] {
            cases.extend([
                gives(format!("fence_ok({nothing}, {incoming})"), "1"),
                gives(format!("fence_newer({nothing}, {incoming})"), "1"),
                gives(
                    format!("fence_require({nothing}, {incoming}) = fence_pad({incoming})"),
                    "1",
                ),
            ]);
        }
    }
    check(&cases);
}

#[test]
fn a_column_without_a_fence_stays_one_without_in_another_spelling() {
    let mut cases = Vec::new();
    for function in ["fence_pad", "fence_wire", "fence_blob"] {
        cases.push(gives(format!("{function}(NULL)"), "NULL"));
        cases.push(gives(format!("{function}('')"), "''"));
    }
    for function in ["fence_epoch", "fence_count"] {
        cases.push(gives(format!("{function}(NULL)"), "NULL"));
        cases.push(gives(format!("{function}('')"), "NULL"));
    }
    check(&cases);
}

#[test]
fn check_03_what_is_no_fence_is_an_error_in_every_argument_of_every_function() {
    let mut cases = Vec::new();
    for (function, arguments) in TAKING_A_FENCE {
        for (place, argument) in arguments.iter().enumerate() {
            for (sql, said) in no_fences() {
                let error = format!("fence: not a fence: {function}({argument}) is {said}");
                // Beside a good fence, and beside none: neither hides the other.
                for other in ["'7'", "NULL", "''"] {
                    let mut values = vec![other; arguments.len()];
                    values[place] = &sql;
                    cases.push(fails(format!("{function}({})", values.join(", ")), error.clone()));
                    if arguments.len() == 1 {
                        break;
                    }
                }
            }
        }
    }
    check(&cases);
}

#[test]
fn check_03_ten_megabytes_are_refused_by_a_short_message() {
    let (zeros, bytes) = ("0".repeat(47), "00".repeat(20));
    let big = [
        (
            "'x' || hex(zeroblob(5000000))",
            format!("'x{zeros}…' (10000001 bytes), which has 'x', no digit, at character 1"),
        ),
        (
            "hex(zeroblob(5000000))",
            format!("'0{zeros}…' (10000000 bytes), which has 10000000 digits"),
        ),
        (
            "zeroblob(10000000)",
            format!("x'{bytes}…' (10000000 bytes), which is a BLOB of 10000000 bytes"),
        ),
    ];
    for encoding in ["UTF-8", "UTF-16le"] {
        let mut shell = in_encoding(encoding);
        for (function, arguments) in TAKING_A_FENCE {
            for (place, argument) in arguments.iter().enumerate() {
                for (sql, said) in &big {
                    let mut values = vec!["'7'"; arguments.len()];
                    values[place] = sql;
                    let error = format!("fence: not a fence: {function}({argument}) is {said}: {ACCEPTED}");
                    assert_eq!(
                        ask(&mut shell, &format!("{function}({})", values.join(", "))),
                        Err(error)
                    );
                }
            }
        }
    }
}

#[test]
fn check_03_a_fence_in_a_column_that_makes_it_a_real_is_an_error_that_names_the_column_s_type() {
    let mut shell = Shell::new().start();
    for of_type in ["STRING", "NUMERIC", "BIGINT", "DECIMAL(40)", "ANY", "FENCE"] {
        shell.ask(&format!("create table r (f {of_type})"));
        shell.ask("insert into r values (fence_pad('33132838977483490749893836800001'))");
        let error = shell.ask("select fence_ok(f, '33132838977483490749893836800002') from r");
        assert!(
            error.contains("declare the column that it comes from as TEXT"),
            "{of_type}: {error}"
        );
        shell.ask("drop table r");
    }
    for of_type in ["TEXT", "VARCHAR(40)", "CHAR(40)", "CLOB", "BLOB", ""] {
        shell.ask(&format!("create table r (f {of_type})"));
        shell.ask("insert into r values (fence_pad('33132838977483490749893836800001'))");
        let answer = shell.ask("select fence_ok(f, '33132838977483490749893836800002') from r");
        assert_eq!(answer, "1", "{of_type}");
        shell.ask("drop table r");
    }
}

#[test]
fn a_fence_is_made_of_two_halves_and_of_nothing_less() {
    let refused = |argument: &str, shown: &str| {
        format!(
            "fence: not a 64-bit number: fence_make({argument}) is {shown}: \
             give an INTEGER from 0 up, or TEXT of digits up to 18446744073709551615"
        )
    };
    let mut cases = vec![
        gives("fence_make(0, 0)", "'0'"),
        gives("fence_make(1, 0)", "'18446744073709551616'"),
        gives("fence_make('1', '2')", "'18446744073709551618'"),
        gives("fence_make('0001', 2)", "'18446744073709551618'"),
        gives(
            "fence_make(9223372036854775807, 0)",
            format!("'{}'", 0x7fff_ffff_ffff_ffff_u128 << 64),
        ),
        gives(
            "fence_make('18446744073709551615', '18446744073709551615')",
            quoted(MAX),
        ),
        gives("fence_make(NULL, 1)", "NULL"),
        gives("fence_make(1, NULL)", "NULL"),
        gives("fence_make(NULL, NULL)", "NULL"),
    ];
    for (sql, shown) in [
        ("-1", "-1"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("1.0", "1.0"),
        ("1e300", "1e300"),
        ("''", "''"),
        ("' 1'", "' 1'"),
        ("'+1'", "'+1'"),
        ("'abc'", "'abc'"),
        ("'18446744073709551616'", "'18446744073709551616'"),
        ("x''", "x''"),
        ("zeroblob(0)", "x''"),
        ("x'0000000000000001'", "x'0000000000000001'"),
    ] {
        for other in ["1", "NULL"] {
            cases.push(fails(format!("fence_make({sql}, {other})"), refused("epoch", shown)));
            cases.push(fails(format!("fence_make({other}, {sql})"), refused("count", shown)));
        }
    }
    check(&cases);
}

#[test]
fn stale_and_unfenced_are_constraint_errors_and_no_fence_is_a_plain_one() {
    let script = r#"
db = connect()
for sql in ("fence_require(2, 1)", "fence_require(2, NULL)", "fence_require(2, 'x')", "fence_ok(1.0, 2)"):
    try:
        one(db, "select " + sql)
    except sqlite3.Error as e:
        print(type(e).__name__, e.sqlite_errorname)
"#;
    assert_eq!(
        fence_tests::Python::new(script).run().ok(),
        "IntegrityError SQLITE_CONSTRAINT\n\
         IntegrityError SQLITE_CONSTRAINT\n\
         OperationalError SQLITE_ERROR\n\
         OperationalError SQLITE_ERROR"
    );
}

#[test]
fn require_stops_the_statement_and_changes_nothing() {
    let mut shell = Shell::new().start();
    shell.ask("create table chats (id integer primary key, summary text, summary_fence text not null default '')");
    shell.ask("insert into chats values (1, 'one', fence_pad(7)), (2, 'two', fence_pad(9))");
    let update = "update chats set summary = 'late', summary_fence = fence_require(summary_fence, 8)";
    assert!(
        shell
            .ask(update)
            .contains("fence: stale: fence_require(incoming) is 8, and 9 was seen already")
    );
    assert_eq!(shell.ask("select group_concat(summary) from chats"), "one,two");
}

#[test]
fn pure_functions_work_in_a_trigger_that_trusts_no_schema() {
    let folder = folder();
    let app = folder.path().join("app.db");
    let mut shell = Shell::new().on(&app).start();
    shell.ask("create table chats (id integer primary key, summary text, summary_fence text not null default '')");
    shell.ask(
        "create trigger late before update on chats when not fence_ok(old.summary_fence, new.summary_fence) \
         begin select raise(abort, 'late'); end",
    );
    shell.ask("insert into chats values (42, '', '')");
    shell.ask("pragma trusted_schema = off");
    assert_eq!(shell.ask("pragma trusted_schema"), "0");
    assert_eq!(
        shell.ask("update chats set summary = 'B', summary_fence = fence_pad(8)"),
        ""
    );
    let answer = shell.ask("update chats set summary = 'A', summary_fence = fence_pad(7)");
    assert!(answer.contains("late (19)"), "{answer}");
    assert_eq!(shell.ask("select summary from chats"), "B");
    drop(shell);

    // A program that did not load the extension fails loudly; nothing is let through.
    let error = Shell::plain().on(&app).run("update chats set summary = 'C';").error();
    assert!(error.contains("no such function: fence_ok"), "{error}");
    assert_eq!(Shell::plain().on(&app).run("select summary from chats;").ok(), "B");
}

#[test]
fn pure_functions_work_in_generated_columns_indexes_checks_and_views_and_on_a_read_only_file() {
    let folder = folder();
    let app = folder.path().join("app.db");
    let schema = "create table jobs (
           fence text check (fence_ok('1', fence)),
           epoch integer generated always as (fence_epoch(fence)) stored,
           count integer generated always as (fence_count(fence)) virtual);
         create index by_fence on jobs (fence_pad(fence));
         create view newest as select fence_wire(max(fence_pad(fence))) as fence from jobs;
         insert into jobs (fence) values (fence_make(5, 9)), (fence_make(5, 10));";
    let question = "pragma trusted_schema = off; select fence, epoch, count from newest join jobs using (fence);";
    let answer = "92233720368547758090|5|10";
    let shell = Shell::new().on(&app);
    shell.run(schema).ok();
    assert_eq!(shell.run(question).ok(), answer);
    assert!(
        shell
            .run("insert into jobs (fence) values (0);")
            .error()
            .contains("CHECK constraint failed")
    );

    let read_only = format!("file:{}?mode=ro&immutable=1", app.display());
    assert_eq!(Shell::new().on(read_only).run(question).ok(), answer);
    assert_eq!(Shell::new().run(&format!("{schema} {question}")).ok(), answer);
}
