//! The store: the epoch and the live leases, in a file or on a cluster.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clock::Clock;
use crate::engine::{Engine, Granted, Name, PageMark, Request};
use crate::error::{Error, Result};
use crate::fence::{Epoch, Fence};
use crate::keep::Kept;
use crate::key::Key;
use crate::lease::{Hold, Lease};
use crate::limits::{Delay, Limit, Ttl, Wait};
use crate::permit::PermitId;
use crate::place;

/// How many keys one lease may hold.
const MOST_KEYS: usize = 1_000;

/// How a lease or a permit is acquired.
///
/// ```
/// use fence_core::{AcquireOptions, Ttl, Wait};
///
/// let options = AcquireOptions {
///     ttl: Ttl::new(60_000)?,
///     wait: Wait::new(5_000)?,
///     ..AcquireOptions::default()
/// };
/// assert!(!options.bound);
/// # Ok::<(), fence_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcquireOptions {
    /// How long it lasts from the moment of the grant. 30 s unless said otherwise.
    pub ttl: Ttl,
    /// For how long to wait for it. Not at all unless said otherwise.
    pub wait: Wait,
    /// For how long the key stays closed if the lease ends without release. A permit has no delay.
    pub delay: Delay,
    /// Whether it ends at once when this process ends, however it dies.
    pub bound: bool,
}

/// A store, open in this process. Clones are the same store; a file closes with the last one.
///
/// ```
/// use fence_core::{AcquireOptions, Store};
///
/// let folder = tempfile::tempdir()?;
/// let store = Store::open(folder.path().join("kv.db"))?;
/// let first = store.acquire("chat:42", &AcquireOptions::default())?.ok_or("held")?;
/// assert_eq!(store.acquire("chat:42", &AcquireOptions::default())?, None); // Somebody holds it.
/// assert!(store.release("chat:42", first.fence())?);
///
/// let second = store.acquire("chat:42", &AcquireOptions::default())?.ok_or("held")?;
/// assert!(second.fence() > first.fence());
/// assert!(!store.release("chat:42", first.fence())?); // That lease is over.
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
}

impl Store {
    /// Opens the store in this file and commits a new epoch, synced to the disk. A file that does not exist is made; its
    /// folder must exist. The path may be relative, a symbolic link or a `file:` URI. Within a process the same file is
    /// opened once, whatever the spelling.
    ///
    /// A path that begins with `etcd://`, or `etcds://` for TLS, is the location of a store on an etcd cluster:
    /// `etcd://[user[:password]@]host[:port][,host[:port]…][/prefix]`. It needs the feature `etcd`.
    ///
    /// # Errors
    ///
    /// [`Error::Path`], [`Error::Io`], [`Error::NotAStore`], [`Error::NewerFormat`], [`Error::HardLinked`],
    /// [`Error::Busy`], [`Error::Sqlite`]; of a cluster [`Error::NoClusters`], [`Error::Cluster`].
    ///
    /// ```
    /// let folder = tempfile::tempdir()?;
    /// let store = fence_core::Store::open(folder.path().join("kv.db"))?;
    /// assert!(store.path().is_absolute());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let engine = place::open(path.as_ref())?;
        Ok(Self { engine })
    }

    /// Opens a store that lives in memory and ends with its last clone. Nobody else sees it.
    ///
    /// # Errors
    ///
    /// [`Error::Sqlite`] when there is no memory for it.
    ///
    /// ```
    /// assert!(fence_core::Store::in_memory()?.holds()?.next().is_none());
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn in_memory() -> Result<Self> {
        let engine = place::in_memory()?;
        Ok(Self { engine })
    }

    /// Opens the file with a clock of one's own and a connection of its own, as another process would. For tests.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    ///
    /// ```
    /// use fence_core::{Store, clock::SystemClock};
    ///
    /// let folder = tempfile::tempdir()?;
    /// let one = Store::with_clock(folder.path().join("kv.db"), SystemClock)?;
    /// let other = Store::with_clock(folder.path().join("kv.db"), SystemClock)?;
    /// assert_eq!(one.epoch()?, other.epoch()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn with_clock(path: impl AsRef<Path>, clock: impl Clock) -> Result<Self> {
        let engine = place::open_alone(path.as_ref(), Arc::new(clock))?;
        Ok(Self { engine })
    }

    /// The path that [`Store::open`] would use for this one, without opening anything.
    ///
    /// # Errors
    ///
    /// [`Error::Path`] and [`Error::Io`].
    ///
    /// ```
    /// use fence_core::Store;
    ///
    /// assert_eq!(Store::locate("/../kv.db")?, Store::locate("file:///kv.db")?);
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn locate(path: impl AsRef<Path>) -> Result<PathBuf> {
        place::locate(path.as_ref())
    }

    /// Whether there is a store at this path. Opens nothing and makes nothing.
    ///
    /// # Errors
    ///
    /// As [`Store::locate`]; of a cluster those of reading it.
    ///
    /// ```
    /// use fence_core::Store;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("kv.db");
    /// assert!(!Store::exists(&path)?);
    /// Store::open(&path)?;
    /// assert!(Store::exists(&path)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn exists(path: impl AsRef<Path>) -> Result<bool> {
        place::exists(path.as_ref())
    }

    /// The epoch that stands in this file, without making it, opening it as a store or lifting the epoch. Nothing if there
    /// is no such file.
    ///
    /// # Errors
    ///
    /// As [`Store::open`].
    ///
    /// ```
    /// use fence_core::Store;
    ///
    /// let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("kv.db");
    /// assert_eq!(Store::peek_epoch(&path)?, None);
    /// let store = Store::open(&path)?;
    /// assert_eq!(Store::peek_epoch(&path)?, Some(store.epoch()?));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn peek_epoch(path: impl AsRef<Path>) -> Result<Option<Epoch>> {
        place::peek_epoch(path.as_ref())
    }

    /// Lets go of the store, as dropping this does; the last handle of a process closes the store's connection.
    ///
    /// Dropping alone may leave that to a fork that is under way on another thread. When `close` returns the connection
    /// is closed if this was the last handle, whoever closed it: from then on the SQLite beneath may be unloaded.
    ///
    /// ```
    /// let store = fence_core::Store::in_memory()?;
    /// store.close();
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn close(self) {
        drop(self);
        place::wait_for_fork();
    }

    /// The file's absolute path without symbolic links; `:memory:` of a store in memory; of a cluster its location, without
    /// a password.
    ///
    /// ```
    /// assert_eq!(fence_core::Store::in_memory()?.path().to_str(), Some(":memory:"));
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn path(&self) -> &Path {
        self.engine.path()
    }

    /// The epoch of the fences that are given now.
    ///
    /// # Errors
    ///
    /// Those of the file: [`Error::Busy`], [`Error::Sqlite`], and those of [`Store::open`] if it was replaced.
    ///
    /// ```
    /// let store = fence_core::Store::in_memory()?;
    /// assert!(store.epoch()?.get() > 1_700_000_000_000);
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn epoch(&self) -> Result<Epoch> {
        self.engine.epoch()
    }

    /// Lifts the epoch past this fence's, if it is not past it already; gives the epoch that stands then. For a store
    /// that was restored from a backup: give the largest fence in your data (LOCK-10).
    ///
    /// # Errors
    ///
    /// [`Error::EpochExhausted`] for a fence whose epoch is 2^63 - 1 or more, and those of the file.
    ///
    /// ```
    /// use fence_core::{Count, Epoch, Fence, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let seen = Fence::new(Epoch::new(9_000_000_000_000), Count::new(7));
    /// assert_eq!(store.advance(seen)?, Epoch::new(9_000_000_000_001));
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn advance(&self, fence: Fence) -> Result<Epoch> {
        self.engine.advance(fence)
    }

    /// Takes the lease of a key; nothing if somebody else holds it for longer than the options would wait.
    ///
    /// # Errors
    ///
    /// [`Error::Key`], and those of the file.
    ///
    /// ```
    /// use fence_core::{AcquireOptions, Store};
    ///
    /// let store = Store::in_memory()?;
    /// assert!(store.acquire("job", &AcquireOptions::default())?.is_some());
    /// assert!(store.acquire("job", &AcquireOptions::default())?.is_none());
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn acquire(&self, key: &str, options: &AcquireOptions) -> Result<Option<Lease>> {
        self.acquire_unless(key, options, &|| false)
    }

    /// [`Store::acquire`], with a wait that ends as soon as `interrupted` says so. It is asked at least every 100 ms.
    ///
    /// # Errors
    ///
    /// As [`Store::acquire`], and [`Error::Interrupted`]: nothing was granted.
    ///
    /// ```
    /// use fence_core::{AcquireOptions, Error, Store, Wait};
    ///
    /// let store = Store::in_memory()?;
    /// store.acquire("job", &AcquireOptions::default())?;
    /// let patient = AcquireOptions { wait: Wait::MAX, ..AcquireOptions::default() };
    /// let answer = store.acquire_unless("job", &patient, &|| true);
    /// assert!(matches!(answer, Err(Error::Interrupted)));
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn acquire_unless(
        &self,
        key: &str,
        options: &AcquireOptions,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<Lease>> {
        let granted = self.grant(&[Key::new(key)?], None, false, options, interrupted)?;
        Ok(granted.and_then(fence_of).map(|fence| Lease::new(key, fence)))
    }

    /// Lets a live lease last for `ttl` from now; without one, for as long as it was last given. Whether it is live.
    /// A lease that is over stays over, whatever the fence (LOCK-04).
    ///
    /// # Errors
    ///
    /// As [`Store::acquire`].
    ///
    /// ```
    /// use fence_core::{AcquireOptions, Count, Epoch, Fence, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let lease = store.acquire("job", &AcquireOptions::default())?.ok_or("held")?;
    /// assert!(store.renew("job", lease.fence(), None)?);
    /// assert!(!store.renew("job", Fence::new(Epoch::new(1), Count::new(1)), None)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn renew(&self, key: &str, fence: Fence, ttl: Option<Ttl>) -> Result<bool> {
        self.engine.renew(Key::new(key)?, Name::Lease(fence), ttl)
    }

    /// Ends a live lease; its key is free at once. Whether it was live.
    ///
    /// # Errors
    ///
    /// As [`Store::acquire`].
    ///
    /// ```
    /// use fence_core::{AcquireOptions, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let lease = store.acquire("job", &AcquireOptions::default())?.ok_or("held")?;
    /// assert!(store.release("job", lease.fence())?);
    /// assert!(!store.release("job", lease.fence())?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release(&self, key: &str, fence: Fence) -> Result<bool> {
        self.engine.release(Key::new(key)?, Name::Lease(fence))
    }

    /// Takes the leases of several keys under one fence: all, or none. Keys that are named twice count once.
    ///
    /// # Errors
    ///
    /// As [`Store::acquire_unless`], and [`Error::KeyCount`] for no key or more than 1,000. A cluster may take fewer:
    /// [`ClusterTrouble::TooManyKeys`](crate::ClusterTrouble::TooManyKeys).
    ///
    /// ```
    /// use fence_core::{AcquireOptions, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let options = AcquireOptions::default();
    /// let fence = store.acquire_all(&["from", "to"], &options, &|| false)?.ok_or("held")?;
    /// assert_eq!(store.acquire("to", &options)?, None);
    /// assert!(store.release_all(fence)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn acquire_all(
        &self,
        keys: &[&str],
        options: &AcquireOptions,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<Fence>> {
        let keys = checked(keys)?;
        Ok(self.grant(&keys, None, true, options, interrupted)?.and_then(fence_of))
    }

    /// Renews every key of a lease of several. Whether all of them are live, but for those that were released one by one;
    /// else nothing changes.
    ///
    /// # Errors
    ///
    /// Those of the file.
    ///
    /// ```
    /// use fence_core::{AcquireOptions, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let fence = store.acquire_all(&["from", "to"], &AcquireOptions::default(), &|| false)?.ok_or("held")?;
    /// assert!(store.renew_all(fence, None)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn renew_all(&self, fence: Fence, ttl: Option<Ttl>) -> Result<bool> {
        self.engine.renew_all(fence, ttl)
    }

    /// Ends a lease of several keys. Whether any of them was live.
    ///
    /// # Errors
    ///
    /// Those of the file.
    ///
    /// ```
    /// use fence_core::{AcquireOptions, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let fence = store.acquire_all(&["from", "to"], &AcquireOptions::default(), &|| false)?.ok_or("held")?;
    /// assert!(store.release_all(fence)?);
    /// assert!(!store.release_all(fence)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release_all(&self, fence: Fence) -> Result<bool> {
        self.engine.release_all(fence)
    }

    /// Takes a permit of a semaphore; nothing if `limit` permits are live for longer than the options would wait. Each
    /// acquire compares with the limit that *it* names: a lowered limit drains, and nobody is evicted (SEM-01).
    ///
    /// # Errors
    ///
    /// As [`Store::acquire_unless`].
    ///
    /// ```
    /// use fence_core::{AcquireOptions, Limit, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let two = Limit::new(2)?;
    /// let options = AcquireOptions::default();
    /// let first = store.acquire_permit("gpu", two, &options, &|| false)?.ok_or("full")?;
    /// store.acquire_permit("gpu", two, &options, &|| false)?.ok_or("full")?;
    /// assert_eq!(store.acquire_permit("gpu", two, &options, &|| false)?, None);
    /// assert!(store.release_permit("gpu", first)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn acquire_permit(
        &self,
        key: &str,
        limit: Limit,
        options: &AcquireOptions,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<PermitId>> {
        let granted = self.grant(&[Key::new(key)?], Some(limit), false, options, interrupted)?;
        Ok(granted.and_then(permit_of))
    }

    /// Lets a live permit last for `ttl` from now; without one, for as long as it was last given. Whether it is live.
    ///
    /// # Errors
    ///
    /// As [`Store::acquire`].
    ///
    /// ```
    /// use fence_core::{AcquireOptions, Limit, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let permit = store.acquire_permit("gpu", Limit::MIN, &AcquireOptions::default(), &|| false)?.ok_or("full")?;
    /// assert!(store.renew_permit("gpu", permit, None)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn renew_permit(&self, key: &str, permit: PermitId, ttl: Option<Ttl>) -> Result<bool> {
        self.engine.renew(Key::new(key)?, Name::Permit(permit), ttl)
    }

    /// Gives a live permit back. Whether it was live: a second time, or after its end, frees nobody else's (SEM-02).
    ///
    /// # Errors
    ///
    /// As [`Store::acquire`].
    ///
    /// ```
    /// use fence_core::{AcquireOptions, Limit, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let permit = store.acquire_permit("gpu", Limit::MIN, &AcquireOptions::default(), &|| false)?.ok_or("full")?;
    /// assert!(store.release_permit("gpu", permit)?);
    /// assert!(!store.release_permit("gpu", permit)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn release_permit(&self, key: &str, permit: PermitId) -> Result<bool> {
        self.engine.release(Key::new(key)?, Name::Permit(permit))
    }

    /// All that keeps a key from others: leases, permits, and delays of keys whose lease ended without release, in the
    /// order of the keys. Read in pages: a listing left open keeps nothing else from going on.
    ///
    /// # Errors
    ///
    /// Those of the file, here and of each row.
    ///
    /// ```
    /// use fence_core::{AcquireOptions, HoldKind, Store};
    ///
    /// let store = Store::in_memory()?;
    /// store.acquire("job", &AcquireOptions::default())?;
    /// let holds = store.holds()?.collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!((holds[0].key.as_str(), holds[0].kind), ("job", HoldKind::Lease));
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn holds(&self) -> Result<Holds> {
        let mut holds = Holds {
            engine: Arc::clone(&self.engine),
            mark: PageMark::default(),
            page: Vec::new().into_iter(),
            ended: false,
        };
        holds.turn()?;
        Ok(holds)
    }

    /// Acquires a lease of one key or of several, or with a limit a permit, and renews it until it is let go.
    pub(crate) fn acquire_and_keep(
        &self,
        keys: &[&str],
        limit: Option<Limit>,
        options: &AcquireOptions,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<Kept>> {
        let keys = checked(keys)?;
        let request = request(&keys, limit, keys.len() > 1, options);
        self.engine
            .acquire(&request, options.wait, interrupted)?
            .map(|granted| Kept::begin(&self.engine, &request, granted))
            .transpose()
    }

    fn grant(
        &self,
        keys: &[Key<'_>],
        limit: Option<Limit>,
        several: bool,
        options: &AcquireOptions,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<Granted>> {
        let request = request(keys, limit, several, options);
        self.engine.acquire(&request, options.wait, interrupted)
    }
}

/// The keys, without doubles, if they are keys and not too many.
fn checked<'a>(keys: &[&'a str]) -> Result<Vec<Key<'a>>> {
    let keys = keys.iter().map(|key| Key::new(key)).collect::<Result<BTreeSet<_>>>()?;
    if keys.is_empty() || keys.len() > MOST_KEYS {
        return Err(Error::KeyCount {
            count: keys.len(),
            most: MOST_KEYS,
        });
    }
    Ok(keys.into_iter().collect())
}

fn request<'a>(keys: &'a [Key<'a>], limit: Option<Limit>, several: bool, options: &AcquireOptions) -> Request<'a> {
    Request {
        keys,
        limit,
        several,
        ttl: options.ttl,
        delay: options.delay,
        bound: options.bound,
    }
}

impl std::fmt::Debug for Store {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Store")
            .field("path", &self.path())
            .finish_non_exhaustive()
    }
}

fn fence_of(granted: Granted) -> Option<Fence> {
    match granted.name {
        Name::Lease(fence) => Some(fence),
        Name::Permit(_) => None,
    }
}

fn permit_of(granted: Granted) -> Option<PermitId> {
    match granted.name {
        Name::Permit(permit) => Some(permit),
        Name::Lease(_) => None,
    }
}

/// The rows of [`Store::holds`].
///
/// ```
/// use fence_core::{AcquireOptions, Store};
///
/// let store = Store::in_memory()?;
/// store.acquire("job", &AcquireOptions::default())?;
/// assert_eq!(store.holds()?.count(), 1);
/// # Ok::<(), fence_core::Error>(())
/// ```
pub struct Holds {
    engine: Arc<dyn Engine>,
    mark: PageMark,
    page: std::vec::IntoIter<Hold>,
    ended: bool,
}

impl Holds {
    /// Turns to the next page that has a row.
    fn turn(&mut self) -> Result<()> {
        while !self.ended && self.page.len() == 0 {
            match self.engine.page(&mut self.mark)? {
                Some(page) => self.page = page.into_iter(),
                None => self.ended = true,
            }
        }
        Ok(())
    }
}

impl Iterator for Holds {
    type Item = Result<Hold>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Err(error) = self.turn() {
            self.ended = true;
            return Some(Err(error));
        }
        self.page.next().map(Ok)
    }
}
