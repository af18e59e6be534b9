//! Guards (CHECK-04): no statement walks round one.
//!
//! A worker that stood still comes back with fence 7 and writes to a row that has seen 8. The guard is installed with the
//! extension; every write is made by a shell that does not have it, with recursive_triggers off and on, on the system's
//! SQLite and on the oldest that will do. Each line of a table below is a statement and how it is refused: the whole
//! message, SQLITE_CONSTRAINT_TRIGGER, nothing changed, and the transaction goes on. A line that has no conflict clause
//! (OR IGNORE, OR REPLACE …) is tried with each.

use fence_tests::chats::{SCHEMA, guards, schema_without_strict, with_fences};
use fence_tests::{Session, Shell, floor, folder};

/// What a line's first word stands for.
const MESSAGES: [(&str, &str); 5] = [
    (
        "stale",
        "fence: stale: a later holder already wrote this row: drop the work, or take the lease again and start over",
    ),
    (
        "unfenced",
        "fence: unfenced: the row has a fence and this write has none: set the fence column to the fence of its lease",
    ),
    (
        "unraised",
        "fence: unfenced: this write does not raise the fence column: set it to the fence of a lease taken for this write",
    ),
    (
        "hidden",
        "fence: unfenced: a NULL stands for a default here and hides which row it replaces: write the value itself",
    ),
    (
        "no-fence",
        "fence: not a fence: the fence column takes the 40 digits that fence_pad() gives, or '' for none",
    ),
];
/// SQLITE_CONSTRAINT_TRIGGER, as SQLite's log has it.
const CODE: &str = "(1811) ";

/// A line that older ones do not take begins with this.
const SINCE_3_35: &str = "since 3.35";

/// Every statement that a late writer might make; mode holder.
const REFUSED: &str = r#"
-- UPDATE, with each of its conflict clauses.
stale       update chats set summary = 'late', summary_fence = :7 where id = 42
stale       update or ignore chats set summary = 'late', summary_fence = :7 where id = 42
stale       update or replace chats set summary = 'late', summary_fence = :7 where id = 42
stale       update or fail chats set summary = 'late', summary_fence = :7 where id = 42
stale       update or abort chats set summary = 'late', summary_fence = :7 where id = 42
stale       update or rollback chats set summary = 'late', summary_fence = :7 where id = 42
stale       update chats set summary = 'late', summary_fence = :7
stale       update chats set summary = s.summary, summary_fence = s.fence from source s where s.id = chats.id
stale       with s as (select * from source) update chats set summary_fence = (select fence from s) where id = 42
stale       update chats set (summary, summary_fence) = (select summary, fence from source) where id = 42
stale       update chats indexed by chats_email set summary_fence = :7 where email = 'ANN@X'
stale       update chat_view set summary = 'late', summary_fence = :7 where id = 42
stale       insert into inbox values (42, 'late', :7)
-- A fence that is taken away.
unfenced    update chats set summary = 'late', summary_fence = '' where id = 42
unfenced    update or replace chats set summary = 'late', summary_fence = null where id = 42
-- REPLACE, by each key.
stale       replace into chats (id, summary, summary_fence) values (42, 'late', :7)
stale       insert or replace into chats (id, summary, summary_fence) values (42, 'late', :7)
stale       insert or replace into chats (rowid, summary, summary_fence) values ('42', 'late', :7)
stale       insert or replace into chats (oid, summary, summary_fence) values (42.0, 'late', :7)
stale       insert or replace into chats (id, summary, summary_fence) values (' 4.2e1', 'late', :7)
stale       replace into chats (slug, summary, summary_fence) values ('a', 'late', :7)
stale       replace into chats (slug, summary_fence) values ('A  ', :7)
stale       replace into chats (room, seat, summary_fence) values ('red', '1', :7)
stale       replace into chats (email, summary_fence) values ('ANN@X', :7)
stale       replace into chats (email, summary_fence) values ('annabel', :7)
stale       replace into chats (topic, open, summary_fence) values ('tea', 1, :7)
stale       replace into chats (topic, open, summary_fence) values ('tea', '1', :7)
stale       replace into chats (extra, email, summary_fence) values ('k: 5', 'x', :7)
unfenced    replace into chats (id, summary) values (42, 'late')
unfenced    replace into chats (id, summary, summary_fence) values (42, 'late', null)
stale       replace into chats (id, summary_fence) values (2, :9), (42, :7)
stale       replace into chats (id, summary, summary_fence) select * from source
-- A NULL that becomes the default of a NOT NULL column hides the key that is looked up.
hidden      replace into chats (email, summary_fence) values (null, :7)
hidden      update chats set email = null where id = 7
-- INSERT over a row, whatever would become of it.
stale       insert into chats (id, summary, summary_fence) values (42, 'late', :7)
stale       insert or ignore into chats (id, summary, summary_fence) values (42, 'late', :7)
stale       insert or fail into chats (id, summary, summary_fence) values (42, 'late', :7)
stale       insert or rollback into chats (id, summary, summary_fence) values (42, 'late', :7)
stale       insert into chats (id, summary, summary_fence) select * from source
-- UPSERT.
stale       insert into chats (id, summary, summary_fence) values (42, 'late', :7)
            on conflict (id) do update set summary = excluded.summary, summary_fence = excluded.summary_fence
stale       insert into chats (id, summary, summary_fence) values (42, 'late', :7)
            on conflict (id) do update set summary = excluded.summary
stale       insert into chats (id, summary, summary_fence) values (42, 'late', :9)
            on conflict (id) do update set summary = excluded.summary, summary_fence = :7
stale       insert into chats (id, summary_fence) values (42, :7)
            on conflict (id) do update set summary = 'late' where false
stale       insert into chats (id, summary_fence) values (42, :7) on conflict do nothing
unfenced    insert into chats (id) values (42) on conflict (id) do update set summary = 'late'
since 3.35 stale insert into chats (slug, summary_fence) values ('a', :7) on conflict do update set summary = 'late'
-- Another key for the row, and a row moved onto another's key.
stale       update chats set id = 43, summary = 'late', summary_fence = :7 where id = 42
stale       update or replace chats set id = 42, summary_fence = :7 where id = 7
stale       update or replace chats set id = 42 where id = 7
stale       update or replace chats set rowid = 42 where id = 7
unfenced    update or replace chats set _rowid_ = 42 where id = 1
stale       update or replace chats set slug = 'A' where id = 7
stale       update or replace chats set seat = 1 where id = 7
stale       update or replace chats set email = 'ann' where id = 7
stale       update or replace chats set email = 'ANN@x' where id = 7
stale       update or replace chats set topic = 'tea' where id = 7
stale       update or replace chats set extra = 'k : 5' where id = 7
unfenced    update or replace chats set open = 1 where id = 1
-- A table without rowid, STRICT, with a key of two columns.
stale       update docs set body = 'late', fence = :7
stale       update docs set part = 2, fence = :7 where id = 'x'
stale       update docs set id = 'x' where id = 'z'
stale       update docs set body = s.summary, fence = s.fence from source s where docs.id = 'x'
stale       replace into docs values ('x', 1, 'late', :7)
stale       insert into docs values ('x', 1, 'late', :7)
stale       insert into docs select 'x', 1, summary, fence from source
stale       insert into docs values ('x', 1, 'late', :7) on conflict do nothing
stale       insert into docs values ('x', 1, 'late', :7)
            on conflict (part, id) do update set body = excluded.body, fence = excluded.fence
unfenced    insert into docs values ('x', 1, 'late', null) on conflict (id, part) do update set body = 'late'
-- A STRICT table with a rowid.
stale       update pins set fence = :7
stale       update pins set rowid = 43, fence = :7 where slug = 'a'
stale       update pins set slug = 'a' where id = 7
stale       replace into pins (slug, fence) values ('a', :7)
stale       insert into pins select 42, 'late', fence from source
unfenced    insert into pins values (42, 'late', '') on conflict (id) do update set slug = 'late'
-- Partial indexes whose WHERE compares, also with what does not fit the column's type.
stale       replace into flags (name, flag, fence) values ('a', 2, :7)
stale       replace into flags (name, flag, fence) values ('a', 'no', :7)
stale       replace into flags (word, flag, fence) values ('w', 1, :7)
stale       replace into flags (word, flag, fence) values ('w', '1', :7)
stale       update flags set name = 'a', flag = 'no' where id = 7
stale       update flags set word = 'w', flag = '1' where id = 7
-- A column of one collation under an index of another, and a generated one made of what no other key looks at.
stale       replace into tags (tag, fence) values ('A', :7)
stale       update tags set tag = 'A' where id = 7
stale       replace into tags (word, fence) values ('w', :7)
stale       update tags set word = 'w' where id = 7
-- Names that need their quotes, and names that a trigger has for its own.
stale       update "odd ""name"" 日本" set "order" = 'late', "my fence" = :7
stale       update "odd ""name"" 日本" set "select" = 'x' where "select" = 'z'
stale       replace into "odd ""name"" 日本" values ('x', :7, 'late')
stale       insert into "odd ""name"" 日本" values ('x', :7, 'late') on conflict ("select") do update set "order" = 'late'
stale       insert into [odd "name" 日本] ([select], `my fence`) select 'x', fence from source
stale       update or replace "old" set id = 42 where id = 7
stale       update or replace "old" set "new" = 'a' where id = 7
stale       replace into "old" ("new", fence) values ('a', :7)
stale       update or replace "new" set id = 42 where id = 7
stale       replace into "new" ("old", fence) values ('a', :7)
-- A table without any key but the rowid that nobody declared, shadowed by one of TEMP.
stale       replace into main.log (rowid, line, fence) values (5, 'late', :7)
stale       replace into main.log (_rowid_, line, fence) values ('5.0', 'late', :7)
stale       update main.log set line = 'late', fence = :7 where rowid = 5
stale       insert into main.log (rowid, line, fence) select 5, summary, fence from main.source
-- An attached database, with a table that is called as one of main.
stale       update other.chats set fence = :7
stale       update other.chats set fence = s.fence from main.source s where chats.id = 42
stale       update other.chats set id = 43, fence = :7
stale       replace into other.chats (slug, fence) values ('a', :7)
stale       insert into other.chats (id, fence) select id, fence from main.source
stale       insert into other.chats (id, fence) values (42, :7) on conflict (id) do update set fence = excluded.fence
-- What is no fence.
no-fence    update chats set summary_fence = '9' where id = 42
no-fence    update chats set summary_fence = 9 where id = 42
no-fence    update chats set summary_fence = 9e38 where id = 42
no-fence    update chats set summary_fence = '0' || :9 where id = 42
no-fence    update chats set summary_fence = substr(:9, 2) where id = 42
no-fence    update chats set summary_fence = '+' || substr(:9, 2) where id = 42
no-fence    update chats set summary_fence = ' ' || substr(:9, 2) where id = 42
no-fence    update chats set summary_fence = :9 || char(0) || 'x' where id = 42
no-fence    update chats set summary_fence = replace(:9, '9', '９') where id = 42
no-fence    update chats set summary_fence = cast(:9 as blob) where id = 42
no-fence    update chats set summary_fence = x'' where id = 42
no-fence    update chats set summary_fence = '0340282366920938463463374607431768211456' where id = 42
no-fence    update main.log set fence = 9
no-fence    insert into chats (id, summary_fence) values (2, 'x')
"#;

/// Mode write on `summary`: each of these writes it without raising the fence.
const UNRAISED: &str = "
unraised    update chats set summary = 'forgot' where id = 42
unraised    update chats set summary = summary where id = 42
unraised    update or ignore chats set summary = 'forgot' where id = 42
unraised    update or replace chats set summary = 'again', summary_fence = :8 where id = 42
stale       update chats set summary = 'late', summary_fence = :7 where id = 42
unraised    update chats set summary = 'forgot' where id = 1
unraised    update chats set summary = 'forgot', summary_fence = '' where id = 1
unraised    update chats set summary = s.summary from source s where s.id = chats.id
stale       update chats set summary_fence = :7 where id = 42
unraised    insert into chats (summary) values ('forgot')
unraised    insert into chats (id, summary_fence) values (42, :8)
unraised    replace into chats (id, summary, summary_fence) values (42, 'again', :8)
unraised    replace into chats (id, topic) values (1, 'the summary is gone')
unraised    insert into chats (id, summary, summary_fence) values (42, 'x', :9)
            on conflict (id) do update set summary = excluded.summary
unraised    insert into inbox values (42, 'again', :8)
";

/// Mode write on all columns: these as well.
const UNRAISED_AT_ALL: &str = "
unraised    update chats set topic = 'forgot' where id = 42
unraised    update chats set summary_fence = :8 where id = 42
unraised    update chats set rowid = 43 where id = 42
unraised    insert into chats (topic) values ('forgot')
unraised    insert into chats default values
unraised    update rooms set name = 'blue'
";

/// Mode holder+remember: rows were deleted, replaced or moved, and the last statement brings one back.
const REMEMBERED: &str = "
stale       delete from chats; insert into chats (id, summary_fence) values (42, :7)
stale       delete from chats where id = 42; insert into chats (slug, summary_fence) values ('a', :7)
unfenced    delete from chats where id = 42; insert into chats (id) values (42)
stale       delete from chats where id = 42; insert into chats (email, summary_fence) values ('annabel', :7)
stale       delete from chats where id = 42; insert into chats (topic, open, summary_fence) values ('tea', 1, :7)
stale       delete from chats where id = 42; update chats set seat = 1 where id = 7
stale       update chats set id = 43 where id = 42; insert into chats (id, summary_fence) values (42, :7)
stale       update chats set slug = 'z' where id = 42; update chats set slug = 'A' where id = 7
stale       replace into chats (id, email, summary_fence) values (42, 'dan@x', :9);
            insert into chats (slug, email, summary_fence) values ('a', 'eve@x', :7)
stale       delete from chats where id = 42; insert into chats (id, email, summary_fence) values (42, 'dan@x', :9);
            delete from chats where id = 42; insert into chats (id, summary_fence) values (42, :8)
stale       update or replace chats set seat = 1, summary_fence = :9 where id = 7;
            insert into chats (id, summary_fence) values (42, :7)
stale       delete from docs; insert into docs values ('x', 1, 'late', :7)
stale       update docs set part = 2 where id = 'x'; insert into docs values ('x', 1, 'late', :7)
stale       delete from pins; insert into pins (slug, fence) values ('a', :7)
stale       delete from pins; insert into pins values (42, 'a', :9); delete from pins; insert into pins (id, fence) values (42, :8)
stale       update pins set id = 43 where id = 42; insert into pins (id, fence) values (42, :7)
stale       update pins set id = 43 where id = 42; update pins set id = 42 where id = 7
stale       replace into pins (id, fence) values (42, :9); insert into pins (slug, fence) values ('a', :7)
stale       update or replace pins set slug = 'a', fence = :9 where id = 7; insert into pins (id, fence) values (42, :7)
stale       delete from \"old\"; insert into \"old\" (\"new\", fence) values ('a', :7)
stale       delete from \"new\" where id = 42; update \"new\" set \"old\" = 'a' where id = 7
stale       delete from rooms; insert into rooms values ('red'); insert into seats values (1, 'red', :7)
stale       replace into rooms values ('red'); insert into seats values (1, 'red', :7)
";

/// What stands besides the tables of main, while the guards are installed.
const ELSEWHERE: &str = "
attach 'other.db' as other;
create table other.chats (id integer primary key, slug text unique, fence text);
insert into other.chats values (42, 'a', printf('%040d', 8));
select fence_guard('log', 'fence'), fence_guard('other.chats', 'fence');
";
/// And for each connection that writes.
const CONNECTION: &str = "
attach 'other.db' as other;
create temp table log (line text, fence text);
pragma foreign_keys = on;
.log stdout
";

/// What may stand behind UPDATE and INSERT.
const CLAUSES: [&str; 6] = [
    " ",
    " or abort ",
    " or fail ",
    " or ignore ",
    " or replace ",
    " or rollback ",
];

/// A line of a table: statements of which the last is refused, and its message.
struct Line {
    statements: Vec<String>,
    message: &'static str,
    since_3_35: bool,
}

/// The lines of a table; an indented line goes on with the one above.
fn lines(table: &str) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    let mut joined: Vec<String> = Vec::new();
    for line in table.lines().filter(|line| !line.is_empty() && !line.starts_with("--")) {
        match (line.starts_with(' '), joined.last_mut()) {
            (true, Some(above)) => *above += &format!(" {}", line.trim()),
            _ => joined.push(line.to_owned()),
        }
    }
    for line in &joined {
        let newer = line.strip_prefix(SINCE_3_35);
        let (word, statements) = newer.unwrap_or(line).trim().split_once(' ').expect("a word");
        let (_, message) = MESSAGES.iter().find(|(known, _)| *known == word).expect("a known word");
        let statements: Vec<_> = statements.split(';').map(|one| with_fences(one.trim())).collect();
        let (last, firsts) = statements.split_last().expect("a statement");
        lines.extend(with_each_clause(last).into_iter().map(|last| Line {
            statements: firsts.iter().cloned().chain([last]).collect(),
            message,
            since_3_35: newer.is_some(),
        }));
    }
    lines
}

/// A statement with each conflict clause, if it has none: which one it is makes no difference to a guard.
fn with_each_clause(statement: &str) -> Vec<String> {
    if let Some(row) = statement.strip_prefix("replace into ") {
        return vec![statement.to_owned(), format!("insert or replace into {row}")];
    }
    for verb in ["update", "insert"] {
        match statement.strip_prefix(verb).and_then(|rest| rest.strip_prefix(' ')) {
            Some(rest) if !rest.starts_with("or ") => {
                return CLAUSES.map(|clause| format!("{verb}{clause}{rest}")).to_vec();
            }
            _ => {}
        }
    }
    vec![statement.to_owned()]
}

/// Runs a table's lines on each SQLite, and gives those that did not end as they should.
fn wrong(guards: &str, table: &str) -> Vec<String> {
    let lines = lines(table);
    let mut wrong = Vec::new();
    for (sqlite, is_old) in [(Shell::path().to_owned(), false), (floor::shell(), true)] {
        let folder = folder();
        let schema = match is_old {
            true => schema_without_strict(),
            false => SCHEMA.to_owned(),
        };
        let app = |shell: Shell| shell.of(&sqlite).on("app.db").within(folder.path());
        let installed = app(Shell::new())
            .run(&format!(".bail on\n{schema}{guards}{ELSEWHERE}"))
            .ok();
        assert!(installed.chars().all(|c| "1|\n".contains(c)), "{installed}");
        let mut shell = app(Shell::plain()).start();
        shell.ask(CONNECTION);
        for line in lines.iter().filter(|line| !is_old || !line.since_3_35) {
            for recursive in ["off", "on"] {
                if let Err(outcome) = refused(&mut shell, line, recursive) {
                    let (statements, sqlite) = (line.statements.join("; "), sqlite.display());
                    wrong.push(format!("{statements}\n    {sqlite}, recursive {recursive}: {outcome}"));
                }
            }
        }
    }
    wrong
}

/// Runs a line's statements in a transaction that is rolled back.
fn refused(shell: &mut Session, line: &Line, recursive: &str) -> Result<(), String> {
    shell.ask(&format!("pragma recursive_triggers = {recursive}"));
    shell.ask("begin");
    let (last, firsts) = line.statements.split_last().expect("a statement");
    for first in firsts {
        assert_eq!(shell.ask(first), "", "{first}");
    }
    let everything = ".dump\nselect * from other.chats; select * from temp.log;";
    let before = shell.ask(everything);
    let answer = shell.ask(last);
    let same = shell.ask(everything) == before;
    let rolled_back = shell.ask("rollback");
    // The log cuts long lines and the error has no code, on old ones: each tells its half.
    let [logged, error] = answer.lines().collect::<Vec<_>>()[..] else {
        return Err(format!("not refused by one error, but: {answer}"));
    };
    let said = error
        .trim_end_matches(" (19)")
        .ends_with(&format!(": {}", line.message));
    match logged.starts_with(CODE) && said {
        true if !same => Err("refused, but something changed".to_owned()),
        true if !rolled_back.is_empty() => Err(format!("refused, but the transaction was gone: {rolled_back}")),
        true => Ok(()),
        false => Err(format!("not refused so, but: {answer}")),
    }
}

#[track_caller]
fn assert_refused(guards: &str, table: &str) {
    let wrong = wrong(guards, table);
    assert!(wrong.is_empty(), "not refused as it should be:\n{}", wrong.join("\n"));
}

#[test]
fn check_04_no_statement_walks_round_a_guard() {
    assert_refused(&guards("holder"), REFUSED);
    assert_refused(&guards("holder+remember"), REFUSED);
}

#[test]
fn check_04_in_mode_write_a_write_that_forgot_the_fence_is_refused_too() {
    let of = |columns: &str| format!("select fence_guard('chats', 'summary_fence', 'write', '{columns}');");
    assert_refused(&of("[\"summary\"]"), UNRAISED);
    assert_refused(
        &of("[\"summary\"]"),
        "stale update or replace chats set id = 42 where id = 7",
    );
    assert_refused(
        "select fence_guard('pins', 'fence', 'write', '[\"slug\"]');",
        UNRAISED_OF_PINS,
    );
    assert_refused(&of("[\"id\"]"), "unraised update chats set rowid = 43 where id = 42");
    assert_refused(&guards("write"), &format!("{UNRAISED}{UNRAISED_AT_ALL}"));
    let later = "create table notes (body text, fence text);
        insert into notes (rowid, body, fence) values (5, 'later', printf('%040d', 8));
        select fence_guard('notes', 'fence', 'write');
        alter table notes add column title text;";
    assert_refused(later, UNRAISED_OF_NOTES);
}

/// Mode write on a column that may be NULL, as may the fence: a row that leaves both out takes a standing one's place.
const UNRAISED_OF_PINS: &str = "
unraised    replace into pins (id) values (1)
unraised    replace into pins (id) values (42)
stale       replace into pins (id, fence) values (42, :7)
unraised    update pins set slug = 'forgot' where id = 1
";

/// Mode write on all columns of a table that got another one since, and has no name for its rows' ids.
const UNRAISED_OF_NOTES: &str = "
unraised    update notes set title = 'forgot'
unraised    update notes set rowid = 6
unraised    update notes set fence = fence
stale       update notes set fence = :7
unraised    update notes set fence = ''
unraised    insert into notes (title) values ('forgot')
";

#[test]
fn check_04_with_remember_a_deleted_row_refuses_an_old_fence() {
    assert_refused(&guards("holder+remember"), REMEMBERED);
}
