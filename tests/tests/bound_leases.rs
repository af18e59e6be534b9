//! LOCK-11: a lease that is bound to its process ends with that process, at once, however it died.
//!
//! Nothing here waits for a ttl, nor asks twice: when a process has ended, its lease has.

use fence_tests::{LONG, Process, Python, Session, Shell, folder, shell_in};

const BOUND: &str = "'{\"bound\": true}'";

fn acquire(shell: &mut Session) -> String {
    shell.ask(&format!("select fence_acquire('k', {LONG}, 0, {BOUND})"))
}

/// A Python script that takes a bound lease of `k`, says so, and then does this.
fn holder(folder: &tempfile::TempDir, then: &str) -> Process {
    let script = format!(
        "
import os, gc
db = connect(args[0])
fence = one(db, \"select fence_acquire('k', 3600000, 0, ?)\", '{{\"bound\": true}}')
print('holds' if fence else 'has nothing', flush=True)
{then}
"
    );
    let mut process = Python::new(&script).arg(folder.path().join("app.db")).start();
    assert_eq!(process.line(), "holds");
    process
}

#[track_caller]
fn is_held(other: &mut Session) {
    assert_eq!(other.ask("select fence_acquire('k')"), "NULL");
    assert_eq!(other.ask("select kind, bound from fence_leases"), "lease|1");
}

#[track_caller]
fn is_free(other: &mut Session) {
    assert_eq!(other.ask("select count(*) from fence_leases"), "0");
    let fence = other.ask("select fence_acquire('k')");
    assert_ne!(fence, "NULL");
    assert_eq!(other.ask(&format!("select fence_release('k', '{fence}')")), "1");
}

#[test]
fn lock_11_a_bound_lease_ends_with_its_process_however_it_died() {
    let folder = folder();
    let mut other = shell_in(&folder);
    let mut shell = shell_in(&folder);
    assert_ne!(acquire(&mut shell), "NULL");
    is_held(&mut other);
    shell.process().kill();
    is_free(&mut other);

    let mut shell = shell_in(&folder);
    assert_ne!(acquire(&mut shell), "NULL");
    is_held(&mut other);
    shell.process().terminate();
    is_free(&mut other);

    let mut shell = shell_in(&folder);
    assert_ne!(acquire(&mut shell), "NULL");
    is_held(&mut other);
    shell.finish();
    is_free(&mut other);

    for end in [
        "sys.exit()",
        "os._exit(3)",
        "os.abort()",
        "os.kill(os.getpid(), 11)",
        "1 / 0",
    ] {
        let mut process = holder(
            &folder,
            &format!("os.dup2(os.open(os.devnull, os.O_WRONLY), 2); sys.stdin.readline(); {end}"),
        );
        is_held(&mut other);
        process.tell("end");
        process.finish();
        is_free(&mut other);
    }
}

#[test]
fn lock_11_a_process_that_becomes_another_program_ends_its_bound_lease() {
    let folder = folder();
    let mut other = shell_in(&folder);
    let mut process = holder(
        &folder,
        "sys.stdin.readline(); os.execv('/bin/sh', ['sh', '-c', 'echo another; read line'])",
    );
    is_held(&mut other);
    process.tell("exec");
    assert_eq!(process.line(), "another");
    is_free(&mut other);
}

#[test]
fn lock_11_a_bound_lease_outlives_the_connection_that_took_it() {
    let folder = folder();
    let mut other = shell_in(&folder);
    let mut process = holder(
        &folder,
        "db.close(); del db; gc.collect(); print('closed', flush=True); sys.stdin.readline()",
    );
    assert_eq!(process.line(), "closed");
    is_held(&mut other);
    // Not even one that is opened and closed again on the same store lets go of it.
    process.kill();
    let mut process = holder(
        &folder,
        "
db.close()
for _ in range(3):
    db = connect(args[0])
    one(db, \"select fence_acquire('another', 1)\")
    db.close()
print('closed', flush=True)
sys.stdin.readline()",
    );
    assert_eq!(process.line(), "closed");
    assert_eq!(other.ask("select fence_acquire('k')"), "NULL");
    process.kill();
    assert_ne!(other.ask("select fence_acquire('k')"), "NULL");
}

#[test]
fn lock_11_a_child_does_not_end_its_parents_bound_lease_nor_keep_it() {
    let folder = folder();
    let mut other = shell_in(&folder);
    let mut parent = holder(
        &folder,
        "
for end in ('os._exit(0)', 'os.closerange(3, 1000); os._exit(0)', 'one(connect(args[0]), \"select fence_open()\"); os._exit(0)'):
    sys.stdin.readline()
    child = os.fork()
    if child == 0:
        exec(end)
    os.waitpid(child, 0)
    print('the child has ended', flush=True)
sys.stdin.readline()
if os.fork() == 0:
    print('the child lives', flush=True)
    for line in sys.stdin:
        print(line, end='', flush=True)
os._exit(0)
",
    );
    for _ in 0..3 {
        is_held(&mut other);
        parent.tell("fork");
        assert_eq!(parent.line(), "the child has ended");
    }
    is_held(&mut other);
    parent.tell("leave the child behind");
    assert_eq!(parent.line(), "the child lives");
    fence_tests::wait_until("the parent has ended", || {
        other.ask("select count(*) from fence_leases") == "0"
    });
    is_free(&mut other);
    parent.tell("it still lives");
    assert_eq!(parent.line(), "it still lives");
}

#[test]
fn lock_11_a_childs_own_bound_lease_ends_with_the_child() {
    let folder = folder();
    let mut other = shell_in(&folder);
    let script = "
import os
db = connect(args[0])
one(db, \"select fence_acquire('parent', 3600000, 0, ?)\", '{\"bound\": true}')
child = os.fork()
if child == 0:
    assert one(db, \"select fence_acquire('parent')\") is None
    assert one(db, \"select fence_acquire('child', 3600000, 0, ?)\", '{\"bound\": true}')
    print('holds', flush=True)
    sys.stdin.readline()
    os._exit(0)
os.waitpid(child, 0)
print('the child has ended', flush=True)
sys.stdin.readline()
";
    let mut process = Python::new(script).arg(folder.path().join("app.db")).start();
    assert_eq!(process.line(), "holds");
    assert_eq!(other.ask("select key from fence_leases order by key"), "child\nparent");
    process.tell("end the child");
    assert_eq!(process.line(), "the child has ended");
    assert_eq!(other.ask("select key from fence_leases"), "parent");
}

/// As between containers: they share the folder, and neither sees the other's processes.
#[cfg(target_os = "linux")]
#[test]
fn lock_11_no_process_id_is_compared() {
    use fence_tests::host;

    let folder = folder();
    let mut other = shell_in(&folder);
    let mut apart = host::command("unshare");
    if !rustix::process::geteuid().is_root() {
        apart.args(["--user", "--map-root-user"]);
    }
    // --kill-child: the shell ends when unshare does.
    apart.args(["--pid", "--fork", "--kill-child", "--"]);
    apart.arg(Shell::path()).args(["-batch", "-init", "/dev/null", "-cmd"]);
    apart.arg(format!(".load \"{}\"", fence_tests::library().display()));
    apart.arg(folder.path().join("app.db"));
    let mut apart = Process::start(apart);
    apart.tell(&format!("select fence_acquire('k', {LONG}, 0, {BOUND}) is not null;"));
    assert_eq!(apart.line(), "1");
    apart.tell("select process from fence_leases;");
    assert_eq!(apart.line(), "1", "the only process of its own world");
    is_held(&mut other);
    // And the other way round: they are alone, and still see that we live.
    assert_ne!(
        other.ask(&format!("select fence_acquire('ours', {LONG}, 0, {BOUND})")),
        "NULL"
    );
    apart.tell("select fence_acquire('ours') is null;");
    assert_eq!(apart.line(), "1");
    apart.kill();
    fence_tests::wait_until("the processes of that world have ended", || {
        other.ask("select fence_acquire('k') is not null") == "1"
    });
    assert_ne!(other.ask("select count(*) from fence_leases where key = 'ours'"), "0");
}

#[test]
fn an_unbound_lease_outlives_the_shell_that_took_it() {
    let folder = folder();
    let mut other = shell_in(&folder);
    let script = Shell::new()
        .on(folder.path().join("app.db"))
        .run(&format!("select fence_acquire('k', {LONG});"));
    let fence = script.ok();
    assert_eq!(other.ask("select fence_acquire('k')"), "NULL");
    assert_eq!(other.ask("select kind, bound from fence_leases"), "lease|0");
    // The next step of the script is another shell.
    assert_eq!(other.ask(&format!("select fence_renew('k', '{fence}')")), "1");
    assert_eq!(other.ask(&format!("select fence_release('k', '{fence}')")), "1");
}

#[test]
fn lock_11_a_bound_lease_is_renewed_and_released_by_whoever_knows_its_fence() {
    let folder = folder();
    let (mut a, mut b) = (shell_in(&folder), shell_in(&folder));
    let fence = acquire(&mut a);
    assert_eq!(b.ask(&format!("select fence_renew('k', '{fence}')")), "1");
    assert_eq!(b.ask(&format!("select fence_release('k', '{fence}')")), "1");
    // Neither works once its process has ended.
    let fence = acquire(&mut a);
    a.process().kill();
    assert_eq!(b.ask(&format!("select fence_renew('k', '{fence}')")), "0");
    assert_eq!(b.ask(&format!("select fence_release('k', '{fence}')")), "0");
}

#[test]
fn lock_11_a_bound_lease_of_several_keys_ends_as_a_whole() {
    let folder = folder();
    let (mut a, mut b) = (shell_in(&folder), shell_in(&folder));
    let fence = a.ask(&format!(
        "select fence_acquire_all('[\"j\", \"k\"]', {LONG}, 0, {BOUND})"
    ));
    assert_eq!(b.ask(&format!("select fence_renew_all('{fence}')")), "1");
    assert_eq!(b.ask("select fence_acquire('j')"), "NULL");
    a.process().kill();
    assert_eq!(b.ask(&format!("select fence_renew_all('{fence}')")), "0");
    assert_eq!(b.ask(&format!("select fence_release_all('{fence}')")), "0");
    assert_ne!(b.ask("select fence_acquire_all('[\"j\", \"k\"]')"), "NULL");
}

#[test]
fn a_bound_lease_still_has_a_ttl() {
    let folder = folder();
    let (mut a, mut b) = (shell_in(&folder), shell_in(&folder));
    let fence = a.ask(&format!("select fence_acquire('k', 1, 0, {BOUND})"));
    fence_tests::wait_until("its ttl has passed", || {
        b.ask("select fence_acquire('k') is not null") == "1"
    });
    assert_eq!(a.ask(&format!("select fence_renew('k', '{fence}')")), "0");
}
