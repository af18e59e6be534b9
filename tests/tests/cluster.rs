//! The extension and the program on a cluster: the same SQL, with a location in place of a file's path.
//!
//! What a store keeps there is in contract.rs. Here is what a user types and sees.

use std::path::Path;

use fence_tests::etcd::Cluster;
use fence_tests::{LONG, Session, Shell, cluster_library, folder, host, program, root, wait_until};
use once_cell::sync::Lazy;

/// One that no test disturbs.
static CALM: Lazy<Cluster> = Lazy::new(Cluster::start);

fn shell(folder: &Path, location: &str) -> Shell {
    Shell::plain()
        .with_library(cluster_library())
        .on(folder.join("app.db"))
        .env("FENCE_STORE", location)
}

#[track_caller]
fn fence(answer: String) -> u128 {
    answer.parse().unwrap_or_else(|_| panic!("no fence: {answer}"))
}

/// What stands in sql/save_summary.sql, with these values, and the rows that it changed.
#[track_caller]
fn save(shell: &mut Session, text: &str, fence: u128) -> String {
    shell.ask(".parameter set :id 42");
    shell.ask(&format!(".parameter set :text \"'{text}'\""));
    shell.ask(&format!(".parameter set :fence \"'{fence}'\""));
    shell.ask(&format!(".read {}", root().join("sql/save_summary.sql").display()));
    shell.ask("select changes()")
}

/// The story of the README: A stands still for longer than its lease, B saves, A comes late. In its middle the cluster
/// loses its leader for good.
#[test]
fn lock_02_the_late_writer_is_refused_while_the_clusters_leader_is_killed() {
    let mut cluster = Cluster::start();
    let (folder, location) = (folder(), cluster.location("story"));
    for file in ["demo.sql", "0004_summary_fence.sql"] {
        let path = root().join("sql").join(file);
        Shell::plain()
            .on(folder.path().join("app.db"))
            .run(&format!(".read {}", path.display()))
            .ok();
    }
    let mut a = shell(folder.path(), &location).start();
    let mut b = shell(folder.path(), &location).start();

    let fence_a = fence(a.ask("select fence_acquire('chat:42', 1000)"));
    a.process().stop();
    let leader = cluster.leader();
    cluster.kill(leader);
    // Until the others have elected one of them, and A's lease has run out.
    let fence_b = fence(b.ask(&format!("select fence_acquire('chat:42', {LONG}, {LONG})")));
    assert!(fence_b > fence_a);
    assert_eq!(save(&mut b, "saved by B", fence_b), "1");

    a.process().go_on();
    assert_eq!(
        save(&mut a, "saved by A", fence_a),
        "0",
        "the late write was not refused"
    );
    assert_eq!(a.ask(&format!("select fence_renew('chat:42', '{fence_a}')")), "0");
    assert_eq!(a.ask(&format!("select fence_release('chat:42', '{fence_a}')")), "0");
    let row = b.ask("select id, summary, summary_fence from chats");
    assert_eq!(row, format!("42|saved by B|{fence_b:040}"));
    assert_eq!(b.ask(&format!("select fence_release('chat:42', '{fence_b}')")), "1");
}

#[test]
fn the_default_library_says_what_to_do_about_a_cluster_and_makes_no_file() {
    let folder = folder();
    let told =
        "the store is on an etcd cluster, and this library was built without: use the one that `make etcd` builds";
    for path in ["etcd://localhost/jobs", "etcds://user:secret@localhost/jobs"] {
        let open = Shell::new().on(folder.path().join("app.db"));
        let answer = open.run(&format!("select fence_open('{path}')")).error();
        assert!(answer.contains(told) && !answer.contains("secret"), "{answer}");
        let answer = open.env("FENCE_STORE", path).run("select fence_acquire('k')").error();
        assert!(answer.contains(told) && !answer.contains("secret"), "{answer}");
    }
    let left = std::fs::read_dir(folder.path()).expect("a folder");
    let left: Vec<_> = left.map(|entry| entry.expect("an entry").file_name()).collect();
    assert!(left.iter().all(|name| name == "app.db"), "{left:?}");
}

#[test]
fn sql_and_the_environment_choose_a_cluster_as_they_choose_a_file() {
    let folder = folder();
    let location = CALM.location("chosen");
    let plain = || {
        Shell::plain()
            .with_library(cluster_library())
            .on(folder.path().join("app.db"))
    };
    let opened = plain()
        .run(&format!("select fence_open('{location}/'); select fence_open();"))
        .ok();
    assert_eq!(opened, format!("{location}\n{location}"));
    let fence = plain()
        .env("FENCE_STORE", &location)
        .run("select fence_acquire('k')")
        .ok();
    // Another process, by the other way, on the same store.
    let answers = plain()
        .run(&format!(
            "select fence_open('{location}') is not null, fence_acquire('k') is null, fence_renew('k', '{fence}')"
        ))
        .ok();
    assert_eq!(answers, "1|1|1");
    // Another prefix is another store, which SQL may not choose where the environment has chosen.
    let set = plain().env("FENCE_STORE", &location);
    let other = CALM.location("other");
    let refused = set.run(&format!("select fence_open('{other}')")).error();
    assert!(refused.contains("SQL may not choose another"), "{refused}");
    let refused = set.run("select fence_open('kv.db')").error();
    assert!(refused.contains("SQL may not choose another"), "{refused}");
    assert!(
        plain()
            .run(&format!("select fence_open('{other}'); select fence_acquire('k');"))
            .ok()
            .contains('\n')
    );
}

#[test]
fn a_location_that_cannot_be_used_is_an_error_that_shows_no_password() {
    let folder = folder();
    let run = |location: &str| shell(folder.path(), location).run("select fence_acquire('k')").error();
    let answer = run("etcd://user:secret@localhost:0/jobs");
    assert!(
        answer.contains("cannot be the path of a store") && !answer.contains("secret"),
        "{answer}"
    );
    // Nobody listens there: an error, and soon.
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = nobody.local_addr().expect("an address");
    drop(nobody);
    let answer = run(&format!("etcd://user:secret@{address}/jobs"));
    assert!(answer.contains("see that most of its members run"), "{answer}");
    assert!(!answer.contains("secret"), "{answer}");
}

#[test]
fn lock_10_who_moves_from_a_file_to_a_cluster_lifts_its_epoch_past_the_files_fences() {
    let folder = folder();
    // As after fence_advance on the file, so that the clock alone does not do.
    let seen = (9_000_000_000_000_u128 << 64) + 7;
    let location = CALM.location("moved");
    let sql = format!("select fence_advance('{seen}'); select fence_acquire('k');");
    let answer = shell(folder.path(), &location).run(&sql).ok();
    let (epoch, first) = answer.split_once('\n').expect("two rows");
    assert_eq!(epoch, "9000000000001");
    assert!(fence(first.to_owned()) > seen);
}

#[test]
fn the_program_holds_and_lists_on_a_cluster() {
    let folder = folder();
    let location = CALM.location("program");
    let fence = |arguments: &[&str]| {
        let mut command = host::command(program());
        command
            .current_dir(folder.path())
            .env("FENCE_STORE", &location)
            .args(arguments);
        host::run(command, "")
    };
    let nothing = fence(&["list"]).error();
    assert!(
        nothing.contains("there is no store") && nothing.contains("/program"),
        "{nothing}"
    );
    let inner = format!("'{}' list", program().display());
    let listed = fence(&["hold", "chat:42", "--", "sh", "-c", &inner]).ok();
    assert!(listed.contains("chat:42") && listed.contains("lease"), "{listed}");
    wait_until("it was released", || !fence(&["list"]).ok().contains("chat:42"));
    let first = fence(&["hold", "k", "--", "sh", "-c", "echo $FENCE"]).ok();
    let second = fence(&["hold", "k", "--", "sh", "-c", "echo $FENCE"]).ok();
    assert!(
        second.parse::<u128>().ok() > first.parse::<u128>().ok(),
        "{first}, {second}"
    );
    assert!(!folder.path().join("kv.db").exists());
}

#[test]
fn an_interrupt_ends_a_wait_and_the_statement() {
    let folder = folder();
    let location = CALM.location("interrupted");
    let mut holder = shell(folder.path(), &location).start();
    fence(holder.ask(&format!("select fence_acquire('k', {LONG})")));
    let mut waiter = shell(folder.path(), &location).start();
    waiter.tell(&format!("select fence_acquire('k', {LONG}, {LONG})"));
    let in_line = || {
        CALM.etcdctl(["get", "--prefix", "--keys-only", "interrupted"])
            .ok()
            .contains("\0line/")
    };
    wait_until("it stands in line", in_line);
    waiter.process().interrupt();
    // A shell that reads from a pipe ends then.
    let answer = waiter.process().line();
    let told = "fence: interrupted while waiting: nothing was granted";
    assert!(answer.contains(told), "{answer}");
    wait_until("it left the line", || !in_line());
}
