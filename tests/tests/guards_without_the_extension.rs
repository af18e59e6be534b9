//! CHECK-05: a guard is plain SQL. Programs without the extension do all that they did before, and are refused when stale,
//! on the system's SQLite and, where it has what is tried, on the oldest that will do.

use fence_tests::{Answer, Session, Shell, floor, folder, recovery};

const CHATS: &str = "
create table chats (id integer primary key, slug text unique, summary text, summary_fence text not null default '');
create table parts (chat text, part integer, body text, fence text, primary key (chat, part)) without rowid;
create unique index chats_slug on chats (lower(slug)) where summary is not null;
insert into chats values (42, 'a', 'later', fence_pad(8)), (43, 'b', null, '');
insert into parts values ('a', 1, 'later', fence_pad(8));
select fence_guard('chats', 'summary_fence', 'holder+remember');
select fence_guard('parts', 'fence', 'write');
";
const STALE: &str = "update chats set summary = 'late', summary_fence = printf('%040d', 7) where slug = 'a'";
const FORGOT: &str = "update parts set body = 'late'";
const GOOD: &str = "update chats set summary = 'new', summary_fence = printf('%040d', 9) where slug = 'a'";
const GOOD_PART: &str = "update parts set body = 'new', fence = printf('%040d', 9) where chat = 'a'";
const READ: &str = "select slug, summary, cast(summary_fence as integer) from chats order by id";
const ROWS: &str = "a|later|8\nb||0";

/// A database that was guarded by a program with the extension.
fn guarded(folder: &tempfile::TempDir) -> std::path::PathBuf {
    let app = folder.path().join("app.db");
    assert_eq!(Shell::new().on(&app).run(CHATS).ok(), "1\n1");
    app
}

/// The guard does in this shell what it should.
#[track_caller]
fn stands(shell: &mut Session, rows: &str) {
    assert_eq!(shell.ask(READ), rows);
    for (write, refused) in [(STALE, "fence: stale: "), (FORGOT, "fence: unfenced: ")] {
        let answer = shell.ask(write);
        assert!(answer.contains(refused), "{write}: {answer}");
    }
    assert_eq!(shell.ask("delete from chats where id = 43"), "");
    assert_eq!(shell.ask("insert into chats (id, slug) values (43, 'b')"), "");
    assert_eq!(shell.ask("pragma integrity_check"), "ok");
    assert_eq!(shell.ask(READ), rows);
}

#[test]
fn check_05_a_guard_uses_no_function_that_sqlite_does_not_have() {
    let folder = folder();
    let app = guarded(&folder);
    let mut shell = Shell::plain().on(&app).start();
    for shell in [&mut shell, &mut Shell::plain().of(floor::shell()).on(&app).start()] {
        for setting in [
            "pragma trusted_schema = off",
            ".dbconfig dqs_ddl off",
            ".dbconfig dqs_dml off",
            ".dbconfig defensive on",
        ] {
            shell.ask(setting);
            stands(shell, ROWS);
        }
    }
    assert_eq!(
        shell.ask(
            "select count(*) from sqlite_schema where type = 'trigger' and sql like '%fence\\_pad(fence%' escape '\\'"
        ),
        "0"
    );
}

#[test]
fn check_05_the_plain_shell_reads_writes_and_keeps_house() {
    for plain in [Shell::plain(), Shell::plain().of(floor::shell())] {
        keeps_house(&plain);
    }
}

fn keeps_house(plain: &Shell) {
    let folder = folder();
    let plain = |database| plain.clone().on(database).start();
    let mut shell = plain(guarded(&folder));
    stands(&mut shell, ROWS);
    for upkeep in [
        "vacuum",
        "reindex",
        "analyze",
        "pragma wal_checkpoint",
        "pragma optimize",
        "begin",
        "commit",
    ] {
        shell.ask(upkeep);
        stands(&mut shell, ROWS);
    }
    let copy = folder.path().join("copy.db");
    shell.ask(&format!("vacuum into '{}'", copy.display()));
    for shell in [&mut shell, &mut plain(copy)] {
        takes_good_writes(shell);
    }
}

/// A good write comes in, and what is older is refused from then on.
#[track_caller]
fn takes_good_writes(shell: &mut Session) {
    stands(shell, ROWS);
    for good in [GOOD, GOOD_PART] {
        assert_eq!(shell.ask(good), "");
        assert_eq!(shell.ask("select changes()"), "1", "{good}");
    }
    stands(shell, "a|new|9\nb||0");
}

#[test]
fn check_05_a_dump_and_a_recovery_bring_the_guard_with_them() {
    let folder = folder();
    let app = guarded(&folder);
    let dump = Shell::plain().on(&app).run(".dump").ok();
    for (way, script) in [("dump", dump), ("recover", recovery::recover(&app).ok())] {
        let copy = folder.path().join(format!("{way}.db"));
        Shell::plain().on(&copy).run(&script).ok();
        takes_good_writes(&mut Shell::plain().on(&copy).start());
        let audited: Answer = Shell::new()
            .on(&copy)
            .run("select \"table\", guard from fence_audit where guard <> 'none'");
        assert_eq!(audited.ok(), "chats|whole\nparts|whole", "{way}");
    }
    let backup = folder.path().join("backup.db");
    Shell::plain()
        .on(&app)
        .run(&format!(".backup \"{}\"", backup.display()))
        .ok();
    takes_good_writes(&mut Shell::plain().on(&backup).start());
}

#[test]
fn check_05_tables_and_columns_are_renamed_added_and_dropped() {
    let folder = folder();
    let mut shell = Shell::plain().on(guarded(&folder)).start();
    rename(&mut shell);
    assert_eq!(shell.ask("alter table talks drop column note"), "");
    writes_by_the_new_names(&mut shell);
    // A column that the guard looks at stays; SQLite says so.
    let dropped = shell.ask("alter table talks drop column digest_fence");
    assert!(dropped.contains("chats_summary_fence_guard_"), "{dropped}");

    let old = self::folder();
    let mut shell = Shell::plain().of(floor::shell()).on(guarded(&old)).start();
    rename(&mut shell);
    writes_by_the_new_names(&mut shell);
}

fn rename(shell: &mut Session) {
    for change in [
        "alter table chats rename to talks",
        "alter table talks rename column summary to digest",
        "alter table talks rename column summary_fence to digest_fence",
        "alter table parts rename column body to words",
        "alter table talks add column note text",
    ] {
        assert_eq!(shell.ask(change), "", "{change}");
    }
}

fn writes_by_the_new_names(shell: &mut Session) {
    for (write, refused) in [
        (
            "update talks set digest = 'late', digest_fence = printf('%040d', 7) where slug = 'a'",
            "fence: stale: ",
        ),
        (
            "replace into talks (slug, digest_fence) values ('a', printf('%040d', 7))",
            "fence: stale: ",
        ),
        ("update parts set words = 'late'", "fence: unfenced: "),
    ] {
        let answer = shell.ask(write);
        assert!(answer.contains(refused), "{write}: {answer}");
    }
    for good in [
        "update talks set digest = 'new', digest_fence = printf('%040d', 9) where slug = 'a'",
        "update parts set words = 'new', fence = printf('%040d', 9)",
    ] {
        assert_eq!(shell.ask(good), "");
        assert_eq!(shell.ask("select changes()"), "1", "{good}");
    }
    assert_eq!(shell.ask("pragma integrity_check"), "ok");
}
