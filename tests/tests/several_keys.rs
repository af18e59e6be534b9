//! Several keys under one fence: all or none, in whatever order they are named.

use fence_tests::{LONG, Line, Python, Session, folder, quick_folder, shell_in, wait_until};

fn acquire(shell: &mut Session, keys: &str) -> String {
    shell.ask(&format!("select fence_acquire_all('{keys}', {LONG})"))
}

#[track_caller]
fn fence(shell: &mut Session, keys: &str) -> String {
    let answer = acquire(shell, keys);
    assert!(answer.len() > 20, "{keys}: {answer}");
    answer
}

fn listed(shell: &mut Session) -> String {
    shell.ask("select key || ' ' || fence from fence_leases order by key")
}

#[test]
fn all_keys_are_held_under_one_fence_or_none_is() {
    let folder = folder();
    let (mut a, mut b) = (shell_in(&folder), shell_in(&folder));
    let before = a.ask(&format!("select fence_acquire('to', {LONG})"));
    for keys in [r#"["from", "to"]"#, r#"["to", "from"]"#, r#"["to"]"#] {
        assert_eq!(acquire(&mut b, keys), "NULL");
    }
    assert_eq!(
        listed(&mut b),
        format!("to {before}"),
        "nothing is held of those that failed"
    );
    assert_eq!(a.ask(&format!("select fence_release('to', '{before}')")), "1");

    let both = fence(&mut b, r#"["to", "from"]"#);
    assert!(both.parse::<u128>().ok() > before.parse::<u128>().ok());
    assert_eq!(listed(&mut a), format!("from {both}\nto {both}"));
    for key in ["from", "to"] {
        assert_eq!(a.ask(&format!("select fence_acquire('{key}')")), "NULL");
        assert_eq!(b.ask(&format!("select fence_acquire('{key}')")), "NULL");
    }
    let next = a.ask("select fence_acquire('another')");
    assert!(next.parse::<u128>().ok() > both.parse::<u128>().ok());
}

#[test]
fn the_keys_of_a_list_are_those_of_the_other_functions_and_doubles_count_once() {
    let folder = folder();
    let (mut a, mut b) = (shell_in(&folder), shell_in(&folder));
    let held = fence(&mut a, r#"[42, "42", "é", "\u00e9", "a\"b", -7, " "]"#);
    let keys = ["'42'", "42", "'é'", "'a\"b'", "-7", "'-7'", "' '"];
    for key in keys {
        assert_eq!(b.ask(&format!("select fence_acquire({key})")), "NULL", "{key}");
    }
    assert_eq!(a.ask("select count(*) from fence_leases"), "5");
    assert_eq!(b.ask(&format!("select fence_release_all('{held}')")), "1");
    for key in ["42", "'é'", "'a\"b'", "-7", "' '"] {
        assert_ne!(b.ask(&format!("select fence_acquire({key})")), "NULL", "{key}");
    }
}

#[test]
fn processes_that_name_the_same_keys_in_any_order_never_deadlock_and_never_share_one() {
    let folder = quick_folder();
    let script = "
import json, random
db = connect(args[0], timeout=60)
db.execute('create table if not exists held (key primary key)')
rng = random.Random(int(args[1]))
for n in range(40):
    keys = rng.sample(['a', 'b', 'c', 'd', 'e'], rng.randint(1, 4))
    fence = one(db, 'select fence_acquire_all(?, 3600000, 3600000)', json.dumps(keys))
    # The primary key refuses a key that another process holds.
    db.executemany('insert into held values (?)', [(key,) for key in keys])
    db.executemany('delete from held where key = ?', [(key,) for key in keys])
    assert one(db, 'select fence_release_all(?)', fence) == 1
print('done')
";
    let start = |n: u32| {
        let python = Python::new(script).arg(folder.path().join("app.db"));
        python.arg(n.to_string()).start()
    };
    let processes: Vec<_> = (0..6).map(start).collect();
    for process in processes {
        assert_eq!(process.finish().ok(), "done");
    }
}

#[test]
fn lock_07_who_waits_for_several_keys_is_passed_by_nobody_on_any_of_them() {
    let folder = folder();
    let mut shells: Vec<_> = (0..4).map(|_| shell_in(&folder)).collect();
    let [holder, first, second, newcomer] = &mut shells[..] else {
        panic!("four shells")
    };
    let held = fence(holder, r#"["b"]"#);
    let mut line = Line::of(&folder);
    for (n, (waiter, keys)) in [(&mut *first, r#"["a", "b"]"#), (second, r#"["c", "a"]"#)]
        .into_iter()
        .enumerate()
    {
        waiter.tell(&format!("select fence_acquire_all('{keys}', {LONG}, {LONG})"));
        line.becomes(n + 1);
    }
    // Nobody holds a or c, but somebody stands in line for each.
    for keys in [r#"["a"]"#, r#"["c"]"#, r#"["d", "c"]"#] {
        assert_eq!(acquire(newcomer, keys), "NULL", "{keys}");
    }
    assert_eq!(newcomer.ask("select fence_acquire('a')"), "NULL");
    assert_eq!(holder.ask(&format!("select fence_release_all('{held}')")), "1");
    let held = first.answer();
    line.becomes(1);
    assert_eq!(first.ask(&format!("select fence_release_all('{held}')")), "1");
    assert!(second.answer().len() > 20);
    line.becomes(0);
    assert_ne!(newcomer.ask("select fence_acquire('b')"), "NULL");
}

#[test]
fn lock_04_all_are_renewed_or_none_is() {
    let folder = folder();
    let (mut a, mut b) = (shell_in(&folder), shell_in(&folder));
    let held = a.ask("select fence_acquire_all('[1, 2]', 60000)");
    let long_enough = "select count(*) from fence_leases where remaining_ms > 60000";
    assert_eq!(b.ask(&format!("select fence_renew_all('{held}', {LONG})")), "1");
    assert_eq!(b.ask(long_enough), "2");
    // Without a ttl as long as it was last given.
    assert_eq!(b.ask(&format!("select fence_renew_all('{held}', 60000)")), "1");
    assert_eq!(b.ask(long_enough), "0");
    assert_eq!(b.ask(&format!("select fence_renew_all('{held}')")), "1");
    assert_eq!(b.ask(long_enough), "0");

    // One of them is lost: first its time has run out, then it is another's.
    assert_eq!(a.ask(&format!("select fence_renew(1, '{held}', 1)")), "1");
    let mut others = String::new();
    wait_until("key 1 has ended", || {
        assert_eq!(b.ask("select count(*) from fence_leases where key = 2"), "1");
        others = b.ask(&format!("select fence_acquire(1, {LONG})"));
        others != "NULL"
    });
    assert_eq!(a.ask(&format!("select fence_renew_all('{held}', {LONG})")), "0");
    assert_eq!(
        a.ask("select remaining_ms <= 60000 from fence_leases where key = 2"),
        "1",
        "what is left was not renewed"
    );
    // Its holder may still let go of the rest, and of nothing else.
    assert_eq!(a.ask(&format!("select fence_release_all('{held}')")), "1");
    assert_eq!(listed(&mut a), format!("1 {others}"));
    assert_eq!(a.ask(&format!("select fence_release_all('{held}')")), "0");
    assert_eq!(a.ask(&format!("select fence_renew_all('{held}')")), "0");
}

#[test]
fn lock_04_a_key_that_has_run_out_keeps_the_others_from_being_renewed() {
    let folder = folder();
    let mut shell = shell_in(&folder);
    let held = fence(&mut shell, r#"["a", "b"]"#);
    assert_eq!(shell.ask(&format!("select fence_renew('a', '{held}', 1)")), "1");
    wait_until("a has ended", || shell.ask("select count(*) from fence_leases") == "1");
    assert_eq!(shell.ask(&format!("select fence_renew_all('{held}')")), "0");
    assert_eq!(shell.ask(&format!("select fence_release_all('{held}')")), "1");
}

#[test]
fn a_key_that_is_released_by_itself_is_free_and_the_others_go_on() {
    let folder = folder();
    let (mut a, mut b) = (shell_in(&folder), shell_in(&folder));
    let held = fence(&mut a, r#"["a", "b", "c"]"#);
    assert_eq!(a.ask(&format!("select fence_release('a', '{held}')")), "1");
    assert_eq!(a.ask(&format!("select fence_release('a', '{held}')")), "0");
    let others = b.ask("select fence_acquire('a')");
    assert_ne!(others, "NULL");
    assert_eq!(a.ask(&format!("select fence_renew_all('{held}')")), "1");
    assert_eq!(a.ask(&format!("select fence_renew('b', '{held}')")), "1");
    assert_eq!(a.ask(&format!("select fence_release_all('{held}')")), "1");
    assert_eq!(listed(&mut b), format!("a {others}"));

    let held = fence(&mut a, r#"["b", "c"]"#);
    for key in ["c", "b"] {
        assert_eq!(a.ask(&format!("select fence_release('{key}', '{held}')")), "1");
    }
    assert_eq!(
        a.ask(&format!("select fence_renew_all('{held}')")),
        "0",
        "nothing is left"
    );
    assert_eq!(a.ask(&format!("select fence_release_all('{held}')")), "0");
}

#[test]
fn a_fence_of_nothing_or_of_a_single_key_is_no_lease_of_several() {
    let folder = folder();
    let mut shell = shell_in(&folder);
    let single = shell.ask("select fence_acquire('k')");
    for fence in [
        format!("'{single}'"),
        "'7'".into(),
        "7".into(),
        "''".into(),
        "NULL".into(),
    ] {
        assert_eq!(shell.ask(&format!("select fence_renew_all({fence})")), "0", "{fence}");
        assert_eq!(shell.ask(&format!("select fence_release_all({fence})")), "0", "{fence}");
    }
    assert_eq!(listed(&mut shell), format!("k {single}"));
    // One key is a list as well.
    let listed = fence(&mut shell, r#"["j"]"#);
    assert_eq!(shell.ask(&format!("select fence_renew_all('{listed}')")), "1");
    assert_eq!(shell.ask(&format!("select fence_release_all('{listed}')")), "1");
}

#[test]
fn what_is_no_list_of_keys_is_an_error_and_nothing_is_held() {
    let folder = folder();
    let mut shell = shell_in(&folder);
    for keys in [
        "NULL",
        "''",
        "'a'",
        "'\"a\"'",
        "'{}'",
        "'[1.5]'",
        "'[null]'",
        "'[true]'",
        "'[[\"a\"]]'",
        "'[\"a\"'",
        "7",
        "1.5",
        "x'5b315d'",
        "'[1e400]'",
    ] {
        let answer = shell.ask(&format!("select fence_acquire_all({keys})"));
        assert!(
            answer.contains("fence: not a list of keys: fence_acquire_all(keys) is "),
            "{keys}: {answer}"
        );
    }
    for (keys, complaint) in [
        ("'[]'", "keys holds 0 keys: give 1 to 1000"),
        ("'[\"a\", \"\"]'", "cannot be a key"),
        ("'[\"a\", \"a\\u0000b\"]'", "cannot be a key"),
        ("'[\"a\", \"' || printf('%.1025c', 'x') || '\"]'", "cannot be a key"),
        (
            "(with n(i) as (select 1 union all select i + 1 from n limit 1001) select json_group_array(i) from n)",
            "keys holds 1001 keys: give 1 to 1000",
        ),
        ("'[1' || printf('%.9000000c', ' ') || ']'", "too many keys"),
    ] {
        let answer = shell.ask(&format!("select fence_acquire_all({keys})"));
        assert!(answer.contains(complaint) && answer.len() < 500, "{keys}: {answer}");
    }
    assert_eq!(shell.ask("select count(*) from fence_leases"), "0");
    let thousand =
        "(with n(i) as (select 1 union all select i + 1 from n limit 1000) select json_group_array(i) from n)";
    assert_ne!(shell.ask(&format!("select fence_acquire_all({thousand})")), "NULL");
    assert_eq!(
        shell.ask("select count(distinct fence), count(*) from fence_leases"),
        "1|1000"
    );
}
