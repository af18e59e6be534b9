//! A process that unloads its SQLite and loads it again elsewhere, as Node does with an addon when the last worker that
//! used it ends. The library stays, and goes on with whichever SQLite comes next, but never with two at once.
//!
//! Python is the process. Its ctypes loads copies of the system's SQLite and unloads them with dlclose. The next one is
//! mapped before the last one goes, so that it stands at another address, and what was unloaded is a hole: a call into it
//! is a segmentation fault.

use std::ffi::{CStr, CString};
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicBool, Ordering};

use fence_tests::{Python, folder, library, node};

/// `Sqlite(path)`: a SQLite of its own, with `open`, `load`, `ask`, `close` and `unload`.
const SQLITE: &str = r#"
import ctypes, _ctypes, os, shutil

class Refused(Exception):
    pass

class Sqlite:
    def __init__(self, path):
        self.path = path
        self.lib = ctypes.CDLL(path)
        self.lib.sqlite3_errmsg.restype = ctypes.c_char_p
        self.lib.sqlite3_column_text.restype = ctypes.c_char_p

    def open(self, database, entry=None):
        """A connection with the library loaded."""
        db, message = ctypes.c_void_p(), ctypes.c_void_p()
        assert self.lib.sqlite3_open(database.encode(), ctypes.byref(db)) == 0
        self.lib.sqlite3_enable_load_extension(db, 1)
        if self.lib.sqlite3_load_extension(db, extension.encode(), entry, ctypes.byref(message)) != 0:
            said = ctypes.string_at(message).decode()
            self.lib.sqlite3_free(message)
            self.close(db)
            raise Refused(said)
        return db

    def prepare(self, db, sql):
        statement = ctypes.c_void_p()
        code = self.lib.sqlite3_prepare_v2(db, sql.encode(), -1, ctypes.byref(statement), None)
        assert code == 0, self.lib.sqlite3_errmsg(db)
        return statement

    def ask(self, db, sql):
        """The first value of the first row."""
        statement = self.prepare(db, sql)
        code = self.lib.sqlite3_step(statement)
        assert code == 100, (code, self.lib.sqlite3_errmsg(db))
        value = self.lib.sqlite3_column_text(statement, 0)
        self.lib.sqlite3_finalize(statement)
        return value and value.decode()

    def close(self, db):
        assert self.lib.sqlite3_close(db) == 0

    def unload(self):
        _ctypes.dlclose(self.lib._handle)
        assert self.path not in open('/proc/self/maps').read(), 'it is still there'

# The SQLite that Python itself links.
system = next(line.split()[-1] for line in open('/proc/self/maps') if '/libsqlite3.so' in line)
copies = [shutil.copy(system, os.path.join(args[0], name)) for name in ('a.so', 'b.so')]

def refused(sqlite, **how):
    try:
        sqlite.open(':memory:', **how)
    except Refused as error:
        assert 'fence: this process has two SQLite libraries, ' in str(error), error
    else:
        raise AssertionError('two at once')
"#;

fn run(script: &str) -> String {
    let folder = folder();
    let script = format!("{SQLITE}\napp = os.path.join(args[0], 'app.db')\n{script}");
    Python::new(&script).arg(folder.path()).run().ok()
}

#[test]
fn a_sqlite_that_was_unloaded_is_followed_by_the_next_fifty_times() {
    let script = r#"
fences = []
sqlite = Sqlite(copies[0])
for round in range(50):
    # Pure functions alone, in one connection; everything in two others, which have a store of their own and one in
    # common with the last round's.
    pure = sqlite.open(':memory:', entry=b'sqlite3_fencepure_init')
    assert sqlite.ask(pure, 'select fence_pad(7)') == '7'.zfill(40)
    memory, db = sqlite.open(':memory:'), sqlite.open(app)
    assert sqlite.ask(memory, "select fence_acquire('k')") is not None
    fences.append(int(sqlite.ask(db, "select fence_acquire('k')")))
    assert sqlite.ask(db, "select fence from fence_leases where key = 'k'") == str(fences[-1])
    assert sqlite.ask(db, f"select fence_release('k', '{fences[-1]}')") == '1'
    table = sqlite.ask(db, "select fence from fence_acquire('table')")
    assert sqlite.ask(db, f"select fence_release('table', '{table}')") == '1'
    sqlite.ask(db, f"select fence_open('{args[0]}/other.db')")
    assert sqlite.ask(db, 'select count(*) from fence_leases') == '0'
    for connection in (db, memory, pure):
        sqlite.close(connection)
    next = Sqlite(copies[(round + 1) % 2])
    sqlite.unload()
    if round % 10 == 0:
        # A child made now knows that its parent's SQLite has gone as well.
        child = os.fork()
        if child == 0:
            db = next.open(app)
            assert int(next.ask(db, f"select fence_acquire('child {round}')")) > fences[-1]
            next.close(db)
            next.unload()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
    sqlite = next
assert fences == sorted(set(fences)) and len(fences) == 50
print('well')
"#;
    assert_eq!(run(script), "well");
}

#[test]
fn a_sqlite_with_a_connection_that_has_a_function_of_ours_is_not_followed_by_another() {
    let script = r#"
a, b = map(Sqlite, copies)

# Whichever functions it has.
for entry in (None, b'sqlite3_fence_init', b'sqlite3_fencepure_init'):
    first, second = a.open(app, entry=entry), a.open(app, entry=entry)
    refused(b)
    a.close(first)
    refused(b, entry=b'sqlite3_fencepure_init')
    assert a.ask(second, 'select fence_ok(1, 2)') == '1'
    a.close(second)
    b.close(b.open(app))

# Also when its functions gave way to others, but for one.
db = a.open(app, entry=b'sqlite3_fencepure_init')
gone = 0
for name, arguments in (row.split() for row in a.ask(db, '''select group_concat(name || ' ' || narg, char(10))
        from pragma_function_list where name glob 'fence_*' and name <> 'fence_wire' ''').split('\n')):
    assert a.lib.sqlite3_create_function_v2(db, name.encode(), int(arguments), 1, None, None, None, None, None) == 0
    gone += 1
assert gone > 5
refused(b)
a.close(db)
b.close(b.open(app))

# Also when it was closed before its last statement: it is there until that ends.
db = a.open(app)
statement = a.prepare(db, 'select key from fence_leases')
assert a.ask(db, "select fence_acquire('k')") is not None
assert a.lib.sqlite3_step(statement) == 100
assert a.lib.sqlite3_close_v2(db) == 0
refused(b)
a.lib.sqlite3_finalize(statement)
a.unload()
b.close(b.open(app))

# A load that was refused leaves nothing behind.
db = b.open(app)
a = Sqlite(copies[0])
for _ in range(100):
    refused(a)
b.close(db)
a.close(a.open(app))
print('well')
"#;
    assert_eq!(run(script), "well");
}

/// The types of the functions of a SQLite that the next test calls.
mod sqlite {
    use std::ffi::{c_char, c_int, c_void};

    pub type Open = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
    pub type Allow = unsafe extern "C" fn(*mut c_void, c_int) -> c_int;
    pub type Load = unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char, *mut *mut c_char) -> c_int;
    pub type Exec =
        unsafe extern "C" fn(*mut c_void, *const c_char, *const c_void, *mut c_void, *mut *mut c_char) -> c_int;
    pub type Close = unsafe extern "C" fn(*mut c_void) -> c_int;
}

/// Loads this SQLite, takes a lease, closes and unloads it.
fn use_and_unload(copy: &CStr, app: &CStr, round: usize) {
    let library = CString::new(library().to_str().expect("a path in UTF-8")).expect("no NUL");
    let sql = CString::new(format!("select fence_acquire('{round}')")).expect("no NUL");
    // SAFETY: these are SQLite's functions, with their types, called as it asks for, and not after it was unloaded.
    unsafe {
        let handle = libc::dlopen(copy.as_ptr(), libc::RTLD_NOW);
        assert!(!handle.is_null());
        macro_rules! function {
            ($name:literal, $type:ty) => {
                std::mem::transmute::<*mut std::ffi::c_void, $type>(libc::dlsym(handle, $name.as_ptr()))
            };
        }
        let mut db = ptr::null_mut();
        assert_eq!(function!(c"sqlite3_open", sqlite::Open)(app.as_ptr(), &raw mut db), 0);
        assert_eq!(function!(c"sqlite3_enable_load_extension", sqlite::Allow)(db, 1), 0);
        let load = function!(c"sqlite3_load_extension", sqlite::Load);
        assert_eq!(load(db, library.as_ptr(), ptr::null(), ptr::null_mut()), 0);
        let exec = function!(c"sqlite3_exec", sqlite::Exec);
        assert_eq!(exec(db, sql.as_ptr(), ptr::null(), ptr::null_mut(), ptr::null_mut()), 0);
        assert_eq!(function!(c"sqlite3_close", sqlite::Close)(db), 0);
        assert_eq!(libc::dlclose(handle), 0);
    }
}

#[test]
fn a_fork_that_another_thread_makes_meanwhile_calls_nothing_that_was_unloaded() {
    // A fork closes the store's connection itself, and may have begun at any moment of the close. This process is the
    // host: Python would let the thread that unloads wait for the one that forks.
    let folder = folder();
    let copy = folder.path().join("copy.so");
    let system =
        Python::new("print(next(line.split()[-1] for line in open('/proc/self/maps') if '/libsqlite3.so' in line))");
    std::fs::copy(system.run().ok(), &copy).expect("a copy");
    let c = |path: PathBuf| CString::new(path.into_os_string().into_encoded_bytes()).expect("no NUL");
    let (copy, app) = (c(copy), c(folder.path().join("app.db")));
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                // SAFETY: the child does nothing but end.
                unsafe {
                    let child = libc::fork();
                    if child == 0 {
                        libc::_exit(0);
                    }
                    let mut status = 0;
                    assert_eq!((libc::waitpid(child, &raw mut status, 0), status), (child, 0));
                }
            }
        });
        for round in 0..500 {
            use_and_unload(&copy, &app, round);
        }
        done.store(true, Ordering::Relaxed);
    });
}

#[test]
fn going_from_one_sqlite_to_another_five_thousand_times_leaves_nothing_behind() {
    let script = r#"
import resource
both = [Sqlite(copy) for copy in copies]
def rounds(n):
    for round in range(n):
        sqlite = both[round % 2]
        db = sqlite.open(':memory:')
        assert sqlite.ask(db, "select fence_acquire('k')") is not None
        sqlite.close(db)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, len(os.listdir('/dev/fd'))
memory, files = rounds(500)
more_memory, more_files = rounds(5000)
# Each kilobyte left behind by a change of the host would be 5,000; the struct of its functions is two of them.
print((more_memory - memory) // 1024, more_files - files)
"#;
    assert_eq!(run(script), "0 0");
}

#[test]
fn node_workers_alone_use_better_sqlite3_one_after_another() {
    // The main thread never loads the addon, so it leaves the process with each worker.
    let script = node::place("extension/hosts/node/tests").join("workers_alone.mjs");
    let folder = folder();
    let mut node = node::node();
    node.arg(script).arg(folder.path().join("kv.db")).arg("better-sqlite3");
    let answer = fence_tests::host::run(node, "");
    assert_eq!(answer.ok(), "40 workers, each with a larger fence");
}
