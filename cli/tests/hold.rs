//! `fence hold` with real processes: who gets the key, what the command is given, and how it ends.

mod fence;

use fence::{list, run, start, status};
use fence_tests::{Shell, folder, host, wait_until};
use rustix::process::Signal;

/// A ttl and a wait that no test outlasts: whatever comes to pass under them was not waited for.
const LONG: [&str; 4] = ["--ttl", "365days", "--wait", "1h"];

/// A command that says that it runs, and then does so until it is ended.
const STAYS: [&str; 4] = ["--", "sh", "-c", "echo runs; exec sleep 1000"];

fn hold<'a>(arguments: &[&'a str], command: &[&'a str]) -> Vec<&'a str> {
    [&["hold", "k"], arguments, command].concat()
}

#[test]
fn the_command_gets_its_fence_and_gives_its_exit_status() {
    let folder = folder();
    let command = [
        "--",
        "sh",
        "-c",
        "echo $FENCE; echo $FENCE_PADDED; echo $FENCE_KEY; exit 7",
    ];
    let first = run(&folder, hold(&[], &command));
    assert_eq!(status(&first), 7);
    let lines: Vec<_> = first.out.lines().collect();
    let [fence, padded, key] = lines[..] else {
        panic!("three lines, not {}", first.out)
    };
    assert_eq!(padded, format!("{fence:0>40}"));
    assert_eq!(key, "k");
    let second = run(&folder, hold(&[], &["--", "sh", "-c", "echo $FENCE"])).ok();
    let number = |fence: &str| fence.parse::<u128>().expect("a fence");
    assert!(number(&second) > number(fence), "the later hold has the larger fence");
    assert_eq!(list(&folder), "[]", "both were released");
}

#[test]
fn a_permit_is_no_fence_also_where_an_outer_hold_has_one() {
    let folder = folder();
    let inner = [env!("CARGO_BIN_EXE_fence"), "hold", "gpu", "--permits", "2", "--"];
    let command = ["sh", "-c", "echo ${FENCE-none} ${FENCE_PADDED-none} $FENCE_KEY $PERMIT"];
    let answer = run(&folder, hold(&[], &[&["--"], &inner[..], &command[..]].concat())).ok();
    assert!(answer.starts_with("none none gpu permit-"), "{answer}");
}

#[test]
fn the_exit_status_is_the_commands_and_else_one_of_the_table() {
    let folder = folder();
    let ended = |command: &[&str]| status(&run(&folder, hold(&[], command)));
    assert_eq!(ended(&["--", "true"]), 0);
    assert_eq!(ended(&["--", "sh", "-c", "exit 255"]), 255);
    for (signal, status) in [("TERM", 143), ("KILL", 137), ("INT", 130)] {
        assert_eq!(
            ended(&["--", "sh", "-c", &format!("kill -{signal} $$")]),
            status,
            "{signal}"
        );
    }
    assert_eq!(ended(&["--", "no-such-command"]), 127);
    assert_eq!(ended(&["--", "/etc/passwd"]), 126);
    assert_eq!(ended(&["--no-such-option", "--", "true"]), 125);
    assert_eq!(ended(&[]), 125, "without a command");
    assert_eq!(ended(&["--ttl", "0s", "--", "true"]), 125);
    assert_eq!(ended(&["--store", "no/such/folder/kv.db", "--", "true"]), 125);
    assert_eq!(list(&folder), "[]", "nothing is left");
}

#[test]
fn a_value_out_of_range_is_told_with_its_argument_and_nothing_runs() {
    let folder = folder();
    for (arguments, message) in [
        (
            ["--ttl", "30"],
            "fence: --ttl is '30': give a time such as 500ms, 30s or 2m, 1 to 31536000000 ms (365 days)\n",
        ),
        (
            ["--wait", "2h"],
            "fence: --wait is '2h': give a time such as 500ms, 30s or 2m, 0 to 3600000 ms (1 hour)\n",
        ),
        (
            ["--permits", "0"],
            "fence: --permits is '0': give 1 to 1000000 permits\n",
        ),
        (
            ["--key", ""],
            "fence: '' cannot be a key, it is empty: give 1 to 1024 bytes of text without NUL\n",
        ),
    ] {
        let answer = run(&folder, hold(&arguments, &["--", "echo", "runs"]));
        assert_eq!((status(&answer), answer.out.as_str()), (125, ""));
        assert_eq!(answer.err, message);
    }
}

#[test]
fn lock_01_of_two_holds_of_one_key_one_runs_and_the_other_says_who_has_it() {
    let folder = folder();
    let mut first = start(&folder, hold(&LONG, &STAYS));
    assert_eq!(first.line(), "runs");
    let second = run(&folder, hold(&[], &["--", "echo", "runs"]));
    assert_eq!((status(&second), second.out.as_str()), (75, ""));
    let who = format!("fence: 'k' is held by process {} ", first.id());
    assert!(second.err.starts_with(&who), "{}", second.err);
    let third = run(&folder, hold(&["--conflict-exit-code", "3"], &["--", "echo", "runs"]));
    assert_eq!(status(&third), 3);
    let other = run(&folder, ["hold", "another", "--", "echo", "runs"]).ok();
    assert_eq!(other, "runs", "another key is another lock");
}

#[test]
fn lock_07_a_hold_waits_for_the_one_before_it() {
    let folder = folder();
    let mut first = start(
        &folder,
        hold(&LONG, &["--", "sh", "-c", "echo runs; read line; echo done"]),
    );
    assert_eq!(first.line(), "runs");
    let second = start(&folder, hold(&LONG, &["--", "echo", "mine"]));
    first.tell("go on");
    assert_eq!(first.line(), "done");
    assert!(first.finish().status.success());
    assert_eq!(second.finish().ok(), "mine");
}

#[test]
fn the_key_is_free_at_once_when_the_command_is_killed() {
    let folder = folder();
    let mut first = start(&folder, hold(&LONG, &["--", "sh", "-c", "echo $$; exec sleep 1000"]));
    let command = first.line();
    assert!(host::run(kill("KILL", &command), "").status.success());
    assert_eq!(status(&first.finish()), 137);
    assert_eq!(run(&folder, hold(&[], &["--", "echo", "mine"])).ok(), "mine");
}

#[test]
fn lock_11_when_the_holder_is_killed_the_next_goes_on_and_nothing_of_the_command_is_left() {
    let folder = folder();
    // Everybody in the group has the pipe of its output open: it ends when the last of them has.
    let command = ["--", "sh", "-c", "trap '' TERM HUP; sleep 1000 & echo runs; sleep 1000"];
    let mut first = start(&folder, hold(&LONG, &command));
    assert_eq!(first.line(), "runs");
    let second = start(&folder, hold(&LONG, &["--", "echo", "mine"]));
    first.kill();
    assert_eq!(second.finish().ok(), "mine");
    assert_eq!(first.finish().out, "");
}

#[test]
fn a_holder_that_stood_still_beyond_its_ttl_ends_its_command_whose_late_write_was_refused() {
    let folder = folder();
    let schema = "create table chats (id integer primary key, summary text, summary_fence text not null default '');
                  insert into chats (id) values (42);";
    Shell::plain().on(folder.path().join("app.db")).run(schema).ok();
    let library = fence_tests::library().with_extension("");
    let save = |text: &str| {
        format!(
            "sqlite3 -batch -init /dev/null -cmd '.load {}' app.db \"update chats set summary = '{text}', \
             summary_fence = fence_pad('$FENCE') where id = 42 and fence_ok(summary_fence, '$FENCE'); select changes()\"",
            library.display()
        )
    };
    let late = format!("echo runs; read line; {}; exec sleep 1000", save("late"));
    let mut first = start(&folder, hold(&["--ttl", "500ms"], &["--", "sh", "-c", &late]));
    assert_eq!(first.line(), "runs");
    first.stop();
    // The holder stands still, and its lease runs out. The command does not.
    let second = start(&folder, hold(&LONG, &["--", "sh", "-c", &save("in time")]));
    assert_eq!(second.finish().ok(), "1");
    first.tell("write");
    assert_eq!(first.line(), "0", "the row refused it");
    first.go_on();
    assert_eq!(status(&first.finish()), 76);
    let saved = Shell::plain()
        .on(folder.path().join("app.db"))
        .run("select summary from chats;");
    assert_eq!(saved.ok(), "in time");
}

#[test]
fn a_lost_lease_ends_the_command_and_what_ignores_that_is_killed() {
    let folder = folder();
    for (trap, grace) in [("", "1h"), ("trap '' TERM;", "50ms")] {
        let command = format!("{trap} echo $FENCE; sleep 1000 & sleep 1000; sleep 1000");
        let mut first = start(
            &folder,
            hold(&["--ttl", "3s", "--grace", grace], &["--", "sh", "-c", &command]),
        );
        let fence = first.line();
        run(&folder, ["release", "k", &fence]).ok();
        assert_eq!(status(&first.finish()), 76);
    }
}

#[test]
fn what_the_command_leaves_behind_has_the_grace_and_is_then_ended() {
    let folder = folder();
    let begun = ["--", "sh", "-c", "(sleep 0.2; echo done) & exit 3"];
    let answer = run(&folder, hold(&["--grace", "1h"], &begun));
    assert_eq!(
        (status(&answer), answer.out.as_str()),
        (3, "done\n"),
        "it ended by itself"
    );
    for (trap, status_of_command) in [("", 4), ("trap '' TERM;", 5)] {
        let command = format!("{trap} sleep 1000 & echo left; exit {status_of_command}");
        let answer = run(&folder, hold(&["--grace", "50ms"], &["--", "sh", "-c", &command]));
        // The pipe of its output has ended, so everybody has.
        assert_eq!((status(&answer), answer.out.as_str()), (status_of_command, "left\n"));
    }
}

#[test]
fn signals_are_passed_on_to_the_command() {
    let folder = folder();
    let script = "
import signal
def tell(number, frame):
    print(signal.Signals(number).name, flush=True)
    if number == signal.SIGTERM:
        raise SystemExit(9)
for name in 'HUP INT QUIT USR1 USR2 ALRM WINCH TERM'.split():
    signal.signal(getattr(signal, 'SIG' + name), tell)
print('runs', flush=True)
while True:
    signal.pause()
";
    let python = host::find("python3");
    let python = python.to_str().expect("a path in UTF-8");
    let mut first = start(&folder, hold(&LONG, &["--", python, "-c", script]));
    assert_eq!(first.line(), "runs");
    for (signal, name) in [
        (Signal::HUP, "SIGHUP"),
        (Signal::INT, "SIGINT"),
        (Signal::QUIT, "SIGQUIT"),
        (Signal::USR1, "SIGUSR1"),
        (Signal::USR2, "SIGUSR2"),
        (Signal::ALARM, "SIGALRM"),
        (Signal::WINCH, "SIGWINCH"),
        (Signal::TERM, "SIGTERM"),
    ] {
        first.signal(signal);
        assert_eq!(first.line(), name);
    }
    assert_eq!(status(&first.finish()), 9);
}

#[test]
fn a_signal_that_was_ignored_from_the_start_stays_ignored() {
    let folder = folder();
    let fence = env!("CARGO_BIN_EXE_fence");
    let script = format!("trap '' HUP; exec {fence} hold k -- sh -c 'echo runs; read line; echo $line'");
    let mut shell = host::command("sh");
    shell.args(["-c", &script]).current_dir(&folder);
    let mut first = fence_tests::Process::start(shell);
    assert_eq!(first.line(), "runs");
    first.signal(Signal::HUP);
    first.tell("lives");
    assert_eq!(first.line(), "lives");
    assert!(first.finish().status.success());
}

#[test]
fn a_signal_ends_the_wait_and_the_command_is_not_run() {
    let folder = folder();
    let mut first = start(&folder, hold(&LONG, &STAYS));
    assert_eq!(first.line(), "runs");
    for (signal, ended) in [(Signal::TERM, 143), (Signal::INT, 130)] {
        let second = start(&folder, hold(&LONG, &["--", "echo", "runs"]));
        waits_in_line(&folder, 1);
        second.signal(signal);
        let answer = second.finish();
        assert_eq!((status(&answer), answer.out.as_str()), (ended, ""));
        waits_in_line(&folder, 0);
    }
}

#[test]
fn sem_01_as_many_commands_run_as_there_are_permits() {
    let folder = folder();
    let permits = ["--permits", "2"];
    let command = ["--", "sh", "-c", "echo $PERMIT; exec sleep 1000"];
    let mut running: Vec<_> = (0..2).map(|_| start(&folder, hold(&permits, &command))).collect();
    let ids: Vec<_> = running.iter_mut().map(|hold| hold.line()).collect();
    assert_ne!(ids[0], ids[1]);
    let third = run(&folder, hold(&permits, &["--", "echo", "runs"]));
    assert_eq!((status(&third), third.out.as_str()), (75, ""));
    assert!(
        third.err.starts_with("fence: 2 of 2 permits of 'k' are out"),
        "{}",
        third.err
    );
    // One is given back from outside: its command is ended, and the next one runs.
    run(&folder, ["release", "k", &ids[0]]).ok();
    assert_eq!(run(&folder, hold(&permits, &["--", "echo", "runs"])).ok(), "runs");
}

#[test]
fn several_keys_are_held_under_one_fence_or_none_is() {
    let folder = folder();
    let all = ["hold", "b", "--key", "a", "--ttl", "365days"];
    let command = ["--", "sh", "-c", "echo $FENCE; echo \"$FENCE_KEY\"; read line"];
    let mut first = start(&folder, [&all[..], &command[..]].concat());
    let fence = first.line();
    assert_eq!([first.line(), first.line()], ["b", "a"], "as they were named");
    let held = list(&folder);
    assert_eq!(held.matches(&fence).count(), 2, "{held}");
    let second = run(&folder, ["hold", "c", "--key", "a", "--", "true"]);
    assert_eq!(status(&second), 75);
    assert!(
        second.err.starts_with("fence: 'a' is held by process "),
        "{}",
        second.err
    );
    assert_eq!(list(&folder).matches("\"c\"").count(), 0, "c was not taken alone");
    drop(first.finish());
    assert_eq!(list(&folder), "[]");
}

#[test]
fn lock_06_the_key_stays_closed_for_its_delay_after_a_holder_that_was_killed() {
    let folder = folder();
    let mut first = start(&folder, hold(&["--delay", "365days"], &STAYS));
    assert_eq!(first.line(), "runs");
    first.kill();
    let second = run(&folder, hold(&[], &["--", "true"]));
    assert_eq!(status(&second), 75);
    assert!(second.err.starts_with("fence: 'k' is closed for "), "{}", second.err);
}

#[test]
fn the_lease_is_renewed_for_as_long_as_the_command_runs() {
    let folder = folder();
    let mut first = start(
        &folder,
        hold(&["--ttl", "4s"], &["--", "sh", "-c", "echo runs; read line; echo done"]),
    );
    assert_eq!(first.line(), "runs");
    // Its rest is never seen below that of a lease that is renewed at a third, and rises again and again.
    let (mut rises, mut last) = (0, 0);
    wait_until("the lease was renewed three times", || {
        let rest = remaining_ms(&list(&folder));
        rises += usize::from(rest > last);
        last = rest;
        rises > 3
    });
    assert_eq!(first.finish().ok(), "done");
}

fn remaining_ms(list: &str) -> i64 {
    let (_, rest) = list.split_once("\"remaining_ms\":").expect("a lease");
    rest.split(',').next().and_then(|ms| ms.parse().ok()).expect("a number")
}

fn kill(signal: &str, process: &str) -> std::process::Command {
    let mut kill = host::command("kill");
    kill.args([&format!("-{signal}"), process]);
    kill
}

/// Waits until so many stand in the line of the store in this folder.
fn waits_in_line(folder: &tempfile::TempDir, count: usize) {
    let store = Shell::plain().on(folder.path().join("kv.db"));
    wait_until("so many wait in line", || {
        store.run("select count(*) from waiters;").ok() == count.to_string()
    });
}
