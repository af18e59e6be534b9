//! The commands beside `hold`: what they print, for people and for programs, and their exit statuses.

mod fence;

use fence::{fence, list, run, start, status};
use fence_tests::{Shell, folder, host};

const HELD: [&str; 8] = [
    "hold",
    "k",
    "--ttl",
    "365days",
    "--",
    "sh",
    "-c",
    "echo $FENCE; read line",
];

#[test]
fn list_shows_what_is_held_as_json_to_programs_and_as_a_table_to_people() {
    let folder = folder();
    let mut hold = start(&folder, HELD);
    let fence = hold.line();
    let json = list(&folder);
    let expected =
        format!("[{{\"key\":\"k\",\"kind\":\"lease\",\"fence\":\"{fence}\",\"permit\":null,\"remaining_ms\":");
    assert!(json.starts_with(&expected), "{json}");
    let end = format!(",\"delay_ms\":0,\"process\":{},\"bound\":true}}]", hold.id());
    assert!(json.ends_with(&end), "{json}");

    let table = run(&folder, ["list", "--table"]).ok();
    let (head, row) = table.split_once('\n').expect("two lines");
    assert_eq!(
        head.split_whitespace().collect::<Vec<_>>(),
        [
            "key",
            "kind",
            "fence",
            "permit",
            "remaining_ms",
            "delay_ms",
            "process",
            "bound"
        ]
    );
    let row: Vec<_> = row.split_whitespace().collect();
    let process = hold.id().to_string();
    assert_eq!(
        [&row[..3], &row[4..]].concat(),
        ["k", "lease", &fence, "0", &process, "yes"]
    );
}

#[test]
fn release_ends_a_lease_once_and_says_when_it_is_over() {
    let folder = folder();
    let sql = "select fence_acquire('k'); select semaphore_acquire('gpu', 2);";
    let got = Shell::new().on(folder.path().join("app.db")).run(sql).ok();
    let (lease, permit) = got.split_once('\n').expect("two lines");
    for (key, name, message) in [
        (
            "k",
            lease,
            format!("fence: the lease of 'k' with fence {lease} is over: nothing was released\n"),
        ),
        (
            "gpu",
            permit,
            format!("fence: the permit {permit} of 'gpu' is over: nothing was released\n"),
        ),
    ] {
        assert_eq!(run(&folder, ["release", key, name]).ok(), "");
        let again = run(&folder, ["release", key, name]);
        assert_eq!((status(&again), again.err), (1, message));
    }
    for (name, message) in [
        ("abc", "fence: not a fence: 'abc' has"),
        ("permit-7", "fence: 'permit-7' is no permit"),
    ] {
        let wrong = run(&folder, ["release", "k", name]);
        assert_eq!(status(&wrong), 2);
        assert!(wrong.err.starts_with(message), "{}", wrong.err);
    }
}

#[test]
fn lock_10_advance_lifts_the_store_past_a_fence() {
    let folder = folder();
    // Epoch 2^62, count 7.
    let seen = ((1_u128 << 126) + 7).to_string();
    assert_eq!(run(&folder, ["advance", &seen]).ok(), ((1_u64 << 62) + 1).to_string());
    let fence = run(&folder, ["hold", "k", "--", "sh", "-c", "echo $FENCE"]).ok();
    assert!(fence.parse::<u128>().expect("a fence") > (1 << 126) + 7);
}

#[test]
fn the_store_is_that_of_sql() {
    let folder = folder();
    let below = folder.path().join("below");
    std::fs::create_dir(&below).expect("a new folder");
    let keys = |arguments: &[&str], set: Option<&str>| {
        let mut command = fence(&folder, [&["list"], arguments].concat());
        set.map(|path| command.env("FENCE_STORE", path));
        let listed = host::run(command, "");
        (status(&listed), listed.out.matches("\"key\"").count(), listed.err)
    };
    let app = below.join("app.db");
    Shell::new().on(&app).run("select fence_acquire('k');").ok();
    assert_eq!(keys(&["--database", "below/app.db"], None).1, 1);
    assert_eq!(keys(&["--store", "below/kv.db"], None).1, 1);
    assert_eq!(
        keys(&["--store", "below/kv.db"], Some("no/kv.db")).1,
        1,
        "the argument counts"
    );
    assert_eq!(keys(&[], Some("below/kv.db")).1, 1);
    assert_eq!(
        keys(&["--database", "app.db"], Some("below/kv.db")).1,
        1,
        "FENCE_STORE comes first"
    );
    let (none, _, message) = keys(&[], Some(""));
    assert_eq!(none, 2);
    assert!(message.starts_with("fence: there is no store "), "{message}");
    assert!(!folder.path().join("kv.db").exists(), "a listing makes no store");
    let (memory, _, message) = keys(&["--store", ":memory:"], None);
    assert_eq!(memory, 2, "{message}");
}

#[test]
fn version_names_the_program_and_its_sqlite() {
    let folder = folder();
    let version = run(&folder, ["version"]).ok();
    let expected = concat!("fence ", env!("CARGO_PKG_VERSION"), " (SQLite 3.");
    assert!(version.starts_with(expected), "{version}");
}

#[test]
fn a_wrong_command_line_is_told_and_help_is_no_error() {
    let folder = folder();
    let unknown = run(&folder, ["lock"]);
    assert_eq!(status(&unknown), 2);
    assert!(
        unknown.err.starts_with("fence: unrecognized subcommand 'lock'"),
        "{}",
        unknown.err
    );
    for command in ["hold", "list", "release", "advance", "version"] {
        assert!(run(&folder, ["--help"]).ok().contains(&format!("\n  {command} ")));
        assert!(run(&folder, [command, "--help"]).ok().contains("Usage: fence "));
    }
}

#[test]
fn the_manual_and_the_completions_are_made() {
    let folder = folder();
    run(&folder, ["generate", "dist"]).ok();
    for file in [
        "completions/fence.bash",
        "completions/_fence",
        "completions/fence.fish",
        "man/fence.1",
        "man/fence-hold.1",
    ] {
        let text = std::fs::read_to_string(folder.path().join("dist").join(file)).expect(file);
        assert!(text.contains("hold"), "{file}");
    }
}
