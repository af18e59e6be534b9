//! What happens to the engines when the process forks (LOCK-09).
//!
//! SQLite keeps a process's locks on a file in memory. A child made by fork has that memory but not the locks: were it to
//! open kv.db anew while it has its parent's connection, SQLite would take no lock at all, and the last other process to
//! close would delete the WAL under it. So no connection is open at the moment of a fork: before it, every engine of the
//! process is held still and its connection closed; after it, parent and child each open one of their own at the next
//! call, each with an epoch of its own.
//!
//! A thread that is inside a call is waited for. Should one stay longer than a call can last, the fork goes on without;
//! the child then refuses to use that engine, with an error.

use std::cell::UnsafeCell;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use once_cell::sync::OnceCell;

use super::registry::{self, Engines};
use super::{Engine, State};

/// How long a thread inside a call is waited for: longer than a write lock is (5 s).
const PATIENCE: Duration = Duration::from_secs(7);

/// What is held still from before the fork until after it.
struct Held {
    // Fields are dropped in this order: the guards before what they guard.
    engines: Vec<(Option<MutexGuard<'static, State>>, Arc<Engine>)>,
    registry: MutexGuard<'static, Engines>,
    _connections: MutexGuard<'static, ()>,
}

/// Held while a connection is closed, or opened for a moment, outside of an engine's own calls.
static CONNECTIONS: Mutex<()> = Mutex::new(());

/// Keeps the process from forking until the answer is dropped.
pub(super) fn hold_off() -> MutexGuard<'static, ()> {
    CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until no fork is under way. While one is it holds on to every engine, also if nobody else does any more.
pub(crate) fn wait_for_fork() {
    drop(registry::lock());
}

struct Cell(UnsafeCell<Option<Held>>);

// SAFETY: only the thread that forks touches it, between `before` and `after_*`: until then it has the registry's guard,
// which keeps every other thread from coming that far.
unsafe impl Sync for Cell {}

static HELD: Cell = Cell(UnsafeCell::new(None));

/// Asks the system to tell of forks, once in a process. The library is loaded permanently, so the handlers stay.
pub(super) fn watch() {
    static WATCHED: OnceCell<()> = OnceCell::new();
    WATCHED.get_or_init(|| {
        // SAFETY: the three functions live as long as the process and do not unwind.
        let _ = unsafe { libc::pthread_atfork(Some(before), Some(after_in_parent), Some(after_in_child)) };
    });
}

/// Runs the work so that nothing unwinds into C.
fn quietly(work: impl FnOnce()) {
    let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
}

extern "C" fn before() {
    quietly(|| {
        let registry = registry::lock();
        let mut engines = Vec::with_capacity(registry.len());
        for engine in registry.values().filter_map(std::sync::Weak::upgrade) {
            let mut state = hold_still(&engine);
            if let Some(state) = &mut state
                && let Some(conn) = state.conn.take()
            {
                conn.settle();
                conn.close_quietly();
            }
            engines.push((state, engine));
        }
        let connections = hold_off();
        // SAFETY: see `Cell`; the registry's guard is in hand.
        unsafe {
            *HELD.0.get() = Some(Held {
                engines,
                registry,
                _connections: connections,
            })
        };
    });
}

extern "C" fn after_in_parent() {
    quietly(|| drop(take()));
}

extern "C" fn after_in_child() {
    quietly(|| {
        let Some(mut held) = take() else { return };
        for (state, engine) in &held.engines {
            if state.is_none() {
                engine.abandoned.store(true, Ordering::Relaxed);
                held.registry.remove(&engine.path);
            }
        }
        drop(held);
    });
}

fn take() -> Option<Held> {
    // SAFETY: see `Cell`; `before` ran in this thread, and the guard that it put there is still held.
    unsafe { (*HELD.0.get()).take() }
}

/// The engine's state, for as long as the fork lasts; nothing if a thread stays inside a call.
fn hold_still(engine: &Arc<Engine>) -> Option<MutexGuard<'static, State>> {
    let start = Instant::now();
    loop {
        let guard = match engine.state.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) if start.elapsed() < PATIENCE => {
                sleep(Duration::from_micros(100));
                continue;
            }
            Err(TryLockError::WouldBlock) => return None,
        };
        // SAFETY: `Held` keeps the engine alive for longer than the guard.
        return Some(unsafe { std::mem::transmute::<MutexGuard<'_, State>, MutexGuard<'static, State>>(guard) });
    }
}
