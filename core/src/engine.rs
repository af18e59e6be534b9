//! The seam: what a store does, whatever it stands on.
//!
//! An engine keeps leases, permits and the fences' two numbers; [`Store`](crate::Store) checks what it is asked, and gives
//! the answers their types. Which engine a store has shows in nothing but its path and in how long things last.
//!
//! | engine | stands on | serves |
//! |---|---|---|
//! | `sqlite/` | a file, `kv.db` | the processes of one machine |
//! | `etcd/` | an etcd cluster | the processes of many machines |

use std::path::Path;

use crate::error::Result;
use crate::fence::{Epoch, Fence};
use crate::key::Key;
use crate::lease::Hold;
use crate::limits::{Delay, Limit, Ttl, Wait};
use crate::permit::PermitId;

/// What a store stands on. Every call may come from any thread, at the same time as others.
pub(crate) trait Engine: Send + Sync {
    /// Where the store is, in the one spelling that stands for all.
    fn path(&self) -> &Path;

    /// The time by which [`Granted::until`] is told, in milliseconds.
    fn now_ms(&self) -> i64;

    /// The epoch that stands now.
    fn epoch(&self) -> Result<Epoch>;

    /// Lifts the epoch past that of `fence` if it is not past it already; gives the one that stands then (LOCK-10).
    fn advance(&self, fence: Fence) -> Result<Epoch>;

    /// Grants what is asked for, after waiting in line for up to `wait`. Nothing if that was not long enough. Stops with
    /// [`Error::Interrupted`](crate::Error::Interrupted), and grants nothing, when `interrupted` says so.
    fn acquire(&self, request: &Request<'_>, wait: Wait, interrupted: &dyn Fn() -> bool) -> Result<Option<Granted>>;

    /// Lets a live lease or permit last for `ttl` from now, or for as long as it was last given. Whether it is live.
    fn renew(&self, key: Key<'_>, name: Name, ttl: Option<Ttl>) -> Result<bool>;

    /// Ends a live lease or permit. Whether it was live.
    fn release(&self, key: Key<'_>, name: Name) -> Result<bool>;

    /// Renews every key of a lease of several that was not released by itself. Whether all of them are live; else nothing
    /// changes.
    fn renew_all(&self, fence: Fence, ttl: Option<Ttl>) -> Result<bool>;

    /// Ends a lease of several keys. Whether any of them was live.
    fn release_all(&self, fence: Fence) -> Result<bool>;

    /// The next holds in the order of their keys, and the mark put behind them. Nothing after the last; a page may be
    /// empty before that.
    fn page(&self, mark: &mut PageMark) -> Result<Option<Vec<Hold>>>;
}

/// What is asked for.
pub(crate) struct Request<'a> {
    /// One key, or several that are taken under one fence, all or none. Without doubles.
    pub(crate) keys: &'a [Key<'a>],
    /// Of a permit: how many of the key's permits may be live with it.
    pub(crate) limit: Option<Limit>,
    /// Whether it is a lease of several keys, even if only one was named.
    pub(crate) several: bool,
    pub(crate) ttl: Ttl,
    pub(crate) delay: Delay,
    /// Whether it ends with this process.
    pub(crate) bound: bool,
}

/// What was granted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Granted {
    pub(crate) name: Name,
    /// When it ends if it is not renewed, by [`Engine::now_ms`].
    pub(crate) until: i64,
}

/// What a lease or permit is named by, besides its key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Name {
    Lease(Fence),
    Permit(PermitId),
}

/// Up to where a listing has come.
#[derive(Debug, Default)]
pub(crate) struct PageMark {
    pub(crate) key: String,
    pub(crate) permit: Vec<u8>,
}
