//! The engine on a SQLite file.
//!
//! | file | what it holds |
//! |---|---|
//! | `location.rs` | which file is meant |
//! | `registry.rs` | one engine for each file in a process |
//! | `fork.rs` | what happens to engines when the process forks |
//! | `sidecar.rs` | the small file beside kv.db: who opens, who lives |
//! | `schema.rs` | the tables |
//! | `files.rs` | which files belong together, and what is put right when one was changed behind our back |
//! | `opening.rs` | opening, and knowing which files were opened |
//! | `connection.rs` | noticing a replaced file, checkpoints |
//! | `usual.rs` | the statements that usual calls run |
//! | `busy.rs` | waiting for another process's write |
//! | `epoch.rs` | lifting the epoch |
//! | `term.rs` | for how long a row holds its key |
//! | `grant.rs` | a grant, from top to bottom |
//! | `end.rs` | renewing and releasing |
//! | `line.rs` | who is served next |
//! | `reap.rs` | removing what is over |
//! | `wait.rs` | waiting for a turn |
//! | `list.rs` | reading what is live |
//!
//! Every call goes through [`Engine::call`], which has the rules that all calls share in one place.

mod busy;
mod connection;
mod end;
mod epoch;
mod files;
mod fork;
mod grant;
mod line;
mod list;
mod location;
mod opening;
mod reap;
mod registry;
mod schema;
mod sidecar;
mod term;
mod usual;
mod wait;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rusqlite::ffi;

use crate::clock::Clock;
use crate::engine::{self, Granted, Name, PageMark, Request};
use crate::error::{Error, Result};
use crate::fence::{Count, Epoch, Fence};
use crate::key::Key;
use crate::lease::Hold;
use crate::limits::{Ttl, Wait};
use connection::Conn;
use sidecar::Sidecar;
use usual::Db;

pub(crate) use fork::wait_for_fork;
pub(crate) use registry::{find, locate, peek_epoch};

/// The path of a store in memory.
pub(crate) const MEMORY: &str = ":memory:";

/// How often a call begins anew because the file was replaced while it ran.
const ATTEMPTS: usize = 8;

/// One store in this process: its file and, once it was needed, the one connection to it.
pub(crate) struct Engine {
    path: PathBuf,
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
    /// Whether the whole process uses it. What it has seen is then remembered when it goes.
    shared: AtomicBool,
    /// Set in a child that was forked while another thread held `state`: nobody will ever let go of it.
    abandoned: AtomicBool,
}

/// What a thread has to itself while it is in a call.
struct State {
    conn: Option<Conn>,
    /// The largest fence that this process has seen of this store. A file that knows less was restored.
    seen: Option<Fence>,
}

/// What a call works with.
struct Session<'a> {
    db: &'a Db,
    path: &'a Path,
    clock: &'a Arc<dyn Clock>,
    /// This process's id; asking the system for it costs as much as a step of a query.
    pid: u32,
    sidecar: Option<&'a Arc<Sidecar>>,
}

impl Session<'_> {
    /// Whether the process with this token lives. In a store in memory there is but this process; and of a file that was
    /// replaced nobody learns who has died.
    fn is_alive(&self, token: i64) -> bool {
        self.sidecar
            .is_none_or(|sidecar| sidecar.is_alive(token) || sidecar.is_replaced())
    }

    /// This process's token; nothing if the file beside the store was replaced, so that nobody would see it locked there.
    fn token(&self) -> Result<Option<i64>> {
        match self.sidecar {
            None => Ok(Some(1)),
            Some(sidecar) if sidecar.is_replaced() => Ok(None),
            Some(sidecar) => sidecar.token().map(Some),
        }
    }

    /// Runs one statement without parameters or rows.
    fn run(&self, sql: &str) -> rusqlite::Result<()> {
        self.db.prepare_cached(sql)?.execute([]).map(drop)
    }

    /// Names the work for an error of SQLite.
    fn failed(&self, doing: &'static str) -> impl Fn(rusqlite::Error) -> Error + use<'_> {
        move |source| Error::sqlite(self.path, doing, source)
    }
}

impl Engine {
    fn new(path: PathBuf, clock: Arc<dyn Clock>) -> Self {
        Self {
            path,
            clock,
            state: Mutex::new(State { conn: None, seen: None }),
            shared: AtomicBool::new(false),
            abandoned: AtomicBool::new(false),
        }
    }

    /// Fences are to grow past this one.
    fn has_seen(&self, fence: Fence) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.seen = state.seen.max(Some(fence));
    }

    /// A store in memory, private to whoever made it.
    pub(crate) fn in_memory(clock: Arc<dyn Clock>) -> Self {
        Self::new(PathBuf::from(MEMORY), clock)
    }

    /// An engine of its own on the file, beside the process's other one: as if another process had opened it.
    pub(crate) fn alone(path: &Path, clock: Arc<dyn Clock>) -> Result<Self> {
        Ok(Self::new(location::resolve(path)?, clock))
    }

    fn is_in_memory(&self) -> bool {
        self.path == Path::new(MEMORY)
    }

    /// The right to use the connection. What another process opened is left behind (LOCK-09), and what a call that
    /// panicked left open is rolled back.
    fn lock(&self) -> Result<MutexGuard<'_, State>> {
        if self.abandoned.load(Ordering::Relaxed) {
            return Err(Error::Forked {
                path: self.path.clone(),
            });
        }
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match &state.conn {
            Some(conn) if !conn.is_ours() => state.conn = None,
            Some(conn) => conn.settle(),
            None => {}
        }
        Ok(state)
    }

    /// Runs one call on the right file:
    ///
    /// * opens the store if it is not open;
    /// * leaves no transaction open, whatever came of the work;
    /// * hands nothing out that was written to a file, or read from one, that is no longer the one at its path (LOCK-08):
    ///   it opens the new one and begins anew. What was written to the dead file is dead with it;
    /// * begins anew once when SQLite found the file broken, which is how a WAL that was taken away shows.
    fn call<T>(&self, mut work: impl FnMut(&Session<'_>, &mut Option<Fence>) -> Result<Done<T>>) -> Result<T> {
        let mut state = self.lock()?;
        let mut broken = false;
        for _ in 0..ATTEMPTS {
            let mut conn = match state.conn.take() {
                Some(conn) if conn.was_replaced(self.clock.now_ms()) => {
                    // Before anything is written to what nobody reads any more.
                    conn.close_quietly();
                    continue;
                }
                Some(conn) => conn,
                None => match self.open(&mut state.seen, broken) {
                    Err(error) if !broken && is_broken(&error) => {
                        broken = true;
                        continue;
                    }
                    opened => opened?,
                },
            };
            let done = conn.db().and_then(|db| {
                let session = Session {
                    db,
                    path: &self.path,
                    clock: &self.clock,
                    pid: conn.process(),
                    sidecar: conn.sidecar(),
                };
                work(&session, &mut state.seen)
            });
            conn.settle();
            let answer = match done {
                Ok(Done::Read(answer)) if !conn.was_replaced(self.clock.now_ms()) => Some(Ok(answer)),
                Ok(Done::Written(answer)) if !conn.is_replaced() => Some(Ok(answer)),
                Ok(_) => None,
                Err(error) if !broken && is_broken(&error) => {
                    broken = true;
                    None
                }
                Err(_) if conn.is_replaced() => None,
                Err(error) => Some(Err(error)),
            };
            match answer {
                Some(answer) => {
                    conn.checkpoint();
                    state.conn = Some(conn);
                    return answer;
                }
                // Without a checkpoint: what this connection knows is not to be laid over what stands there now.
                None => conn.close_quietly(),
            }
        }
        Err(Error::Replaced {
            path: self.path.clone(),
        })
    }

    /// Opens the store: with `distrust` after SQLite has found the files broken.
    fn open(&self, seen: &mut Option<Fence>, distrust: bool) -> Result<Conn> {
        let (conn, epoch) = if self.is_in_memory() {
            opening::open_in_memory(&self.clock, *seen)?
        } else {
            opening::open(&self.path, &self.clock, *seen, distrust)?
        };
        *seen = (*seen).max(Some(Fence::new(epoch, Count::new(0))));
        Ok(conn)
    }

    /// Opens the store if it is not open yet.
    pub(crate) fn ensure_open(&self) -> Result<()> {
        self.call(|_, _| Ok(Done::Read(())))
    }

    /// The epoch that stands now.
    pub(crate) fn epoch(&self) -> Result<Epoch> {
        self.call(|session, _| {
            let epoch: i64 = session
                .db
                .prepare_cached("select epoch from leases where key = ''")
                .and_then(|mut select| select.query_row([], |row| row.get(0)))
                .map_err(session.failed("reading the epoch"))?;
            Ok(Done::Read(Epoch::new(epoch.max(0).unsigned_abs())))
        })
    }

    /// Lifts the epoch past that of `fence`. See [`epoch::advance`].
    pub(crate) fn advance(&self, fence: Fence) -> Result<Epoch> {
        self.call(|session, _| {
            let epoch = epoch::advance(session.db, session.path, session.clock, fence)?;
            Ok(Done::Written(epoch))
        })
    }
}

impl engine::Engine for Engine {
    fn path(&self) -> &Path {
        &self.path
    }

    /// By the lease clock.
    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    fn epoch(&self) -> Result<Epoch> {
        self.epoch()
    }

    fn advance(&self, fence: Fence) -> Result<Epoch> {
        self.advance(fence)
    }

    fn acquire(&self, request: &Request<'_>, wait: Wait, interrupted: &dyn Fn() -> bool) -> Result<Option<Granted>> {
        wait::acquire(self, request, wait, interrupted)
    }

    fn renew(&self, key: Key<'_>, name: Name, ttl: Option<Ttl>) -> Result<bool> {
        self.renew(key, name, ttl)
    }

    fn release(&self, key: Key<'_>, name: Name) -> Result<bool> {
        self.release(key, name)
    }

    fn renew_all(&self, fence: Fence, ttl: Option<Ttl>) -> Result<bool> {
        self.renew_all(fence, ttl)
    }

    fn release_all(&self, fence: Fence) -> Result<bool> {
        self.release_all(fence)
    }

    fn page(&self, mark: &mut PageMark) -> Result<Option<Vec<Hold>>> {
        self.page(mark)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let (true, Some(seen)) = (self.shared.load(Ordering::Relaxed), state.seen) {
            registry::remember(&self.path, seen);
        }
    }
}

/// What the work of a call came to.
enum Done<T> {
    /// This, and nothing is given by it: it was read, or a lease was ended. It may be as old as the last look at the files.
    Read(T),
    /// This, if the files are still there now.
    Written(T),
    /// Nothing: what is open is not what it was. The file is older than what this process has seen of it, or the one
    /// beside it was replaced. Begin anew, with all files opened again and an epoch past all that was seen.
    Again,
}

/// Whether SQLite found the file in a state that opening it anew may mend: a WAL that was taken away under it, say.
fn is_broken(error: &Error) -> bool {
    matches!(
        error.code() & 0xff,
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB | ffi::SQLITE_IOERR | ffi::SQLITE_PROTOCOL | ffi::SQLITE_SCHEMA
    )
}
