//! What can go wrong, said so that the reader knows what happened, with which value, and what to do.
//!
//! "Somebody else holds it" and "this lease is over" are answers, not errors: see [`Store::acquire`] and
//! [`Store::renew`](crate::Store::renew).
//!
//! [`Store::acquire`]: crate::Store::acquire

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ffi;

use crate::fence::FenceError;

/// What the crate's functions give.
///
/// ```
/// fn open() -> fence_core::Result<fence_core::Store> {
///     fence_core::Store::in_memory()
/// }
/// assert!(open().is_ok());
/// ```
pub type Result<T> = std::result::Result<T, Error>;

/// Every error of the store. [`Error::code`] gives the SQLite result code that goes with it.
///
/// ```
/// use fence_core::{Error, Ttl};
///
/// let refused = Ttl::new(0);
/// assert!(matches!(refused, Err(Error::OutOfRange { argument: "ttl_ms", .. })));
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A value that is no fence stood where a fence is needed.
    #[error(transparent)]
    Fence(#[from] FenceError),

    /// A text that cannot be a key.
    #[error("fence: {value} cannot be a key, {reason}: give 1 to 1024 bytes of text without NUL")]
    Key {
        /// The text, shortened.
        value: String,
        /// Which rule it breaks.
        reason: &'static str,
    },

    /// A list of keys without a key in it, or with too many.
    #[error("fence: keys holds {count} keys: give 1 to {most}")]
    KeyCount {
        /// How many there were.
        count: usize,
        /// How many there may be.
        most: usize,
    },

    /// A text that is no permit's id, where one is needed.
    #[error(
        "fence: {value} is no permit: give the id that semaphore_acquire gave (a permit is no fence, nor a fence a permit)"
    )]
    NotAPermit {
        /// The text, shortened.
        value: String,
    },

    /// A number outside of its range.
    #[error("fence: {argument} is {value}: give {accepts}")]
    OutOfRange {
        /// The argument's name.
        argument: &'static str,
        /// Its value.
        value: String,
        /// The range, in words.
        accepts: &'static str,
    },

    /// The path of a store that cannot be used as one.
    #[error("fence: {path:?} cannot be the path of a store, {reason}")]
    Path {
        /// The path as it was given.
        path: PathBuf,
        /// Why not, and what to do.
        reason: &'static str,
    },

    /// The file belongs to another program.
    #[error(
        "fence: {path:?} is no store but another program's database: name another file with fence_open or FENCE_STORE"
    )]
    NotAStore {
        /// The file.
        path: PathBuf,
    },

    /// The file was written by a newer version of this library.
    #[error(
        "fence: {path:?} has format {found}, this version knows format {known}: use the version that wrote it, or a newer one"
    )]
    NewerFormat {
        /// The file.
        path: PathBuf,
        /// Its format.
        found: i64,
        /// The newest format that is known here.
        known: i64,
    },

    /// The file has more than one name. SQLite finds a database's WAL by the name, so two names would be two stores.
    #[error("fence: {path:?} has {links} hard links: remove all but one, or use a symbolic link")]
    HardLinked {
        /// The file.
        path: PathBuf,
        /// How many names it has.
        links: u64,
    },

    /// Somebody kept the store's write lock for longer than this library waits (5 s).
    #[error(
        "fence: {path:?} was locked for 5 s while {doing}: a process was stopped within a write, or another program keeps the file locked; see who has it open"
    )]
    Busy {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        doing: &'static str,
        /// What SQLite said.
        source: rusqlite::Error,
    },

    /// SQLite refused. The message tells the reason and the code is kept.
    #[error("fence: {path:?}: {doing} failed: {source}: {}", advice(source, path))]
    Sqlite {
        /// The file.
        path: PathBuf,
        /// What was to be done.
        doing: &'static str,
        /// What SQLite said.
        source: rusqlite::Error,
    },

    /// The operating system refused.
    #[error("fence: {path:?}: {doing} failed: {source}: see that the folder exists and may be written to by this user")]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// What was to be done.
        doing: &'static str,
        /// What the system said.
        source: io::Error,
    },

    /// The store's file was replaced again and again while it was being opened.
    #[error("fence: {path:?} was replaced again and again while it was used: stop what replaces it, then call again")]
    Replaced {
        /// The file.
        path: PathBuf,
    },

    /// There is no larger epoch.
    #[error("fence: the epoch of fence {fence} is past {}, the largest that a store can keep less one: nothing was lifted", i64::MAX - 1)]
    EpochExhausted {
        /// The fence to be lifted past.
        fence: crate::Fence,
    },

    /// The wait was interrupted by the host; nothing was granted.
    #[error("fence: interrupted while waiting: nothing was granted")]
    Interrupted,

    /// This process was forked in the middle of another thread's call into the same store.
    #[error(
        "fence: this process was forked while another thread was inside the store {path:?}: open the store anew in this process"
    )]
    Forked {
        /// The file.
        path: PathBuf,
    },

    /// The lease ended before its holder was done.
    #[error(
        "fence: the lease of {key} with fence {fence} was lost before its holder was done: whatever it wrote late was refused if it was written with the fence"
    )]
    LeaseLost {
        /// The key, shortened.
        key: String,
        /// The lease's fence.
        fence: crate::Fence,
    },

    /// The permit ended before its holder was done.
    #[error("fence: the permit {permit} of {key} was lost before its holder was done")]
    PermitLost {
        /// The semaphore's key, shortened.
        key: String,
        /// The permit's id.
        permit: crate::PermitId,
    },

    /// The time to wait was over and somebody else still holds the key.
    #[error("fence: {key} is held by somebody else, after waiting {waited_ms} ms: wait longer, or try again later")]
    Held {
        /// The key, shortened.
        key: String,
        /// How long was waited, in milliseconds.
        waited_ms: i64,
    },

    /// A thread that renews a lease could not be started.
    #[error("fence: no thread could be started to renew the lease of {key}: {source}: nothing was run")]
    Thread {
        /// The key, shortened.
        key: String,
        /// What the system said.
        source: io::Error,
    },

    /// The path names a cluster, and this library was built for files alone.
    #[error(
        "fence: the store is on an etcd cluster, and this library was built without: use the one that `make etcd` builds"
    )]
    NoClusters,

    /// A cluster did not do what was asked, and nothing was changed.
    #[error("fence: {location}: {doing} failed: {said}: {}", trouble.advice())]
    Cluster {
        /// The cluster, without its password.
        location: String,
        /// What was to be done.
        doing: &'static str,
        /// What its members said, or what came of asking them.
        said: String,
        /// Of what kind it is.
        trouble: ClusterTrouble,
    },

    /// A cluster was asked to write and its answer was lost: it may have written, or still do so within seconds.
    #[error(
        "fence: {location}: {doing}: the answer was lost, {said}: it may have been done or not; a lease that nobody knows of ends with its ttl"
    )]
    UnknownOutcome {
        /// The cluster, without its password.
        location: String,
        /// What was to be done.
        doing: &'static str,
        /// What came of asking.
        said: String,
    },

    /// The system does not tell the id of this boot.
    #[error("fence: the boot's id cannot be read: {source}: is /proc mounted?")]
    Boot {
        /// What the system said.
        source: io::Error,
    },

    /// The system gives no random bytes.
    #[error("fence: the system gives no random bytes: {source}")]
    Random {
        /// What the system said.
        source: getrandom::Error,
    },
}

/// Why a cluster did not do what was asked.
///
/// ```
/// use fence_core::{ClusterTrouble, Error};
///
/// let (location, said) = ("etcd://a:2379/fence".to_owned(), "a:2379: connection refused".to_owned());
/// let trouble = ClusterTrouble::Unavailable;
/// let error = Error::Cluster { location, doing: "reading", said, trouble };
/// assert_eq!(error.code(), 5); // SQLITE_BUSY: call again
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClusterTrouble {
    /// No member answered in time, or those who did have no quorum. SQLITE_BUSY.
    Unavailable,
    /// It wants another user or password, or does not permit this user what was asked. SQLITE_AUTH.
    Refused,
    /// Its database has reached its quota. SQLITE_FULL.
    Full,
    /// A certificate that cannot be used, or something else than etcd answers there. SQLITE_CANTOPEN.
    Setup,
    /// More keys at once than it lets into one transaction: each takes two of its operations, or three with a wait and a
    /// delay. SQLITE_TOOBIG.
    TooManyKeys,
    /// A key was to be written with a lease that has ended. SQLITE_ERROR.
    LeaseNotFound,
    /// Anything else that it refused. SQLITE_ERROR.
    Other,
}

impl ClusterTrouble {
    fn advice(self) -> &'static str {
        match self {
            Self::Unavailable => "see that most of its members run and can be reached, then call again",
            Self::Refused => "see to user, password and permissions (all keys under the prefix, reading and writing)",
            Self::Full => "compact and defragment the cluster or raise its quota, and disarm the alarm",
            Self::Setup => "mend the location or the certificates that FENCE_ETCD_CACERT, _CERT and _KEY name",
            Self::TooManyKeys => {
                "name fewer keys (42 always fit), or give its members a --max-txn-ops of three times the keys and one"
            }
            Self::LeaseNotFound => "the lease is over; acquire anew",
            Self::Other => "nothing was changed; see to the cluster",
        }
    }

    fn code(self) -> i32 {
        match self {
            Self::Unavailable => ffi::SQLITE_BUSY,
            Self::Refused => ffi::SQLITE_AUTH,
            Self::Full => ffi::SQLITE_FULL,
            Self::Setup => ffi::SQLITE_CANTOPEN,
            Self::TooManyKeys => ffi::SQLITE_TOOBIG,
            Self::LeaseNotFound | Self::Other => ffi::SQLITE_ERROR,
        }
    }
}

impl Error {
    /// SQLite's result code for this error, an extended one where SQLite gave one.
    ///
    /// ```
    /// use fence_core::Key;
    ///
    /// // SQLITE_ERROR: the caller's value is at fault, not the file.
    /// assert_eq!(Key::new("").map_err(|error| error.code()), Err(1));
    /// ```
    pub fn code(&self) -> i32 {
        match self {
            Self::Busy { source, .. } | Self::Sqlite { source, .. } => source
                .sqlite_error()
                .map_or(ffi::SQLITE_ERROR, |error| error.extended_code),
            Self::Io { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull => ffi::SQLITE_FULL,
                io::ErrorKind::ReadOnlyFilesystem => ffi::SQLITE_READONLY,
                _ => ffi::SQLITE_CANTOPEN,
            },
            Self::NotAStore { .. } => ffi::SQLITE_NOTADB,
            Self::NewerFormat { .. } | Self::HardLinked { .. } | Self::Path { .. } => ffi::SQLITE_CANTOPEN,
            Self::Replaced { .. } => ffi::SQLITE_READONLY_DBMOVED,
            Self::Interrupted => ffi::SQLITE_INTERRUPT,
            Self::NoClusters => ffi::SQLITE_CANTOPEN,
            Self::Cluster { trouble, .. } => trouble.code(),
            Self::UnknownOutcome { .. } => ffi::SQLITE_IOERR,
            _ => ffi::SQLITE_ERROR,
        }
    }

    /// Names the file and the work for an error of SQLite.
    pub(crate) fn sqlite(path: &Path, doing: &'static str, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        let source = match source {
            // The store's own rows are always there, except in a file that was mixed of two.
            rusqlite::Error::QueryReturnedNoRows => rusqlite::Error::SqliteFailure(
                ffi::Error::new(ffi::SQLITE_CORRUPT),
                Some("a row of the store's own is missing".to_owned()),
            ),
            other => other,
        };
        match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                Self::Busy { path, doing, source }
            }
            _ => Self::Sqlite { path, doing, source },
        }
    }
}

/// What to do about an error of SQLite.
fn advice(source: &rusqlite::Error, path: &Path) -> &'static str {
    use rusqlite::ErrorCode as Code;
    match source.sqlite_error_code() {
        Some(Code::DiskFull) => "make room on that disk, then call again",
        Some(Code::ReadOnly | Code::PermissionDenied) => {
            "see that this user may write to the file and to its folder, or name another file with fence_open or FENCE_STORE"
        }
        Some(Code::CannotOpen) if path.parent().is_some_and(|folder| !folder.exists()) => {
            "its folder does not exist; make it, or name another file with fence_open or FENCE_STORE"
        }
        Some(Code::CannotOpen) => "see that the folder exists and that this user may read and write it",
        Some(Code::NotADatabase) => {
            "the file is no SQLite database; name another file with fence_open or FENCE_STORE, or move it away"
        }
        Some(Code::DatabaseCorrupt) => {
            "move the file away with its -wal and -shm and call fence_advance with the largest fence in your data"
        }
        _ => "nothing was changed; call again, and if it stays, see to the file",
    }
}
