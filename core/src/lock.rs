//! A lock: a named family of keys with defaults of its own, and `hold`, which does the whole of it.
//!
//! The key that is taken is the lock's name, a colon and the key that is given: `store.lock("summaries")` and `42` give
//! `summaries:42`, in SQL as in every language.
//!
//! ```
//! use fence_core::{Store, Ttl};
//!
//! # let folder = tempfile::tempdir()?;
//! let store = Store::open(folder.path().join("kv.db"))?;
//! let summaries = store.lock("summaries").ttl(Ttl::new(10_000)?);
//! let db = rusqlite::Connection::open(folder.path().join("app.db"))?;
//! db.execute_batch("create table chats (id integer primary key, summary text, summary_fence text not null default '');
//!                   insert into chats (id) values (42)")?;
//!
//! summaries.hold(42, |lease| -> Result<(), Box<dyn std::error::Error>> {
//!     let summary = "what the model said";
//!     let fence = format!("{:040}", lease.fence().get());
//!     let saved = db.execute(
//!         "update chats set summary = ?1, summary_fence = ?2 where id = ?3 and summary_fence < ?2",
//!         (summary, &fence, 42),
//!     )?;
//!     assert_eq!(saved, 1);
//!     Ok(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt::Display;

use crate::engine::Name;
use crate::error::{Error, Result};
use crate::fence::Fence;
use crate::keep::Kept;
use crate::lease::Lease;
use crate::limits::{Delay, Ttl, Wait};
use crate::shown;
use crate::store::{AcquireOptions, Store};

/// How long a hold waits unless said otherwise: as long as a lease lasts whose holder has died.
const PATIENCE: i64 = 30_000;

/// A named family of keys. Made by [`Store::lock`].
///
/// ```
/// use fence_core::{Store, Ttl, Wait};
///
/// let store = Store::in_memory()?;
/// let summaries = store.lock("summaries").ttl(Ttl::new(60_000)?).wait(Wait::new(5_000)?);
/// assert!(summaries.acquire(42)?.is_some());
/// # Ok::<(), fence_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Lock {
    store: Store,
    name: String,
    options: AcquireOptions,
}

/// A lease that is renewed: inside a [`Lock::hold`] until the closure ends, from [`Store::keep`] until it is released or
/// dropped; in both until it is lost.
///
/// ```
/// use fence_core::{Error, Store};
///
/// let store = Store::in_memory()?;
/// let answer: Result<(), Error> = store.lock("chat").hold(42, |lease| {
///     println!("{} with fence {}", lease.key(), lease.fence());
///     Ok(())
/// });
/// answer?;
/// # Ok::<(), Error>(())
/// ```
pub struct HeldLease {
    fence: Fence,
    kept: Kept,
}

impl Store {
    /// A lock of this name with the defaults: a ttl of 30 s, a wait of 30 s, no delay, unbound.
    ///
    /// ```
    /// let store = fence_core::Store::in_memory()?;
    /// let lease = store.lock("chat").acquire(42)?.ok_or("held")?;
    /// assert_eq!(lease.key(), "chat:42");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lock(&self, name: &str) -> Lock {
        Lock {
            store: self.clone(),
            name: name.to_owned(),
            options: patient(),
        }
    }
}

impl Store {
    /// Takes the lease of these keys as they are, without a lock's name, all under one fence or none; waits as
    /// [`Store::acquire_unless`] does, and renews it until the answer is released or dropped. For who cannot do the work
    /// inside a closure. Nothing if somebody else holds a key for longer than the options would wait.
    ///
    /// # Errors
    ///
    /// As [`Store::acquire_all`], and [`Error::Thread`].
    ///
    /// ```
    /// use fence_core::{AcquireOptions, Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let options = AcquireOptions::default();
    /// let held = store.keep(&["from", "to"], &options, &|| false)?.ok_or("held")?;
    /// assert_eq!(held.keys(), ["from", "to"]);
    /// assert_eq!(store.acquire("to", &options)?, None);
    /// held.release()?;
    /// assert!(store.acquire("to", &options)?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep(
        &self,
        keys: &[&str],
        options: &AcquireOptions,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<HeldLease>> {
        let kept = self.acquire_and_keep(keys, None, options, interrupted)?;
        Ok(kept.and_then(HeldLease::new))
    }
}

/// The options of a hold unless said otherwise.
pub(crate) fn patient() -> AcquireOptions {
    AcquireOptions {
        wait: Wait::new(PATIENCE).unwrap_or_default(),
        ..AcquireOptions::default()
    }
}

impl Lock {
    /// How long a lease lasts without renewal. It is renewed at a third of this.
    ///
    /// ```
    /// use fence_core::{Store, Ttl};
    ///
    /// let lock = Store::in_memory()?.lock("chat").ttl(Ttl::new(5_000)?);
    /// # let _ = lock;
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn ttl(mut self, ttl: Ttl) -> Self {
        self.options.ttl = ttl;
        self
    }

    /// How long [`Lock::hold`] and [`Lock::acquire`] wait.
    ///
    /// ```
    /// use fence_core::{Store, Wait};
    ///
    /// let lock = Store::in_memory()?.lock("chat").wait(Wait::MIN);
    /// assert!(lock.acquire(42)?.is_some());
    /// assert!(lock.acquire(42)?.is_none());
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn wait(mut self, wait: Wait) -> Self {
        self.options.wait = wait;
        self
    }

    /// For how long a key stays closed after a lease that ended without release.
    ///
    /// ```
    /// use fence_core::{Delay, Store};
    ///
    /// let payments = Store::in_memory()?.lock("payments").delay(Delay::new(60_000)?);
    /// # let _ = payments;
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn delay(mut self, delay: Delay) -> Self {
        self.options.delay = delay;
        self
    }

    /// Whether a lease ends at once when this process ends.
    ///
    /// ```
    /// use fence_core::Store;
    ///
    /// let store = Store::in_memory()?;
    /// store.lock("chat").bound(true).acquire(42)?;
    /// assert!(store.holds()?.any(|hold| hold.is_ok_and(|hold| hold.bound)));
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn bound(mut self, bound: bool) -> Self {
        self.options.bound = bound;
        self
    }

    /// Takes a lease and leaves renewing and releasing to the caller. Nothing if somebody else holds it for longer than
    /// the lock waits.
    ///
    /// # Errors
    ///
    /// As [`Store::acquire`].
    ///
    /// ```
    /// use fence_core::Store;
    ///
    /// let store = Store::in_memory()?;
    /// let lease = store.lock("chat").acquire(42)?.ok_or("held")?;
    /// assert!(store.release(lease.key(), lease.fence())?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn acquire(&self, key: impl Display) -> Result<Option<Lease>> {
        self.store.acquire(&self.key(key), &self.options)
    }

    /// Takes a lease, runs the work with it, renews it meanwhile, and releases it at the end, also of a panic.
    ///
    /// # Errors
    ///
    /// What the work gives; [`Error::Held`] when the wait was over, and the work did not run; [`Error::LeaseLost`] when
    /// the work succeeded and the lease had ended before it; those of [`Store::acquire`].
    ///
    /// ```
    /// use fence_core::{Error, Store, Wait};
    ///
    /// let store = Store::in_memory()?;
    /// let lock = store.lock("chat").wait(Wait::MIN);
    /// let answer: Result<_, Error> = lock.hold(42, |lease| {
    ///     assert!(!lease.is_lost());
    ///     // The key is ours: nobody else gets it, this process included.
    ///     assert!(matches!(lock.hold(42, |_| Ok::<_, Error>(())), Err(Error::Held { .. })));
    ///     Ok("done")
    /// });
    /// assert_eq!(answer?, "done");
    /// # Ok::<(), Error>(())
    /// ```
    pub fn hold<T, E: From<Error>>(
        &self,
        key: impl Display,
        work: impl FnOnce(&HeldLease) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        let key = self.key(key);
        self.hold_with(&key, &self.options, work)?.ok_or_else(|| {
            E::from(Error::Held {
                key: shown::text(key.as_bytes()),
                waited_ms: self.options.wait.get(),
            })
        })
    }

    /// [`Lock::hold`] without waiting: nothing if somebody else holds the key, and the work did not run.
    ///
    /// # Errors
    ///
    /// As [`Lock::hold`], but for [`Error::Held`].
    ///
    /// ```
    /// use fence_core::{Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let lock = store.lock("nightly");
    /// let ran: Result<_, Error> = lock.try_hold("report", |lease| Ok(lease.fence()));
    /// assert!(ran?.is_some());
    /// # Ok::<(), Error>(())
    /// ```
    pub fn try_hold<T, E: From<Error>>(
        &self,
        key: impl Display,
        work: impl FnOnce(&HeldLease) -> std::result::Result<T, E>,
    ) -> std::result::Result<Option<T>, E> {
        let options = AcquireOptions {
            wait: Wait::MIN,
            ..self.options
        };
        self.hold_with(&self.key(key), &options, work)
    }

    fn hold_with<T, E: From<Error>>(
        &self,
        key: &str,
        options: &AcquireOptions,
        work: impl FnOnce(&HeldLease) -> std::result::Result<T, E>,
    ) -> std::result::Result<Option<T>, E> {
        let Some(held) = self.store.keep(&[key], options, &|| false)? else {
            return Ok(None);
        };
        let done = work(&held)?; // On an error or a panic the drop releases.
        held.release()?;
        Ok(Some(done))
    }

    fn key(&self, key: impl Display) -> String {
        format!("{}:{key}", self.name)
    }
}

impl HeldLease {
    fn new(kept: Kept) -> Option<Self> {
        match kept.name() {
            Name::Lease(fence) => Some(Self { fence, kept }),
            Name::Permit(_) => None,
        }
    }

    /// The key that is held, with the lock's name; of several the first.
    ///
    /// ```
    /// use fence_core::{Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let answer: Result<(), Error> = store.lock("chat").hold(42, |lease| {
    ///     assert_eq!(lease.key(), "chat:42");
    ///     Ok(())
    /// });
    /// answer?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn key(&self) -> &str {
        self.kept.keys().first().map_or("", String::as_str)
    }

    /// The keys that are held, in their order, each once.
    ///
    /// ```
    /// use fence_core::{Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let answer: Result<(), Error> = store.lock("chat").hold(42, |lease| {
    ///     assert_eq!(lease.keys(), ["chat:42"]);
    ///     Ok(())
    /// });
    /// answer?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn keys(&self) -> &[String] {
        self.kept.keys()
    }

    /// The fence to write with everything that is written under the lease.
    ///
    /// ```
    /// use fence_core::{Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let answer: Result<(), Error> = store.lock("chat").hold(42, |lease| {
    ///     assert_eq!(lease.fence().padded().len(), 40);
    ///     Ok(())
    /// });
    /// answer?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// Whether the lease has ended before the work. The fence refuses what is written late; this saves the effort.
    ///
    /// ```
    /// use fence_core::{Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let answer: Result<(), Error> = store.lock("chat").hold(42, |lease| {
    ///     assert!(!lease.is_lost());
    ///     Ok(())
    /// });
    /// answer?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_lost(&self) -> bool {
        self.kept.is_lost()
    }

    /// Has `call` run, on another thread, when the lease is lost; at once if it is lost already.
    ///
    /// ```
    /// use fence_core::{Error, Store, Ttl};
    /// use std::sync::mpsc::channel;
    ///
    /// let store = Store::in_memory()?;
    /// let lock = store.lock("chat").ttl(Ttl::new(30)?);
    /// let answer: Result<(), Error> = lock.hold(42, |lease| {
    ///     let (tell, lost) = channel();
    ///     lease.on_lost(move || tell.send("lost").unwrap_or(()));
    ///     store.release(lease.key(), lease.fence())?; // As if it had run out.
    ///     assert_eq!(lost.recv(), Ok("lost"));
    ///     Ok(())
    /// });
    /// assert!(matches!(answer, Err(Error::LeaseLost { .. })));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn on_lost(&self, call: impl FnOnce() + Send + 'static) {
        self.kept.on_lost(call);
    }

    /// Stops renewing it and gives it back.
    ///
    /// # Errors
    ///
    /// [`Error::LeaseLost`] when it was not live to the end.
    pub fn release(self) -> Result<()> {
        self.kept.let_go()
    }
}
