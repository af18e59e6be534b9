//! Named points at which the tests stop or kill this process. Built with the feature `fault` alone; without it a point is
//! an empty function.
//!
//! `FENCE_FAULT=stop:grant-before-commit:3` stops the process (SIGSTOP) when it comes to that point for the third time,
//! `kill:` kills it (SIGKILL). Several are parted by commas. A child made by fork counts on from where its parent was.
//!
//! `FENCE_CHECKPOINT_PAGES=64` makes checkpoints come often, for tests of checkpoints under load.
//!
//! | point | where |
//! |---|---|
//! | `grant-begins` | nothing is read yet; the process has its token if the grant is to be bound |
//! | `grant-looked` | a grant has read that its keys are free, and written nothing |
//! | `grant-before-commit` | everything of a grant is written, nothing is committed |
//! | `grant-after-commit` | a grant is committed, the caller has not heard of it |
//! | `release-after-commit` | a release, or any change of a lease of several keys, is committed, the caller has not heard of it |
//! | `opening-begins` | the right to open is held, nothing was looked at |
//! | `opening-looked` | kv.db was seen to be the one that was opened |
//! | `opening-sets-apart` | a WAL's copy is noted and does not stand in its place yet |
//! | `opening-put-right` | what did not belong to kv.db is out of the way, SQLite has read nothing |
//! | `opening-read` | SQLite has opened the WAL and its index |
//! | `opening-noted` | the files are noted, the right to open is still held |
//! | `epoch-before-commit` | an opening has lifted the epoch and not committed it |
//! | `epoch-after-commit` | the epoch is on the disk, the files are not noted yet |
//! | `checkpoint-before` | the write lock is held, the checkpoint begins |
//! | `checkpoint-after` | the checkpoint is made, the write lock still held |

/// Does what the environment says about this point.
#[cfg(not(feature = "fault"))]
#[inline(always)]
pub(crate) fn point(_name: &str) {}

/// Runs a statement that commits by itself, with a point right before the commit.
#[cfg(not(feature = "fault"))]
#[inline(always)]
pub(crate) fn at_commit<T>(_name: &'static str, statement: impl FnOnce() -> T) -> T {
    statement()
}

/// Lets the commits of this connection come to the points of [`at_commit`].
#[cfg(not(feature = "fault"))]
#[inline(always)]
pub(crate) fn watch(_db: &rusqlite::Connection) {}

/// After how many pages in the WAL a checkpoint is made.
#[cfg(not(feature = "fault"))]
#[inline(always)]
pub(crate) fn checkpoint_pages(usual: i32) -> i32 {
    usual
}

/// After how many pages in the WAL a checkpoint is made.
#[cfg(feature = "fault")]
pub(crate) fn checkpoint_pages(usual: i32) -> i32 {
    static PAGES: std::sync::OnceLock<Option<i32>> = std::sync::OnceLock::new();
    let read = || std::env::var("FENCE_CHECKPOINT_PAGES").ok()?.parse().ok();
    PAGES.get_or_init(read).unwrap_or(usual)
}

/// Does what the environment says about this point.
#[cfg(feature = "fault")]
pub(crate) fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct Fault {
        signal: libc::c_int,
        point: String,
        left: AtomicU64,
    }

    fn read(text: &str) -> Option<Fault> {
        let mut words = text.split(':');
        let signal = match words.next()? {
            "stop" => libc::SIGSTOP,
            "kill" => libc::SIGKILL,
            _ => return None,
        };
        Some(Fault {
            signal,
            point: words.next()?.to_owned(),
            left: AtomicU64::new(words.next().map_or(Some(1), |count| count.parse().ok())?),
        })
    }

    fn read_all() -> Vec<Fault> {
        let text = std::env::var("FENCE_FAULT").unwrap_or_default();
        text.split(',').filter_map(read).collect()
    }

    static FAULTS: OnceLock<Vec<Fault>> = OnceLock::new();
    for fault in FAULTS.get_or_init(read_all).iter().filter(|fault| fault.point == name) {
        if fault.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            // SAFETY: a signal to this process itself, with valid numbers.
            unsafe { libc::kill(libc::getpid(), fault.signal) };
        }
    }
}

#[cfg(feature = "fault")]
thread_local! {
    /// The point at which this thread's next commit stands.
    static AT_COMMIT: std::cell::Cell<Option<&'static str>> = const { std::cell::Cell::new(None) };
}

/// Runs a statement that commits by itself, with a point right before the commit.
#[cfg(feature = "fault")]
pub(crate) fn at_commit<T>(name: &'static str, statement: impl FnOnce() -> T) -> T {
    AT_COMMIT.set(Some(name));
    let done = statement();
    AT_COMMIT.set(None);
    done
}

/// Lets the commits of this connection come to the points of [`at_commit`].
#[cfg(feature = "fault")]
pub(crate) fn watch(db: &rusqlite::Connection) {
    unsafe extern "C" fn committing(_: *mut std::ffi::c_void) -> std::ffi::c_int {
        if let Some(name) = AT_COMMIT.take() {
            point(name);
        }
        0
    }
    // SAFETY: the handle is open, and the function lives as long as the process and does not unwind.
    unsafe { rusqlite::ffi::sqlite3_commit_hook(db.handle(), Some(committing), std::ptr::null_mut()) };
}
