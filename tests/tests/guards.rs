//! Guards (CHECK-04, CHECK-05): no statement walks round one, and a good write does not notice it.
//!
//! A worker that stood still comes back with fence 7 and writes to a row that has seen 8. The guard is installed with the
//! extension; every write is made by a program that does not have it.

use fence_tests::Python;

/// What the statements below write to: a row with fence 8, one with fence 3 and one that saw no fence, and every kind of
/// key by which REPLACE can take a row's place.
const CHATS: &str = "
create table chats (
  id integer primary key,
  slug text unique,
  room text,
  seat integer,
  email text not null default 'nobody' collate nocase,
  handle text generated always as (substr(email, 1, 3)) virtual,
  open integer,
  topic text,
  summary text,
  summary_fence text not null default '',
  unique (room, seat)
);
create unique index chats_email on chats (email);
create unique index chats_handle on chats (handle);
create unique index chats_topic on chats (topic) where open = 1 and topic is not null;
create unique index chats_lower on chats (lower(slug) collate rtrim);
insert into chats (id, slug, room, seat, email, open, topic, summary, summary_fence) values
  (42, 'a', 'red', 1, 'ann@x', 1, 'tea', 'later', printf('%040d', 8)),
  (7, 'b', 'red', 2, 'bob@x', 1, 'milk', 'early', printf('%040d', 3)),
  (1, 'c', 'red', 3, 'nobody', 0, 'tea', 'never', '');
create table source (id integer primary key, summary text, fence text);
insert into source values (42, 'late', printf('%040d', 7));
create table docs (id text, part integer, body text, fence text, primary key (part, id)) without rowid, strict;
insert into docs values ('x', 1, 'later', printf('%040d', 8));
create table \"odd \"\"name\"\" 日本\" (\"select\" text primary key, \"my fence\", \"order\");
insert into \"odd \"\"name\"\" 日本\" values ('x', printf('%040d', 8), 'later');
create table log (line text, fence text);
insert into log (rowid, line, fence) values (5, 'later', printf('%040d', 8));
create view chat_view as select * from chats;
create trigger through_view instead of update on chat_view begin
  update chats set summary = new.summary, summary_fence = new.summary_fence where id = new.id;
end;
create table inbox (chat integer, summary text, fence text);
create trigger through_inbox after insert on inbox begin
  update chats set summary = new.summary, summary_fence = new.fence where id = new.chat;
end;
";

/// The guards, in mode holder but for the last.
const GUARDS: &str = "
select fence_guard('chats', 'summary_fence');
select fence_guard('docs', 'fence');
select fence_guard('\"odd \"\"name\"\" 日本\"', 'my fence');
select fence_guard('log', 'fence');
";

const STALE: &str = "fence: stale: ";
const UNFENCED: &str = "fence: unfenced: ";
const NOT_A_FENCE: &str = "fence: not a fence: ";

/// Every statement that a late writer might make, and how its refusal begins. `:7` is its fence, padded.
const REFUSED: &[(&str, &str)] = &[
    // UPDATE, with each of its conflict clauses.
    (
        "update chats set summary = 'late', summary_fence = :7 where id = 42",
        STALE,
    ),
    (
        "update or ignore chats set summary = 'late', summary_fence = :7 where id = 42",
        STALE,
    ),
    (
        "update or replace chats set summary = 'late', summary_fence = :7 where id = 42",
        STALE,
    ),
    (
        "update or fail chats set summary = 'late', summary_fence = :7 where id = 42",
        STALE,
    ),
    (
        "update or abort chats set summary = 'late', summary_fence = :7 where id = 42",
        STALE,
    ),
    (
        "update or rollback chats set summary = 'late', summary_fence = :7 where id = 42",
        STALE,
    ),
    ("update chats set summary = 'late', summary_fence = :7", STALE),
    (
        "update chats set summary = s.summary, summary_fence = s.fence from source s where s.id = chats.id",
        STALE,
    ),
    (
        "with s as (select * from source) update chats set summary_fence = (select fence from s) where id = 42",
        STALE,
    ),
    (
        "update chats set (summary, summary_fence) = (select summary, fence from source) where id = 42",
        STALE,
    ),
    (
        "update chats indexed by chats_email set summary_fence = :7 where email = 'ANN@X'",
        STALE,
    ),
    (
        "update chat_view set summary = 'late', summary_fence = :7 where id = 42",
        STALE,
    ),
    ("insert into inbox values (42, 'late', :7)", STALE),
    // A fence that is taken away.
    (
        "update chats set summary = 'late', summary_fence = '' where id = 42",
        UNFENCED,
    ),
    (
        "update or replace chats set summary = 'late', summary_fence = null where id = 42",
        UNFENCED,
    ),
    // REPLACE, by each key.
    (
        "replace into chats (id, summary, summary_fence) values (42, 'late', :7)",
        STALE,
    ),
    (
        "insert or replace into chats (id, summary, summary_fence) values (42, 'late', :7)",
        STALE,
    ),
    (
        "insert or replace into chats (rowid, summary, summary_fence) values ('42', 'late', :7)",
        STALE,
    ),
    (
        "replace into chats (slug, summary, summary_fence) values ('a', 'late', :7)",
        STALE,
    ),
    ("replace into chats (slug, summary_fence) values ('A  ', :7)", STALE),
    (
        "replace into chats (room, seat, summary_fence) values ('red', '1', :7)",
        STALE,
    ),
    ("replace into chats (email, summary_fence) values ('ANN@X', :7)", STALE),
    (
        "replace into chats (email, summary_fence) values ('annabel', :7)",
        STALE,
    ),
    (
        "replace into chats (topic, open, summary_fence) values ('tea', 1, :7)",
        STALE,
    ),
    (
        "replace into chats (topic, open, summary_fence) values ('tea', '1', :7)",
        STALE,
    ),
    ("replace into chats (id, summary) values (42, 'late')", UNFENCED),
    (
        "replace into chats (id, summary, summary_fence) values (42, 'late', null)",
        UNFENCED,
    ),
    ("replace into chats (id, summary_fence) values (2, :9), (42, :7)", STALE),
    (
        "replace into chats (id, summary, summary_fence) select * from source",
        STALE,
    ),
    // A NULL that becomes the default of a NOT NULL column hides the key that is looked up.
    ("replace into chats (email, summary_fence) values (null, :7)", UNFENCED),
    // INSERT over a row, whatever would become of it.
    (
        "insert into chats (id, summary, summary_fence) values (42, 'late', :7)",
        STALE,
    ),
    (
        "insert or ignore into chats (id, summary, summary_fence) values (42, 'late', :7)",
        STALE,
    ),
    (
        "insert or fail into chats (id, summary, summary_fence) values (42, 'late', :7)",
        STALE,
    ),
    (
        "insert or rollback into chats (id, summary, summary_fence) values (42, 'late', :7)",
        STALE,
    ),
    (
        "insert into chats (id, summary, summary_fence) select * from source",
        STALE,
    ),
    // UPSERT.
    (
        "insert into chats (id, summary, summary_fence) values (42, 'late', :7)
         on conflict (id) do update set summary = excluded.summary, summary_fence = excluded.summary_fence",
        STALE,
    ),
    (
        "insert into chats (id, summary, summary_fence) values (42, 'late', :7)
         on conflict do update set summary = excluded.summary",
        STALE,
    ),
    (
        "insert into chats (id, summary, summary_fence) values (42, 'late', :9)
         on conflict do update set summary = excluded.summary, summary_fence = :7",
        STALE,
    ),
    (
        "insert into chats (id, summary_fence) values (42, :7) on conflict do nothing",
        STALE,
    ),
    (
        "insert into chats (id) values (42) on conflict do update set summary = 'late'",
        UNFENCED,
    ),
    // Another key for the row, and a row moved onto another's key.
    (
        "update chats set id = 43, summary = 'late', summary_fence = :7 where id = 42",
        STALE,
    ),
    (
        "update or replace chats set id = 42, summary_fence = :7 where id = 7",
        STALE,
    ),
    ("update or replace chats set id = 42 where id = 7", STALE),
    ("update or replace chats set rowid = 42 where id = 7", STALE),
    ("update or replace chats set _rowid_ = 42 where id = 1", UNFENCED),
    ("update or replace chats set slug = 'A' where id = 7", STALE),
    ("update or replace chats set seat = 1 where id = 7", STALE),
    ("update or replace chats set email = 'ann' where id = 7", STALE),
    ("update or replace chats set email = 'ANN@x' where id = 7", STALE),
    ("update or replace chats set topic = 'tea' where id = 7", STALE),
    ("update or replace chats set open = 1 where id = 1", UNFENCED),
    // A table without rowid, STRICT, with a key of two columns.
    ("update docs set body = 'late', fence = :7", STALE),
    ("replace into docs values ('x', 1, 'late', :7)", STALE),
    (
        "insert into docs values ('x', 1, 'late', null) on conflict do update set body = 'late'",
        UNFENCED,
    ),
    // Names that need their quotes.
    (
        "update \"odd \"\"name\"\" 日本\" set \"order\" = 'late', \"my fence\" = :7",
        STALE,
    ),
    ("replace into \"odd \"\"name\"\" 日本\" values ('x', :7, 'late')", STALE),
    // A table without any key but the rowid that nobody declared.
    ("replace into log (rowid, line, fence) values (5, 'late', :7)", STALE),
    (
        "update or replace log set line = 'late', fence = :7 where rowid = 5",
        STALE,
    ),
    // What is no fence.
    ("update chats set summary_fence = '9' where id = 42", NOT_A_FENCE),
    ("update chats set summary_fence = 9 where id = 42", NOT_A_FENCE),
    ("update chats set summary_fence = 9e38 where id = 42", NOT_A_FENCE),
    ("update chats set summary_fence = '0' || :9 where id = 42", NOT_A_FENCE),
    (
        "update chats set summary_fence = substr(:9, 2) where id = 42",
        NOT_A_FENCE,
    ),
    (
        "update chats set summary_fence = '+' || substr(:9, 2) where id = 42",
        NOT_A_FENCE,
    ),
    (
        "update chats set summary_fence = ' ' || substr(:9, 2) where id = 42",
        NOT_A_FENCE,
    ),
    (
        "update chats set summary_fence = :9 || char(0) || 'x' where id = 42",
        NOT_A_FENCE,
    ),
    (
        "update chats set summary_fence = replace(:9, '9', '９') where id = 42",
        NOT_A_FENCE,
    ),
    (
        "update chats set summary_fence = cast(:9 as blob) where id = 42",
        NOT_A_FENCE,
    ),
    ("update chats set summary_fence = x'' where id = 42", NOT_A_FENCE),
    (
        "update chats set summary_fence = '0340282366920938463463374607431768211456' where id = 42",
        NOT_A_FENCE,
    ),
    ("update log set fence = 9", NOT_A_FENCE),
    ("insert into chats (id, summary_fence) values (2, 'x')", NOT_A_FENCE),
];

/// Runs statements on a copy of the guarded database each, without the extension, with recursive_triggers off and on;
/// prints how each ended. `args`: the schema, the guards, then the statements.
const RUN: &str = r#"
guarded = connect()
guarded.executescript(args[0])
guarded.executescript(args[1])

def fences(sql):
    for n in (7, 8, 9):
        sql = sql.replace(f':{n}', f"'{n:040}'")
    return sql

def everything(db):
    return list(db.iterdump())

for statement in args[2:]:
    outcomes = []
    for recursive in (0, 1):
        db = sqlite3.connect(':memory:', isolation_level=None)
        guarded.backup(db)
        db.execute(f'pragma recursive_triggers = {recursive}')
        before = everything(db)
        try:
            db.execute(fences(statement)).fetchall()
            outcomes.append('it went through')
        except sqlite3.Error as error:
            changed = '' if everything(db) == before else ' and something changed'
            outcomes.append(f'{error.sqlite_errorcode} {error}{changed}')
    print(outcomes[0] if outcomes[0] == outcomes[1] else ' but recursive: '.join(outcomes))
"#;

/// How each of these statements ends.
fn run(schema: &str, guards: &str, statements: &[&str]) -> Vec<String> {
    let mut python = Python::new(RUN).arg(schema).arg(guards);
    for statement in statements {
        python = python.arg(statement);
    }
    let outcomes: Vec<_> = python.run().ok().lines().map(str::to_owned).collect();
    assert_eq!(outcomes.len(), statements.len());
    outcomes
}

/// The statements of a table that did not end as the table says.
fn wrong(schema: &str, guards: &str, table: &[(&str, &str)]) -> Vec<String> {
    let statements: Vec<_> = table.iter().map(|(statement, _)| *statement).collect();
    let outcomes = run(schema, guards, &statements);
    let judged = table.iter().zip(outcomes);
    let wrong = judged.filter(|((_, expected), outcome)| {
        let refused = outcome.starts_with(&format!("1811 {expected}")) && !outcome.contains("something changed");
        !refused
    });
    wrong
        .map(|((statement, _), outcome)| format!("{statement}\n    {outcome}"))
        .collect()
}

#[test]
fn check_04_no_statement_walks_round_a_guard() {
    let wrong = wrong(CHATS, GUARDS, REFUSED);
    assert!(wrong.is_empty(), "not refused as it should be:\n{}", wrong.join("\n"));
}

/// Statements of mode write on `summary` that are refused: each writes the summary without raising the fence.
const NOT_RAISED: &[(&str, &str)] = &[
    ("update chats set summary = 'forgot' where id = 42", UNFENCED),
    ("update chats set summary = summary where id = 42", UNFENCED),
    ("update or ignore chats set summary = 'forgot' where id = 42", UNFENCED),
    (
        "update or replace chats set summary = 'again', summary_fence = :8 where id = 42",
        UNFENCED,
    ),
    (
        "update chats set summary = 'late', summary_fence = :7 where id = 42",
        STALE,
    ),
    ("update chats set summary = 'forgot' where id = 1", UNFENCED),
    (
        "update chats set summary = 'forgot', summary_fence = '' where id = 1",
        UNFENCED,
    ),
    (
        "update chats set summary = s.summary from source s where s.id = chats.id",
        UNFENCED,
    ),
    ("update chats set summary_fence = :7 where id = 42", STALE),
    ("insert into chats (summary) values ('forgot')", UNFENCED),
    ("insert into chats (id, summary_fence) values (42, :8)", UNFENCED),
    (
        "replace into chats (id, summary, summary_fence) values (42, 'again', :8)",
        UNFENCED,
    ),
    (
        "replace into chats (id, topic) values (1, 'the summary is gone')",
        UNFENCED,
    ),
    (
        "insert into chats (id, summary, summary_fence) values (42, 'x', :9)
         on conflict do update set summary = excluded.summary",
        UNFENCED,
    ),
    ("insert into inbox values (42, 'again', :8)", UNFENCED),
];

/// The same for mode write on all columns.
const NOT_RAISED_AT_ALL: &[(&str, &str)] = &[
    ("update chats set topic = 'forgot' where id = 42", UNFENCED),
    ("update chats set summary_fence = :8 where id = 42", UNFENCED),
    ("update chats set rowid = 43 where id = 42", UNFENCED),
    ("insert into chats (topic) values ('forgot')", UNFENCED),
    ("insert into chats default values", UNFENCED),
];

#[test]
fn check_04_in_mode_write_a_write_that_forgot_the_fence_is_refused_too() {
    let guard = "select fence_guard('chats', 'summary_fence', 'write', '[\"summary\"]');";
    let some = wrong(CHATS, guard, NOT_RAISED);
    assert!(some.is_empty(), "not refused as it should be:\n{}", some.join("\n"));
    let onto = wrong(
        CHATS,
        guard,
        &[("update or replace chats set id = 42 where id = 7", STALE)],
    );
    assert!(onto.is_empty(), "{}", onto.join("\n"));
    let id = "select fence_guard('chats', 'summary_fence', 'write', '[\"id\"]');";
    let moved = wrong(CHATS, id, &[("update chats set rowid = 43 where id = 42", UNFENCED)]);
    assert!(moved.is_empty(), "{}", moved.join("\n"));
    let guard = "select fence_guard('chats', 'summary_fence', 'write');";
    let all = wrong(CHATS, guard, &[NOT_RAISED, NOT_RAISED_AT_ALL].concat());
    assert!(all.is_empty(), "not refused as it should be:\n{}", all.join("\n"));
}

/// Writes that must not notice a guard in mode holder.
const GOOD: &[&str] = &[
    "update chats set summary = 'new', summary_fence = :8 where id = 42",
    "update chats set summary = 'new', summary_fence = :9",
    "update chats set topic = 'coffee' where id = 42 returning id, summary_fence, handle",
    "update chats set summary_fence = :7 where id = 1 returning *",
    "update or replace chats set id = 7, summary_fence = :9 where id = 42 returning id",
    "update or ignore chats set summary_fence = :9 returning summary_fence",
    "insert into chats (slug, email) values ('d', 'dan@x') returning id",
    "insert into chats (id, email, open, topic) values (99, 'dan@x', 0, 'tea'), (100, 'eve@x', 2, 'tea') returning *",
    "insert into chats (room, email) values ('red', 'dan@x'), ('red', 'eve@x')",
    "replace into chats (id, summary, summary_fence) values (42, 'new', :8) returning id, summary",
    "replace into chats (slug, room, seat, summary_fence) values ('a', 'red', 2, :9) returning id",
    "insert into chats (id, summary, summary_fence) values (42, 'new', :9)
     on conflict (id) do update set summary = excluded.summary, summary_fence = excluded.summary_fence returning *",
    "insert or ignore into chats (id, summary_fence) values (42, :8)",
    "delete from chats where id = 42 returning id",
    "delete from chats",
    "update docs set body = 'new', fence = :9 returning id, fence",
    "replace into docs values ('x', 1, 'new', :8), ('y', 1, 'new', '') returning *",
    "update \"odd \"\"name\"\" 日本\" set \"order\" = 'new', \"my fence\" = :8 returning \"my fence\"",
    "insert into log values ('new', null) returning rowid",
    "replace into log (rowid, line, fence) values (5, 'new', :8) returning rowid",
    "insert into inbox values (42, 'new', :9) returning rowid",
    // Refused by the table itself, guard or not.
    "insert into chats (id, summary_fence) values (42, :9)",
    "update chats set slug = 'a', summary_fence = :9 where id = 7",
];

#[test]
fn check_04_a_good_write_leaves_changes_the_rowid_and_returning_as_without_a_guard() {
    let script = RUN.replace("for statement in args[2:]:", "for statement in ():")
        + r#"
bare = sqlite3.connect(':memory:', isolation_level=None)
bare.executescript(args[0])

def outcome(source, statement):
    db = sqlite3.connect(':memory:', isolation_level=None)
    source.backup(db)
    try:
        rows = db.execute(fences(statement)).fetchall()
    except sqlite3.Error as error:
        rows = str(error)
    told = db.execute('select changes(), last_insert_rowid()').fetchall()
    tables = ('chats', 'docs', 'log', '"odd ""name"" 日本"')
    return rows, told, [db.execute(f'select * from {table}').fetchall() for table in tables]

for statement in args[2:]:
    with_guard, without = outcome(guarded, statement), outcome(bare, statement)
    if with_guard != without:
        print(f'{statement}\n    with a guard: {with_guard}\n    without: {without}')
"#;
    let mut python = Python::new(&script).arg(CHATS).arg(GUARDS);
    for statement in GOOD {
        python = python.arg(statement);
    }
    assert_eq!(python.run().ok(), "");
}

#[test]
fn check_04_guards_hold_where_a_temp_table_shadows_the_name_and_in_an_attached_database() {
    let script = r#"
db = connect()
db.execute("attach ':memory:' as other")
db.execute("attach ':memory:' as \"my.db\"")
fence = lambda n: f'{n:040}'
for schema in ('main', 'temp', 'other', '"my.db"'):
    db.execute(f"create table {schema}.chats (id integer primary key, slug text unique, fence text)")
    db.execute(f"insert into {schema}.chats values (42, 'a', ?)", [fence(8)])
for name in ('chats', 'other.chats', '"my.db"."chats"'):
    one(db, "select fence_guard(?, 'fence')", name)
for schema in ('main', 'other', '"my.db"', 'temp'):
    for write in ("update {}.chats set fence = ?", "replace into {}.chats (slug, fence) values ('a', ?)"):
        try:
            db.execute(write.format(schema), [fence(7)])
            print(schema, 'went through')
        except sqlite3.Error as error:
            print(schema, error.sqlite_errorcode, str(error)[:13])
print(one(db, "select fence_guard('temp.chats', 'fence')"), one(db, "select fence_unguard('temp.chats')"))
print(one(db, "select fence_unguard('my.db.chats')"))
"#;
    let refused = |schema: &str| format!("{schema} 1811 fence: stale: ").trim_end().to_owned();
    let expected = ["main", "main", "other", "other", "\"my.db\"", "\"my.db\""].map(refused);
    let expected = format!("{}\ntemp went through\ntemp went through\n1 1\n1", expected.join("\n"));
    assert_eq!(Python::new(script).run().ok(), expected);
}

/// Writes to a table whose rows were deleted, replaced or moved, in mode holder+remember; each on the rows as they were.
const REMEMBERED: &[(&str, &str)] = &[
    (
        "delete from chats; insert into chats (id, summary_fence) values (42, :7)",
        STALE,
    ),
    (
        "delete from chats where id = 42; insert into chats (slug, summary_fence) values ('a', :7)",
        STALE,
    ),
    (
        "delete from chats where id = 42; insert into chats (id) values (42)",
        UNFENCED,
    ),
    (
        "delete from chats where id = 42; insert into chats (email, summary_fence) values ('annabel', :7)",
        STALE,
    ),
    (
        "delete from chats where id = 42; insert into chats (topic, open, summary_fence) values ('tea', 1, :7)",
        STALE,
    ),
    (
        "delete from chats where id = 42; update chats set seat = 1 where id = 7",
        STALE,
    ),
    (
        "update chats set id = 43 where id = 42; insert into chats (id, summary_fence) values (42, :7)",
        STALE,
    ),
    (
        "update chats set slug = 'z' where id = 42; update chats set slug = 'A' where id = 7",
        STALE,
    ),
    (
        "replace into chats (id, summary_fence) values (42, :9); insert into chats (slug, summary_fence) values ('a', :7)",
        STALE,
    ),
    (
        "delete from chats where id = 42; insert into chats (id, email, summary_fence) values (42, 'dan@x', :9);
         delete from chats where id = 42; insert into chats (id, summary_fence) values (42, :8)",
        STALE,
    ),
    (
        "update or replace chats set seat = 1, summary_fence = :9 where id = 7;
         insert into chats (id, summary_fence) values (42, :7)",
        STALE,
    ),
];

#[test]
fn check_04_with_remember_a_deleted_row_refuses_an_old_fence() {
    let guard = "select fence_guard('chats', 'summary_fence', 'holder+remember');";
    let script = RUN.replace("for statement in args[2:]:", "for statement in ():")
        + r#"
for statements in args[2:]:
    *firsts, last = fences(statements).split(';')
    for recursive in (0, 1):
        db = sqlite3.connect(':memory:', isolation_level=None)
        guarded.backup(db)
        db.execute(f'pragma recursive_triggers = {recursive}')
        for first in firsts:
            db.execute(first)
        try:
            db.execute(last)
            print('it went through')
        except sqlite3.Error as error:
            print(error.sqlite_errorcode, error)
"#;
    let mut python = Python::new(&script).arg(CHATS).arg(guard);
    for (statements, _) in REMEMBERED {
        python = python.arg(statements);
    }
    let printed = python.run().ok();
    let expected = REMEMBERED.iter().flat_map(|row| [row, row]);
    assert_eq!(printed.lines().count(), 2 * REMEMBERED.len(), "{printed}");
    for ((statements, expected), outcome) in expected.zip(printed.lines()) {
        assert!(
            outcome.starts_with(&format!("1811 {expected}")),
            "{statements}\n    {outcome}"
        );
    }
}

#[test]
fn check_04_with_remember_the_holder_of_a_newer_fence_may_write_again() {
    let script = RUN.replace("for statement in args[2:]:", "for statement in ():")
        + r#"
for _ in range(3):
    for n in (8, 9):
        guarded.execute(fences('delete from chats where id = 42'))
        guarded.execute(fences("insert into chats (id, slug, email, summary_fence) values (42, 'a', 'ann@x', :9)"))
print(guarded.execute('select count(*), min(summary_fence), max(summary_fence) from chats_summary_fence_deleted').fetchall())
guarded.execute('delete from chats')
guarded.execute("insert into chats (slug, email) values ('new', 'new@x')")
print(one(guarded, 'select changes()'))
"#;
    let guard = "select fence_guard('chats', 'summary_fence', 'holder+remember');";
    let printed = Python::new(&script).arg(CHATS).arg(guard).run().ok();
    // One row for each set of keys, with the largest fence: the row as it first stood, and as it was written again.
    assert_eq!(printed, format!("[(2, '{:040}', '{:040}')]\n1", 8, 9));
}

/// The table is small, the values are few and alike, the keys are many: random statements meet every way in which SQLite
/// lets one row take another's place. What a statement did without the guard tells whether the guard had to refuse it.
#[test]
fn check_04_random_statements_on_random_tables_are_refused_when_stale_and_only_then() {
    let answer = Python::new(include_str!("../walk_round.py"))
        .arg("1")
        .arg("400")
        .run()
        .ok();
    let told: Vec<_> = answer.split_whitespace().collect();
    let ["refused", refused, "good", good] = told[..] else {
        panic!("{answer}")
    };
    assert!(refused.parse::<u32>().is_ok_and(|n| n > 1_000), "{answer}");
    assert!(good.parse::<u32>().is_ok_and(|n| n > 1_000), "{answer}");
}
