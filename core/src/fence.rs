//! The fence: a 128-bit number larger than every one that its store gave before.
//!
//! Its high 64 bits are the store's [`Epoch`], its low 64 the [`Count`] of leases. Fences are compared as numbers, and
//! one number has four spellings, all of which are read:
//!
//! | spelling | looks like | printed by | read by |
//! |---|---|---|---|
//! | padded | `0000000033132838977483490749893836800001` | [`Fence::padded`] | [`Fence::from_text`] |
//! | wire | `33132838977483490749893836800001` | [`Fence::wire`], `Display` | [`Fence::from_text`], `FromStr` |
//! | INTEGER | `7` (a fence below 2^63) | | `TryFrom<i64>` |
//! | blob | 16 bytes, big-endian | [`Fence::to_be_bytes`] | [`Fence::from_blob`], [`Fence::from_be_bytes`] |
//!
//! Text is 1 to 40 decimal digits, leading zeros allowed, below 2^128, and nothing else: no sign, no space, no other
//! kind of digit. Whatever is no fence is a [`FenceError`] that says what is wrong with it.
//!
//! The order of padded texts is the order of their numbers, byte for byte, and so is that of blobs. That is what a
//! plain `<` in SQL compares.

mod digits;
mod error;
mod padded;

use std::fmt;
use std::str::FromStr;

pub use error::{ACCEPTED, FenceError, NotAFence};
pub use padded::{Padded, Wire};

/// The high half of a fence: the epoch in which its store was opened.
///
/// ```
/// use fence_core::{Count, Epoch, Fence};
///
/// let fence = Fence::new(Epoch::new(1_796_140_800_000), Count::new(7));
/// assert_eq!(fence.epoch(), Epoch::new(1_796_140_800_000));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(u64);

/// The low half of a fence: how many leases its store had given, this one included.
///
/// ```
/// use fence_core::{Count, Epoch, Fence};
///
/// let fence = Fence::new(Epoch::new(1_796_140_800_000), Count::new(7));
/// assert_eq!(fence.count(), Count::new(7));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Count(u64);

/// A 128-bit number, larger than every fence that its store gave before.
///
/// ```
/// use fence_core::Fence;
///
/// let seen: Fence = "0000000033132838977483490749893836800002".parse()?;
/// let late: Fence = "33132838977483490749893836800001".parse()?;
/// assert!(late < seen, "the late one is stale");
/// # Ok::<(), fence_core::FenceError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence(u128);

impl Epoch {
    /// The epoch with this number.
    ///
    /// ```
    /// assert!(fence_core::Epoch::new(1) < fence_core::Epoch::new(2));
    /// ```
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    ///
    /// ```
    /// assert_eq!(fence_core::Epoch::new(5).get(), 5);
    /// ```
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Count {
    /// The count with this number.
    ///
    /// ```
    /// assert!(fence_core::Count::new(1) < fence_core::Count::new(2));
    /// ```
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    ///
    /// ```
    /// assert_eq!(fence_core::Count::new(5).get(), 5);
    /// ```
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl Fence {
    /// The fence of these two halves.
    ///
    /// ```
    /// use fence_core::{Count, Epoch, Fence};
    ///
    /// assert_eq!(Fence::new(Epoch::new(1), Count::new(2)).get(), (1 << 64) + 2);
    /// ```
    pub const fn new(epoch: Epoch, count: Count) -> Self {
        Self(((epoch.0 as u128) << 64) | count.0 as u128)
    }

    /// The number.
    ///
    /// ```
    /// let fence: fence_core::Fence = "0042".parse()?;
    /// assert_eq!(fence.get(), 42);
    /// # Ok::<(), fence_core::FenceError>(())
    /// ```
    pub const fn get(self) -> u128 {
        self.0
    }

    /// The high half.
    ///
    /// ```
    /// assert_eq!(fence_core::Fence::from(42).epoch().get(), 0);
    /// ```
    pub const fn epoch(self) -> Epoch {
        Epoch((self.0 >> 64) as u64)
    }

    /// The low half.
    ///
    /// ```
    /// assert_eq!(fence_core::Fence::from(42).count().get(), 42);
    /// ```
    pub const fn count(self) -> Count {
        Count(self.0 as u64)
    }

    /// Reads a fence spelled as text, padded or wire. Takes bytes, for text from outside may be no UTF-8.
    ///
    /// ```
    /// use fence_core::Fence;
    ///
    /// assert_eq!(Fence::from_text(b"10")?, Fence::from_text(b"0010")?);
    /// assert!(Fence::from_text(b"+10").is_err());
    /// # Ok::<(), fence_core::FenceError>(())
    /// ```
    pub fn from_text(text: &[u8]) -> Result<Self, FenceError> {
        match digits::right_aligned(text).and_then(Padded::checked) {
            Some(padded) => Ok(padded.fence()),
            None => Err(FenceError::text(text)),
        }
    }

    /// Reads a fence from a blob: 16 bytes, big-endian. For bytes whose number is known, [`Fence::from_be_bytes`].
    ///
    /// ```
    /// use fence_core::Fence;
    ///
    /// assert_eq!(Fence::from_blob(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0])?, Fence::from(256));
    /// assert!(Fence::from_blob(&[]).is_err());
    /// # Ok::<(), fence_core::FenceError>(())
    /// ```
    pub fn from_blob(blob: &[u8]) -> Result<Self, FenceError> {
        match blob.try_into() {
            Ok(bytes) => Ok(Self::from_be_bytes(bytes)),
            Err(_) => Err(FenceError::blob(blob)),
        }
    }

    /// The fence of these 16 bytes, big-endian.
    ///
    /// ```
    /// use fence_core::Fence;
    ///
    /// assert_eq!(Fence::from_be_bytes(Fence::from(7).to_be_bytes()), Fence::from(7));
    /// ```
    pub const fn from_be_bytes(bytes: [u8; 16]) -> Self {
        Self(u128::from_be_bytes(bytes))
    }

    /// The 16 bytes, big-endian: the compact spelling that also sorts.
    ///
    /// ```
    /// use fence_core::Fence;
    ///
    /// assert!(Fence::from(255).to_be_bytes() < Fence::from(256).to_be_bytes());
    /// ```
    pub const fn to_be_bytes(self) -> [u8; 16] {
        self.0.to_be_bytes()
    }

    /// The 40 zero-padded digits, so that text order is number order. On the stack; it is a `&str` wherever one is due.
    ///
    /// ```
    /// use fence_core::Fence;
    ///
    /// assert_eq!(&*Fence::from(7).padded(), "0000000000000000000000000000000000000007");
    /// ```
    pub fn padded(self) -> Padded {
        Padded::new(self)
    }

    /// The plain decimal digits. On the stack; it is a `&str` wherever one is due.
    ///
    /// ```
    /// use fence_core::Fence;
    ///
    /// assert_eq!(&*Fence::from(7).wire(), "7");
    /// ```
    pub fn wire(self) -> Wire {
        self.padded().wire()
    }
}

/// Prints the wire spelling.
impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad_integral(true, "", &self.wire())
    }
}

/// Reads both spellings as text.
impl FromStr for Fence {
    type Err = FenceError;

    fn from_str(text: &str) -> Result<Self, FenceError> {
        Self::from_text(text.as_bytes())
    }
}

/// Reads the INTEGER spelling. A negative number is no fence.
impl TryFrom<i64> for Fence {
    type Error = FenceError;

    fn try_from(integer: i64) -> Result<Self, FenceError> {
        match u64::try_from(integer) {
            Ok(number) => Ok(Self(number.into())),
            Err(_) => Err(FenceError::negative(integer)),
        }
    }
}

impl From<u128> for Fence {
    fn from(number: u128) -> Self {
        Self(number)
    }
}

impl From<Fence> for u128 {
    fn from(fence: Fence) -> Self {
        fence.0
    }
}

#[cfg(test)]
mod tests;
