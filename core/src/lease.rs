//! What a grant gives, and what a listing shows.

use crate::fence::Fence;
use crate::permit::PermitId;

/// A granted lease. It is named by its key and its fence; this value is only a note of them, and dropping it releases
/// nothing.
///
/// ```
/// use fence_core::{AcquireOptions, Store};
///
/// let store = Store::in_memory()?;
/// if let Some(lease) = store.acquire("chat:42", &AcquireOptions::default())? {
///     assert_eq!(lease.key(), "chat:42");
///     assert_eq!(format!("{:040}", lease.fence().get()).len(), 40);
///     assert!(store.release(lease.key(), lease.fence())?);
/// }
/// # Ok::<(), fence_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    key: String,
    fence: Fence,
}

impl Lease {
    pub(crate) fn new(key: &str, fence: Fence) -> Self {
        Self {
            key: key.to_owned(),
            fence,
        }
    }

    /// The key that it holds.
    ///
    /// ```
    /// use fence_core::{AcquireOptions, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let lease = store.acquire("job", &AcquireOptions::default())?.ok_or("held")?;
    /// assert_eq!(lease.key(), "job");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn key(&self) -> &str {
        &self.key
    }

    /// Its fence: write it with everything that is written under the lease.
    ///
    /// ```
    /// use fence_core::{AcquireOptions, Store};
    ///
    /// let store = Store::in_memory()?;
    /// let lease = store.acquire("job", &AcquireOptions::default())?.ok_or("held")?;
    /// assert_eq!(lease.fence().epoch(), store.epoch()?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn fence(&self) -> Fence {
        self.fence
    }
}

/// A row of [`Store::holds`](crate::Store::holds): something that keeps a key from others. For people: a program never
/// takes *its* fence from here.
///
/// ```
/// use fence_core::{AcquireOptions, Store};
///
/// let store = Store::in_memory()?;
/// store.acquire("job", &AcquireOptions::default())?;
/// for hold in store.holds()? {
///     let hold = hold?;
///     println!("{}: {} for {} ms more", hold.key, hold.kind.as_str(), hold.remaining_ms);
/// }
/// # Ok::<(), fence_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The key that is held.
    pub key: String,
    /// By what it is held.
    pub kind: HoldKind,
    /// The lease's fence; of a key in delay, that of the lease that ended. A permit has none.
    pub fence: Option<Fence>,
    /// The permit's id.
    pub permit: Option<PermitId>,
    /// For how many milliseconds more.
    pub remaining_ms: i64,
    /// For how many milliseconds the key stays closed if the lease ends without release.
    pub delay_ms: i64,
    /// The id of the process that asked for it, as that process saw it.
    pub process: i64,
    /// Whether it ends with that process.
    pub bound: bool,
}

/// By what a key is held.
///
/// ```
/// use fence_core::HoldKind;
///
/// assert_eq!(HoldKind::Lease.as_str(), "lease");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldKind {
    /// A live lease.
    Lease,
    /// A live permit of a semaphore.
    Permit,
    /// Nobody: a lease ended without release, and its lock delay runs.
    Delay,
}

impl HoldKind {
    /// The word for it in SQL.
    ///
    /// ```
    /// assert_eq!(fence_core::HoldKind::Delay.as_str(), "delay");
    /// ```
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lease => "lease",
            Self::Permit => "permit",
            Self::Delay => "delay",
        }
    }
}
