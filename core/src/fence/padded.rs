//! The two printed spellings of a fence, on the stack: 40 zero-padded digits, and the same without the zeros.

use std::fmt;
use std::ops::Deref;

use super::Fence;
use super::digits::{self, Groups};

/// A fence as 40 zero-padded decimal digits. The order of these texts is the order of their numbers.
///
/// It is made from a fence or from bytes that were checked, so it always holds 40 digits below 2^128; it compares byte
/// for byte, without becoming a number.
///
/// ```
/// use fence_core::Fence;
///
/// let padded = Fence::from(1 << 64).padded();
/// assert_eq!(&*padded, "0000000000000000000018446744073709551616");
/// assert!(padded > Fence::from(u128::from(u64::MAX)).padded());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Padded(Groups);

/// A fence as plain decimal digits.
///
/// ```
/// use fence_core::Fence;
///
/// assert_eq!(&*Fence::from(1 << 64).wire(), "18446744073709551616");
/// assert_eq!(&*Fence::from(0).wire(), "0");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Wire(Padded);

impl Padded {
    /// How many digits there are.
    ///
    /// ```
    /// assert_eq!(fence_core::Fence::from(7).padded().len(), fence_core::Padded::LEN);
    /// ```
    pub const LEN: usize = 40;

    /// 2^128 - 1, the largest fence.
    const MAX: Groups = [*b"03402823", *b"66920938", *b"46346337", *b"46074317", *b"68211455"];

    /// The padded fence that these bytes are; None if they are not 40 digits of a number below 2^128.
    ///
    /// ```
    /// use fence_core::{Fence, Padded};
    ///
    /// let padded = Padded::from_bytes(b"0000000000000000000000000000000000000007");
    /// assert_eq!(padded, Some(Fence::from(7).padded()));
    /// assert_eq!(Padded::from_bytes(b"7"), None);
    /// ```
    #[inline]
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != Self::LEN {
            return None;
        }
        Self::checked(digits::right_aligned(bytes)?)
    }

    /// The padded fence of five groups, if they are digits of a number below 2^128.
    #[inline]
    pub(super) fn checked(groups: Groups) -> Option<Self> {
        let digits = groups
            .iter()
            .fold(true, |so_far, group| so_far & digits::are_digits(*group));
        (digits && groups <= Self::MAX).then_some(Self(groups))
    }

    /// The padded text of a fence.
    #[inline]
    pub(super) fn new(fence: Fence) -> Self {
        const TEN_8: u64 = 100_000_000;
        // One division of 128 bits parts 20 digits from 20. The lower ones may not fit into 64 bits yet; but 10^8 is
        // 2^8 times 390,625, and without their lowest 8 bits they do.
        const TEN_20: u128 = 100_000_000_000_000_000_000;
        let number = fence.get();
        let (high, low) = if number < TEN_20 {
            (0, number)
        } else {
            ((number / TEN_20) as u64, number % TEN_20)
        };
        let low_12 = ((low >> 8) as u64) / 390_625;
        let low_8 = (low - u128::from(low_12) * u128::from(TEN_8)) as u64;
        // 20 digits above and 20 below; the third group takes four of each.
        let groups = [
            high / (TEN_8 * 10_000),
            high / 10_000 % TEN_8,
            high % 10_000 * 10_000 + low_12 / TEN_8,
            low_12 % TEN_8,
            low_8,
        ];
        Self(groups.map(|group| digits::write(group as u32)))
    }

    /// The fence that it spells.
    ///
    /// ```
    /// use fence_core::Fence;
    ///
    /// assert_eq!(Fence::from(u128::MAX).padded().fence(), Fence::from(u128::MAX));
    /// ```
    pub fn fence(&self) -> Fence {
        // Invariant: the text is not above MAX, so the number fits.
        Fence(self.0.iter().fold(0, |number, group| {
            number * 100_000_000 + u128::from(digits::read(*group))
        }))
    }

    /// The same without the zeros before it.
    ///
    /// ```
    /// assert_eq!(&*fence_core::Fence::from(7).padded().wire(), "7");
    /// ```
    pub fn wire(self) -> Wire {
        Wire(self)
    }

    /// The text.
    ///
    /// ```
    /// assert!(fence_core::Fence::from(7).padded().as_str().ends_with("0007"));
    /// ```
    pub fn as_str(&self) -> &str {
        as_str(self.as_bytes())
    }

    /// The bytes of the text.
    ///
    /// ```
    /// assert!(fence_core::Fence::from(7).padded().as_bytes().ends_with(b"0007"));
    /// ```
    pub fn as_bytes(&self) -> &[u8] {
        self.0.as_flattened()
    }
}

impl Wire {
    /// The text.
    ///
    /// ```
    /// assert_eq!(fence_core::Fence::from(7).wire().as_str(), "7");
    /// ```
    pub fn as_str(&self) -> &str {
        as_str(self.as_bytes())
    }

    /// The bytes of the text.
    ///
    /// ```
    /// assert_eq!(fence_core::Fence::from(7).wire().as_bytes(), b"7");
    /// ```
    pub fn as_bytes(&self) -> &[u8] {
        let field = self.0.as_bytes();
        // The last digit stays, even if it is the 0 of a fence that is 0.
        let start = field.iter().position(|digit| *digit != b'0').unwrap_or(Padded::LEN - 1);
        field.get(start..).unwrap_or(field)
    }
}

/// The text of bytes that are digits by construction.
fn as_str(digits: &[u8]) -> &str {
    debug_assert!(digits.is_ascii());
    // SAFETY: every way to make a `Padded` checks or writes ASCII digits, and ASCII is UTF-8.
    unsafe { std::str::from_utf8_unchecked(digits) }
}

impl Deref for Padded {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl Deref for Wire {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Display for Padded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Display for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self)
    }
}

impl fmt::Debug for Padded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl fmt::Debug for Wire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}
