//! First light: a late writer is refused, end to end, in the programs that people use.

use std::path::Path;

use fence_tests::{Python, Shell, cluster_library, folder, host, quick_folder, root};

#[test]
fn the_demo_refuses_the_late_write_and_shows_what_the_database_answered() {
    fence_tests::extension::make();
    demo("demo");
}

#[test]
fn the_demo_on_a_cluster_does_so_although_the_leader_is_killed_in_the_middle() {
    cluster_library();
    let shown = demo("demo-etcd");
    let [before, after] = ["the leader before", "the leader after"].map(|name| value(&shown, name));
    assert!(before.starts_with("member ") && after.starts_with("member "), "{shown}");
    assert_ne!(before, after, "{shown}");
}

/// On a machine without etcd and sqlite3, whose apt-get is the test's.
#[cfg(target_os = "linux")]
#[test]
fn a_demo_installs_the_programs_that_it_needs_and_no_others() {
    use std::os::unix::fs::{PermissionsExt, symlink};

    let folder = folder();
    let (programs, installed) = (folder.path().join("bin"), folder.path().join("installed"));
    std::fs::create_dir(&programs).expect("a new folder");
    let missing = ["etcd", "etcdctl", "sqlite3", "sudo", "apt-get", "ruby"];
    for program in Path::new("/usr/bin").read_dir().expect("a folder") {
        let program = program.expect("an entry");
        let name = program.file_name();
        if missing.iter().all(|missing| name != *missing) {
            symlink(program.path(), programs.join(name)).expect("a new name");
        }
    }
    let apt_get = "#!/bin/bash\n[ $1 = update ] && exit\necho \"$@\" | tr ' ' '\\n' | grep -v ^- >>INSTALLED\n\
                   for program in etcd etcdctl sqlite3; do ln -sf /usr/bin/$program PROGRAMS; done\n";
    let apt_get = apt_get
        .replace("INSTALLED", &installed.to_string_lossy())
        .replace("PROGRAMS", &programs.to_string_lossy());
    std::fs::write(programs.join("apt-get"), apt_get).expect("a new file");
    std::fs::set_permissions(programs.join("apt-get"), PermissionsExt::from_mode(0o755)).expect("a file of ours");
    std::fs::write(programs.join("sudo"), "#!/bin/bash\nshift\nexec \"$@\"\n").expect("a new file");
    std::fs::set_permissions(programs.join("sudo"), PermissionsExt::from_mode(0o755)).expect("a file of ours");

    let hosts = |arguments: &[&str]| {
        let mut hosts = host::command(root().join("tests/hosts"));
        hosts.args(arguments).env("PATH", &programs);
        host::run(hosts, "")
    };
    assert!(hosts(&["path", "etcd"]).error().contains("apt-get install etcd-server"));
    assert!(
        hosts(&["install", "nonsense"])
            .error()
            .contains("no host is called 'nonsense'")
    );
    let answer = hosts(&["install", "etcd", "sqlite3"]);
    assert!(answer.status.success(), "{answer}");
    let asked_for = std::fs::read_to_string(installed).expect("what was installed");
    assert_eq!(asked_for, "install\netcd-server\nsqlite3\n");
    assert_eq!(hosts(&["path", "etcd"]).ok(), programs.join("etcd").to_string_lossy());
}

/// Runs the target and sees to what every demo shows; gives all of it.
#[track_caller]
fn demo(target: &str) -> String {
    let mut demo = host::command("make");
    demo.args(["--no-print-directory", "-C"]).arg(root()).arg(target);
    fence_tests::extension::forget_the_outer_build(&mut demo);
    let answer = host::run(demo, "");
    assert!(answer.status.success(), "{answer}");
    let shown = answer.out;
    let [fence_a, fence_b] =
        ["A's fence", "B's fence"].map(|name| value(&shown, name).parse::<u128>().expect("a fence"));
    assert!(fence_a < fence_b, "{shown}");
    let changes = ["B's write, changes()", "A's write, changes()"].map(|name| value(&shown, name));
    assert_eq!(changes, ["1", "0"], "{shown}");
    assert!(shown.contains(&format!("42|saved by B|{fence_b:040}")), "{shown}");
    shown
}

/// What stands behind the name in a demo's summary.
#[track_caller]
fn value<'a>(shown: &'a str, name: &str) -> &'a str {
    let line = shown.lines().find_map(|line| line.trim().strip_prefix(name));
    line.unwrap_or_else(|| panic!("the demo does not show {name}: {shown}"))
        .trim()
}

#[test]
fn a_late_write_of_a_stopped_process_is_refused() {
    let folder = folder();
    let start = || Shell::new().on(folder.path().join("app.db")).start();
    let (mut a, mut b) = (start(), start());
    for file in ["demo.sql", "0004_summary_fence.sql"] {
        a.ask(&format!(".read \"{}\"", root().join("sql").join(file).display()));
    }
    let save = format!(".read \"{}\"", root().join("sql/save_summary.sql").display());
    for (shell, text) in [(&mut a, "A"), (&mut b, "B")] {
        shell.ask(".nullvalue NULL");
        shell.ask(".parameter init");
        shell.ask(&format!(
            "insert into temp.sqlite_parameters values (':id', 42), (':text', '{text}')"
        ));
    }
    // Named: the shell keeps the fence as the text that it is.
    let acquire = "replace into temp.sqlite_parameters values (':fence', fence_acquire('chat:42', 200))";
    assert_eq!(a.ask(acquire), "");
    // A is stopped with its write already under way, between its check and its write as it were.
    a.process().stop();
    a.tell(&save);
    fence_tests::wait_until("A's lease ran out", || {
        assert_eq!(b.ask(acquire), "");
        b.ask("select :fence") != "NULL"
    });
    assert_eq!(b.ask(&save), "");
    assert_eq!(b.ask("select changes()"), "1");
    a.process().go_on();
    assert_eq!(a.answer(), "");
    assert_eq!(a.ask("select changes()"), "0");
    assert_eq!(
        b.ask("select summary, summary_fence = fence_pad(:fence) from chats"),
        "B|1"
    );
    assert_eq!(b.ask(&save), "", "the holder may write again");
    assert_eq!(b.ask("select changes()"), "1");
}

#[test]
fn a_trigger_with_fence_ok_works_where_the_schema_is_not_trusted() {
    let shell = Shell::new();
    let answer = shell.run(
        "create table t (id integer primary key, x, fence text not null default '');
         create trigger stale before update on t when not fence_ok(old.fence, new.fence)
         begin select raise(abort, 'a stale write'); end;
         insert into t values (1, 'a', '9');
         pragma trusted_schema = off;
         update t set x = 'b', fence = '10';
         update t set x = 'c', fence = '9';
         select * from t;",
    );
    assert_eq!(answer.out, "1|b|10\n");
    assert!(answer.error().contains("a stale write"));
}

#[test]
fn nothing_that_touches_the_store_runs_from_a_view_or_a_trigger() {
    let folder = folder();
    let shell = Shell::new().on(folder.path().join("app.db"));
    let innocuous = 0x20_0000;
    let called = shell
        .run(&format!(
            "select distinct name || '(' || rtrim(replace(hex(zeroblob(narg)), '00', 'null,'), ',') || ')'
             from pragma_function_list
             where (name like 'fence%' or name like 'semaphore%') and flags & {innocuous} = 0;"
        ))
        .ok();
    let selects = called.lines().map(|call| format!("select {call}"));
    let tables = ["fence_leases", "fence_acquire('k')"].map(|table| format!("select * from {table}"));
    let selects: Vec<_> = selects.chain(tables).collect();
    for function in ["open", "acquire", "renew", "release", "advance"] {
        let call = format!("select fence_{function}(");
        assert!(
            selects.iter().any(|select| select.starts_with(&call)),
            "{call} is tried: {selects:?}"
        );
    }
    for (n, select) in selects.iter().enumerate() {
        for trusted in ["on", "off"] {
            let error = shell.run(&format!(
                "pragma trusted_schema = {trusted};
                 create view if not exists v{n} as {select};
                 select * from v{n};"
            ));
            assert!(error.error().contains("unsafe use of"), "{select} in a view");
        }
        let error = shell.run(&format!(
            "create table t{n} (x);
             create trigger tr{n} after insert on t{n} begin {select}; end;
             insert into t{n} values (1);"
        ));
        assert!(error.error().contains("unsafe use of"), "{select} in a trigger");
    }
    assert!(!folder.path().join("kv.db").exists(), "no store was opened");
}

#[test]
fn memory_and_file_descriptors_stay_flat_over_twenty_thousand_connections() {
    let folder = quick_folder();
    let script = "
import ctypes, gc, os, resource

class Mallinfo2(ctypes.Structure):
    names = 'arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost'
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]

def memory():
    '''Bytes in use: what malloc has given out where it tells, else the most that was ever resident.'''
    gc.collect()
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except AttributeError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    mallinfo2.restype = Mallinfo2
    info = mallinfo2()
    return info.uordblks + info.hblkhd

def files():
    return len(os.listdir('/dev/fd'))

def cycle(n):
    db = connect(args[0])
    fence = one(db, 'select fence_acquire(?)', f'key {n % 7}')
    assert one(db, 'select fence_release(?, ?)', f'key {n % 7}', fence) == 1
    db.close()

for n in range(1000):
    cycle(n)
memory()
before = memory(), files()
for thousand in range(19):
    for n in range(1000):
        cycle(n)
    print(thousand, flush=True)
after = memory(), files()
print(after[0] - before[0], after[1] - before[1])
";
    let mut python = Python::new(script).arg(folder.path().join("app.db")).start();
    for thousand in 0..19 {
        assert_eq!(python.line(), thousand.to_string());
    }
    let grown = python.finish().ok();
    let (memory, files) = grown.split_once(' ').expect("two numbers");
    assert_eq!(files, "0", "file descriptors");
    // malloc's smallest piece is 32 bytes, so one lost for each connection would be 608,000. What malloc itself keeps for
    // the next call varies by some ten thousand.
    assert!(
        memory.parse::<i64>().expect("a number") < 100_000,
        "{memory} bytes more after 19,000 connections"
    );
}
