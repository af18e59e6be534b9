//! Guards and SQLite's session extension: a changeset that another copy of the database made is applied by statements of
//! its own, and asks the program what to do where it meets another row than it expects.
//!
//! Late work comes in a changeset with fence 7; the row has seen 8. The system's SQLite has the extension and Python's module
//! does not show it, so its C functions are called as they are.

use fence_tests::Python;

/// Applies an UPDATE and an INSERT of fence 7 with each answer to the conflict. `args`: how the table is guarded. Prints the
/// answer, what was in conflict (1 other data, 3 the row is there, 4 a constraint), and the row afterwards.
const APPLY: &str = r#"
import ctypes, ctypes.util

sqlite = ctypes.CDLL(ctypes.util.find_library('sqlite3'))
pointer, text = ctypes.c_void_p, ctypes.c_char_p
asked = ctypes.CFUNCTYPE(ctypes.c_int, pointer, ctypes.c_int, pointer)
shown = ctypes.CFUNCTYPE(ctypes.c_int, pointer, ctypes.c_int, ctypes.POINTER(text), pointer)
sqlite.sqlite3_errmsg.restype = text
TABLE = 'create table chats (id integer primary key, summary text, fence text);'

def call(name, *arguments):
    code = getattr(sqlite, 'sqlite3' + name)(*arguments)
    assert code == 0, (name, code)

def opened(sql):
    db = pointer()
    call('_open', b':memory:', ctypes.byref(db))
    run(db, TABLE + sql)
    return db

def run(db, sql):
    rows = []
    see = shown(lambda _, n, values, names: rows.append([(values[i] or b'').decode() for i in range(n)]) or 0)
    call('_exec', db, sql.encode(), see, None, None)
    return rows

def changeset(before, work):
    db, session, size, changes = opened(before), pointer(), ctypes.c_int(), pointer()
    call('session_create', db, b'main', ctypes.byref(session))
    call('session_attach', session, None)
    run(db, work)
    call('session_changeset', session, ctypes.byref(size), ctypes.byref(changes))
    return size, changes

source = connect()
source.executescript(TABLE + f"insert into chats values (42, 'later', '{8:040}')")
one(source, "select fence_guard('chats', 'fence', ?)", args[0])
guarded = ';'.join(sql for (sql,) in source.execute("select sql from sqlite_schema where name <> 'chats' order by type = 'trigger'"))
late = {
    'update': changeset("insert into chats values (42, 'early', '')", f"update chats set summary = 'late', fence = '{7:040}'"),
    'insert': changeset('', f"insert into chats values (42, 'late', '{7:040}')"),
}
for work, (size, changes) in late.items():
    for answer, code in (('omit', 0), ('replace', 1)):
        db, conflicts = opened(f"insert into chats values (42, 'later', '{8:040}');" + guarded), []
        def ask(_, conflict, __):
            conflicts.append(conflict)
            # A constraint cannot be answered by replacing: abort, which takes back all of the changeset.
            return 2 if conflict == 4 else code
        aborted = sqlite.sqlite3changeset_apply(db, size, changes, None, asked(ask), None)
        assert aborted == (4 if 4 in conflicts else 0), aborted
        print(work, answer, sorted(set(conflicts)), *run(db, 'select summary, ltrim(fence, 0) from chats')[0])
"#;

#[test]
fn check_04_a_changeset_meets_the_guard_but_where_the_program_replaces_a_row_that_only_remember_knows_again() {
    let applied = |mode: &str| Python::new(APPLY).arg(mode).run().ok();
    assert_eq!(
        applied("holder"),
        "update omit [1] later 8\nupdate replace [1, 4] later 8\ninsert omit [3] later 8\ninsert replace [3] late 7"
    );
    assert_eq!(
        applied("holder+remember"),
        "update omit [1] later 8\nupdate replace [1, 4] later 8\ninsert omit [3] later 8\ninsert replace [3, 4] later 8"
    );
}
