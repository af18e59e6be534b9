//! What guards let through (CHECK-04): a good write does not notice them, and random writes are refused when stale and
//! only then.

use fence_tests::chats::{SCHEMA, guards, with_fences};
use fence_tests::{Python, Shell};

/// Runs each statement on a copy of the tables with guards and without, and prints what differs. `args`: the schema, the
/// guards, then the statements.
const COMPARE: &str = r#"
sources = connect(), connect()
for source in sources:
    source.executescript(args[0])
sources[0].executescript(args[1])

def outcome(source, statement):
    db = sqlite3.connect(':memory:', isolation_level=None)
    source.backup(db)
    db.execute('pragma foreign_keys = on')
    try:
        rows = db.execute(statement).fetchall()
    except sqlite3.Error as error:
        rows = str(error)
    told = db.execute('select changes(), last_insert_rowid()').fetchall()
    tables = ('chats', 'docs', 'pins', 'flags', 'tags', '"old"', '"new"', 'seats', 'log', '"odd ""name"" 日本"')
    return rows, told, [db.execute(f'select * from {table}').fetchall() for table in tables]

for statement in args[2:]:
    guarded, bare = (outcome(source, statement) for source in sources)
    if guarded != bare:
        print(f'{statement}\n    with a guard: {guarded}\n    without: {bare}')
"#;

/// Writes that must not notice a guard, whether it remembers or not.
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
    "update or replace docs set id = 'x', fence = :9 where id = 'z' returning id, fence",
    "update pins set slug = 'z' where id = 42 returning *",
    "replace into pins (slug, fence) values ('a', :8) returning *",
    "insert into flags (name, word, flag, fence) values ('c', 'u', 1, :7) returning *",
    "replace into flags (id, note, fence) values (42, null, :9) returning *",
    "update or replace tags set tag = 'A', fence = :9 where id = 7 returning *",
    "insert into tags (tag, word, fence) values ('B', 'x', :7) returning low",
    "replace into docs values ('x', 1, 'new', :8), ('y', 1, 'new', '') returning *",
    "update \"odd \"\"name\"\" 日本\" set \"order\" = 'new', \"my fence\" = :8 returning \"my fence\"",
    "insert into log values ('new', null) returning rowid",
    "replace into log (rowid, line, fence) values (5, 'new', :8) returning rowid",
    "insert into inbox values (42, 'new', :9) returning rowid",
    "insert into \"new\" values (43, 'b', :7) returning *",
    "update or replace \"old\" set id = 42, fence = :9 where id = 7 returning *",
    "update rooms set name = 'blue' returning name",
    "replace into rooms values ('red')",
    // Refused by the table itself, guard or not.
    "insert into chats (id, summary_fence) values (42, :9)",
    "update chats set slug = 'a', summary_fence = :9 where id = 7",
];

#[test]
fn check_04_a_good_write_leaves_changes_the_rowid_and_returning_as_without_a_guard() {
    for mode in ["holder", "holder+remember"] {
        let mut python = Python::new(COMPARE).arg(SCHEMA).arg(guards(mode));
        for statement in GOOD {
            python = python.arg(with_fences(statement));
        }
        assert_eq!(python.run().ok(), "", "{mode}");
    }
}

/// The same for mode write: each raises the fence, or writes nothing.
const RAISED: &[&str] = &[
    "update chats set summary = 'new', summary_fence = :9 where id = 42 returning *",
    "insert into chats (id, email, summary, summary_fence) values (99, 'dan@x', 'new', :7) returning id",
    "replace into chats (id, summary, summary_fence) values (42, 'new', :9)",
    "update chats set summary = 'forgot' where id = 41",
    "delete from chats where id = 42 returning id",
];

#[test]
fn check_04_in_mode_write_a_write_that_raises_the_fence_does_not_notice_it() {
    for mode in ["write", "write+remember"] {
        let mut python = Python::new(COMPARE).arg(SCHEMA).arg(guards(mode));
        for statement in RAISED {
            python = python.arg(with_fences(statement));
        }
        assert_eq!(python.run().ok(), "", "{mode}");
    }
}

#[test]
fn check_04_in_mode_write_a_row_that_leaves_the_columns_at_their_defaults_needs_no_fence() {
    for declared in [
        "integer default '0'",
        "integer default '007'",
        "integer default ''",
        "integer default 'none'",
        "integer default (strftime('%s', 'now'))",
        "integer default (x'31')",
        "integer default null",
        "numeric default '1e3'",
        "real default 1",
        "real default '1'",
        "real default -1.5",
        "text default 5",
        "text default (lower('X'))",
        "blob default '5'",
        "default 'x'",
        "default x'00'",
        "boolean default true",
        "boolean default (true)",
        "default (true)",
        "text collate nocase default 'OTHER'",
        "",
    ] {
        let mut shell = Shell::new().start();
        shell.ask(&format!(
            "create table t (id integer primary key, b text, a {declared}, fence text)"
        ));
        assert_eq!(
            shell.ask(r#"select fence_guard('t', 'fence', 'write', '["b","a"]')"#),
            "1"
        );
        assert_eq!(shell.ask("insert into t (id) values (1)"), "", "{declared}");
        for value in ["99", "'other'", "x'99'"] {
            let answer = shell.ask(&format!("insert into t (id, a) values (2, {value})"));
            assert!(answer.contains("fence: unfenced: "), "{declared}: {value}: {answer}");
        }
    }
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

#[test]
fn check_04_with_remember_the_holder_of_a_newer_fence_may_write_again() {
    let script = r#"
guarded = connect()
guarded.executescript(args[0])
guarded.executescript(args[1])
for _ in range(6):
    guarded.execute('delete from chats where id = 42')
    guarded.execute(args[2])
print(guarded.execute('select count(*), min(summary_fence), max(summary_fence) from chats_summary_fence_deleted').fetchall())
guarded.execute('delete from chats')
guarded.execute("insert into chats (slug, email) values ('new', 'new@x')")
print(one(guarded, 'select changes()'))
"#;
    let write = "insert into chats (id, slug, email, summary_fence) values (42, 'a', 'ann@x', :9)";
    let python = Python::new(script).arg(SCHEMA).arg(guards("holder+remember"));
    let printed = python.arg(with_fences(write)).run().ok();
    // One row for each set of keys, with the largest fence: the row as it first stood, and as it was written again.
    assert_eq!(printed, format!("[(2, '{:040}', '{:040}')]\n1", 8, 9));
}

#[test]
fn check_04_with_remember_the_largest_fence_of_each_row_that_is_gone_is_kept_once_and_no_other() {
    let mut shell = Shell::new().start();
    shell.ask("create table t (id integer primary key, slug text unique collate nocase, body text, fence text)");
    for (sql, kept) in [
        ("select fence_guard('t', 'fence', 'holder+remember')", ""),
        (
            "insert into t values (1, 'a', 'x', ''), (2, 'b', 'x', fence_pad(7))",
            "",
        ),
        ("update t set body = 'y', fence = fence_pad(8) where id = 2", ""),
        ("delete from t where id = 1", ""),
        ("delete from t where id = 2", "2|b|8"),
        ("insert into t values (2, 'b', 'x', fence_pad(9))", "2|b|8"),
        ("update t set slug = 'B'", "2|b|9"),
        ("update t set slug = 'b', fence = fence_pad(10)", "2|b|9\n2|B|9"),
        ("delete from t", "2|b|10\n2|B|9"),
        // While there is no guard, an older holder brings the row back.
        ("select fence_unguard('t')", "2|b|10\n2|B|9"),
        ("insert into t values (2, 'b', 'x', fence_pad(7))", "2|b|10\n2|B|9"),
        ("select fence_guard('t', 'fence', 'holder+remember')", "2|b|10\n2|B|9"),
        ("delete from t", "2|b|10\n2|B|9"),
    ] {
        let answer = shell.ask(sql);
        assert!(matches!(answer.as_str(), "" | "1"), "{sql}: {answer}");
        let query = "select id, slug, fence_wire(fence) from t_fence_deleted order by slug collate binary desc";
        assert_eq!(shell.ask(query), kept, "{sql}");
    }
}

#[test]
fn check_04_with_remember_two_spellings_that_a_collation_takes_for_one_are_two_rows() {
    let mut shell = Shell::new().start();
    for sql in [
        "create table t (name text collate nocase, fence text)",
        "create unique index t_name on t (name collate binary)",
        "insert into t values ('A', fence_pad(8)), ('a', fence_pad(8))",
        "select fence_guard('t', 'fence', 'holder+remember')",
        "update or replace t set name = 'A', fence = fence_pad(9) where name = 'a' collate binary",
    ] {
        assert!(matches!(shell.ask(sql).as_str(), "" | "1"), "{sql}");
    }
    let kept = "select name, fence_wire(fence) from t_fence_deleted order by name collate binary";
    assert_eq!(shell.ask(kept), "A|8\na|8");
}

#[test]
fn check_04_fences_compare_by_their_digits_whatever_the_collation_of_their_column_is() {
    let script = r#"
db = connect()
for collation in ('nocase', 'rtrim', 'alike', 'backwards'):
    db.create_collation('alike', lambda a, b: 0)
    db.create_collation('backwards', lambda a, b: (a < b) - (a > b))
    db.executescript(f"drop table if exists t; create table t (id integer primary key, body, fence text collate {collation})")
    db.execute('insert into t values (42, 1, ?)', [f'{8:040}'])
    one(db, "select fence_guard('t', 'fence', ?)", args[0])
    for fence in (f'{7:040}', '', None, '9', f'{2**128:040}', ' ' * 40, f'{9:040}'):
        for write in ('update t set fence = ?, body = 2', 'replace into t (id, fence, body) values (42, ?, 2)'):
            db.execute('savepoint s')
            try:
                db.execute(write, [fence])
                print('in' if fence and fence.endswith('9') and len(fence) == 40 else f'{collation}: {write}, {fence}: in')
            except sqlite3.Error as error:
                if 'fence: ' not in str(error) or fence == f'{9:040}':
                    print(f'{collation}: {write}, {fence}: {error}')
            db.execute('rollback to s')
"#;
    for mode in ["holder", "holder+remember", "write"] {
        let answer = Python::new(script).arg(mode).run().ok();
        assert_eq!(answer, ["in"; 8].join("\n"), "{mode}");
    }
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
