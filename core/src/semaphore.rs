//! A semaphore: at most so many permits of a key are live. A permit is no fence: three valid holders at once would refuse
//! each other's writes.

use crate::engine::Name;
use crate::error::{Error, Result};
use crate::keep::Kept;
use crate::limits::{Limit, Ttl, Wait};
use crate::lock::patient;
use crate::permit::PermitId;
use crate::shown;
use crate::store::{AcquireOptions, Store};

/// A semaphore of one key. Made by [`Store::semaphore`].
///
/// ```
/// use fence_core::{Store, Wait};
///
/// let store = Store::in_memory()?;
/// let gpu = store.semaphore("gpu", 1).wait(Wait::MIN);
/// assert!(gpu.acquire()?.is_some());
/// assert!(gpu.acquire()?.is_none());
/// # Ok::<(), fence_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Semaphore {
    store: Store,
    key: String,
    /// As it was given: whether it is one is seen to when a permit is asked for, as with a key.
    limit: i64,
    options: AcquireOptions,
}

/// A permit that is renewed: inside a [`Semaphore::hold`] until the closure ends, from [`Store::keep_permit`] until it is
/// released or dropped; in both until it is lost.
///
/// ```
/// use fence_core::{Error, Store};
///
/// let store = Store::in_memory()?;
/// let answer: Result<(), Error> = store.semaphore("gpu", 3).hold(|permit| {
///     println!("{}", permit.id());
///     Ok(())
/// });
/// answer?;
/// # Ok::<(), Error>(())
/// ```
pub struct HeldPermit {
    permit: PermitId,
    kept: Kept,
}

impl Store {
    /// A semaphore of this key, with `limit` permits and the defaults of [`Store::lock`]. Its holds and acquires answer
    /// [`Error::OutOfRange`] if the limit is not one of 1 to 1,000,000.
    ///
    /// ```
    /// use fence_core::{Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let answer: Result<_, Error> = store.semaphore("gpu", 3).hold(|permit| Ok(permit.is_lost()));
    /// assert!(!answer?);
    /// # Ok::<(), Error>(())
    /// ```
    pub fn semaphore(&self, key: &str, limit: i64) -> Semaphore {
        Semaphore {
            store: self.clone(),
            key: key.to_owned(),
            limit,
            options: patient(),
        }
    }
}

impl Store {
    /// [`Store::keep`] for a permit.
    ///
    /// # Errors
    ///
    /// As [`Store::acquire_permit`], and [`Error::Thread`].
    ///
    /// ```
    /// use fence_core::{AcquireOptions, Limit, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let options = AcquireOptions::default();
    /// let held = store.keep_permit("gpu", Limit::MIN, &options, &|| false)?.ok_or("full")?;
    /// assert!(store.keep_permit("gpu", Limit::MIN, &options, &|| false)?.is_none());
    /// held.release()?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn keep_permit(
        &self,
        key: &str,
        limit: Limit,
        options: &AcquireOptions,
        interrupted: &dyn Fn() -> bool,
    ) -> Result<Option<HeldPermit>> {
        let kept = self.acquire_and_keep(&[key], Some(limit), options, interrupted)?;
        Ok(kept.and_then(HeldPermit::new))
    }
}

impl Semaphore {
    /// How long a permit lasts without renewal.
    ///
    /// ```
    /// use fence_core::{Store, Ttl};
    ///
    /// let gpu = Store::in_memory()?.semaphore("gpu", 3).ttl(Ttl::new(5_000)?);
    /// # let _ = gpu;
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn ttl(mut self, ttl: Ttl) -> Self {
        self.options.ttl = ttl;
        self
    }

    /// How long [`Semaphore::hold`] and [`Semaphore::acquire`] wait.
    ///
    /// ```
    /// use fence_core::{Store, Wait};
    ///
    /// let gpu = Store::in_memory()?.semaphore("gpu", 1).wait(Wait::MIN);
    /// assert!(gpu.acquire()?.is_some());
    /// assert!(gpu.acquire()?.is_none());
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn wait(mut self, wait: Wait) -> Self {
        self.options.wait = wait;
        self
    }

    /// Whether a permit ends at once when this process ends.
    ///
    /// ```
    /// use fence_core::Store;
    ///
    /// let store = Store::in_memory()?;
    /// store.semaphore("gpu", 3).bound(true).acquire()?;
    /// assert!(store.holds()?.any(|hold| hold.is_ok_and(|hold| hold.bound)));
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn bound(mut self, bound: bool) -> Self {
        self.options.bound = bound;
        self
    }

    /// Takes a permit and leaves renewing and releasing to the caller. Nothing if all are taken for longer than the
    /// semaphore waits.
    ///
    /// # Errors
    ///
    /// As [`Store::acquire_permit`].
    ///
    /// ```
    /// use fence_core::Store;
    ///
    /// let store = Store::in_memory()?;
    /// let permit = store.semaphore("gpu", 3).acquire()?.ok_or("full")?;
    /// assert!(store.release_permit("gpu", permit)?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn acquire(&self) -> Result<Option<PermitId>> {
        self.store
            .acquire_permit(&self.key, Limit::new(self.limit)?, &self.options, &|| false)
    }

    /// Takes a permit, runs the work, renews it meanwhile, and gives it back at the end, also of a panic.
    ///
    /// # Errors
    ///
    /// What the work gives; [`Error::Held`] when the wait was over, and the work did not run; [`Error::PermitLost`] when
    /// the work succeeded and the permit had ended before it; those of [`Store::acquire_permit`].
    ///
    /// ```
    /// use fence_core::{Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let answer: Result<(), Error> = store.semaphore("gpu", 3).hold(|permit| {
    ///     assert!(!permit.is_lost());
    ///     Ok(())
    /// });
    /// answer?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn hold<T, E: From<Error>>(
        &self,
        work: impl FnOnce(&HeldPermit) -> std::result::Result<T, E>,
    ) -> std::result::Result<T, E> {
        self.hold_with(&self.options, work)?.ok_or_else(|| {
            E::from(Error::Held {
                key: shown::text(self.key.as_bytes()),
                waited_ms: self.options.wait.get(),
            })
        })
    }

    /// [`Semaphore::hold`] without waiting: nothing if all permits are taken, and the work did not run.
    ///
    /// # Errors
    ///
    /// As [`Semaphore::hold`], but for [`Error::Held`].
    ///
    /// ```
    /// use fence_core::{Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let gpu = store.semaphore("gpu", 1);
    /// let ran: Result<_, Error> = gpu.try_hold(|_| gpu.try_hold(|_| Ok::<_, Error>("no room")));
    /// assert_eq!(ran?, Some(None));
    /// # Ok::<(), Error>(())
    /// ```
    pub fn try_hold<T, E: From<Error>>(
        &self,
        work: impl FnOnce(&HeldPermit) -> std::result::Result<T, E>,
    ) -> std::result::Result<Option<T>, E> {
        let options = AcquireOptions {
            wait: Wait::MIN,
            ..self.options
        };
        self.hold_with(&options, work)
    }

    fn hold_with<T, E: From<Error>>(
        &self,
        options: &AcquireOptions,
        work: impl FnOnce(&HeldPermit) -> std::result::Result<T, E>,
    ) -> std::result::Result<Option<T>, E> {
        let limit = Limit::new(self.limit)?;
        let Some(held) = self.store.keep_permit(&self.key, limit, options, &|| false)? else {
            return Ok(None);
        };
        let done = work(&held)?; // On an error or a panic the drop gives it back.
        held.release()?;
        Ok(Some(done))
    }
}

impl HeldPermit {
    fn new(kept: Kept) -> Option<Self> {
        match kept.name() {
            Name::Permit(permit) => Some(Self { permit, kept }),
            Name::Lease(_) => None,
        }
    }

    /// The permit's id.
    ///
    /// ```
    /// use fence_core::{Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let answer: Result<(), Error> = store.semaphore("gpu", 3).hold(|permit| {
    ///     assert!(permit.id().to_string().starts_with("permit-"));
    ///     Ok(())
    /// });
    /// answer?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn id(&self) -> PermitId {
        self.permit
    }

    /// Whether the permit has ended before the work.
    ///
    /// ```
    /// use fence_core::{Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let answer: Result<(), Error> = store.semaphore("gpu", 3).hold(|permit| {
    ///     assert!(!permit.is_lost());
    ///     Ok(())
    /// });
    /// answer?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn is_lost(&self) -> bool {
        self.kept.is_lost()
    }

    /// Has `call` run, on another thread, when the permit is lost; at once if it is lost already.
    ///
    /// ```
    /// use fence_core::{Error, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let answer: Result<(), Error> = store.semaphore("gpu", 3).hold(|permit| {
    ///     permit.on_lost(|| eprintln!("the permit was lost"));
    ///     Ok(())
    /// });
    /// answer?;
    /// # Ok::<(), Error>(())
    /// ```
    pub fn on_lost(&self, call: impl FnOnce() + Send + 'static) {
        self.kept.on_lost(call);
    }

    /// Stops renewing it and gives it back.
    ///
    /// # Errors
    ///
    /// [`Error::PermitLost`] when it was not live to the end.
    pub fn release(self) -> Result<()> {
        self.kept.let_go()
    }
}
