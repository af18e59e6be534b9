//! What is no fence, and what is wrong with it.

use std::fmt;

use super::Padded;
use crate::shown;

/// What counts as a fence, as the last part of every message about what does not.
///
/// ```
/// let error = fence_core::Fence::from_text(b"abc").unwrap_err();
/// assert!(error.to_string().ends_with(fence_core::fence::ACCEPTED));
/// ```
pub const ACCEPTED: &str =
    "give 1 to 40 decimal digits below 2^128 as TEXT, an INTEGER from 0 up, or a BLOB of 16 bytes";

/// Something was given as a fence and is none. Never taken for a fence that is merely stale.
///
/// ```
/// use fence_core::{Fence, FenceError, NotAFence};
///
/// let error = "+10".parse::<Fence>().unwrap_err();
/// assert_eq!(error.kind(), NotAFence::Sign { found: '+', at: 1 });
/// assert_eq!(error.value(), "'+10'");
/// assert_eq!(
///     error.to_string(),
///     "fence: not a fence: '+10' has a sign, '+', at character 1: \
///      give 1 to 40 decimal digits below 2^128 as TEXT, an INTEGER from 0 up, or a BLOB of 16 bytes"
/// );
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("fence: not a fence: {value} {kind}: {}", kind.remedy())]
pub struct FenceError {
    value: String,
    kind: NotAFence,
}

/// Why a value is no fence. Its `Display` goes on where the value ends: `'+10'` *has a sign, '+', at character 1*.
///
/// Characters are counted from 1.
///
/// ```
/// use fence_core::{Fence, NotAFence};
///
/// let error = Fence::from_text(b"12 ").unwrap_err();
/// assert_eq!(error.kind(), NotAFence::Space { at: 3 });
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotAFence {
    /// Text without a character. Where no fence is allowed, the caller looks for '' before it asks for one.
    Empty,
    /// A plus or a minus. Fences have no sign.
    Sign {
        /// The sign.
        found: char,
        /// Which character it is.
        at: usize,
    },
    /// White space, of any kind.
    Space {
        /// Which character it is.
        at: usize,
    },
    /// Any other character that is not one of `0123456789`: a letter, a full-width digit, a point, a NUL.
    Character {
        /// The character; U+FFFD where the text is no UTF-8.
        found: char,
        /// Which character it is.
        at: usize,
    },
    /// More than 40 digits, be they zeros.
    TooManyDigits {
        /// How many there are.
        digits: usize,
    },
    /// 2^128 or above.
    OutOfRange,
    /// An INTEGER below 0.
    Negative,
    /// A BLOB of other than 16 bytes.
    BlobLength {
        /// How many there are.
        bytes: usize,
    },
    /// A REAL: whatever fence it was, its last digits are gone, and two different fences may look the same.
    Real,
}

impl FenceError {
    /// What is wrong.
    ///
    /// ```
    /// use fence_core::{Fence, NotAFence};
    ///
    /// assert_eq!(Fence::try_from(-1_i64).unwrap_err().kind(), NotAFence::Negative);
    /// ```
    pub fn kind(&self) -> NotAFence {
        self.kind
    }

    /// The value, shortened: text in quotes, as SQL writes it.
    ///
    /// ```
    /// use fence_core::Fence;
    ///
    /// let text = "x".repeat(1_000_000);
    /// assert_eq!(
    ///     text.parse::<Fence>().unwrap_err().value(),
    ///     "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…' (1000000 bytes)"
    /// );
    /// ```
    pub fn value(&self) -> &str {
        &self.value
    }

    /// The error for a REAL, which never is a fence. Hosts that have such a type ask for it here.
    ///
    /// ```
    /// use fence_core::{FenceError, NotAFence};
    ///
    /// assert_eq!(FenceError::real(3.31328389774835e31).kind(), NotAFence::Real);
    /// ```
    pub fn real(number: f64) -> Self {
        Self {
            value: shown::real(number),
            kind: NotAFence::Real,
        }
    }

    pub(super) fn negative(integer: i64) -> Self {
        Self {
            value: integer.to_string(),
            kind: NotAFence::Negative,
        }
    }

    pub(super) fn blob(blob: &[u8]) -> Self {
        Self {
            value: shown::blob(blob),
            kind: NotAFence::BlobLength { bytes: blob.len() },
        }
    }

    /// The error for a text that was found to be no fence.
    #[cold]
    pub(super) fn text(text: &[u8]) -> Self {
        Self {
            value: shown::text(text),
            kind: NotAFence::in_text(text),
        }
    }
}

impl NotAFence {
    fn in_text(text: &[u8]) -> Self {
        let Some(digits) = text.iter().position(|byte| !byte.is_ascii_digit()) else {
            return match text.len() {
                0 => Self::Empty,
                1..=Padded::LEN => Self::OutOfRange,
                digits => Self::TooManyDigits { digits },
            };
        };
        // What comes before is digits, one byte each.
        let at = digits + 1;
        match shown::first_char(text.get(digits..).unwrap_or_default()) {
            found @ ('+' | '-') => Self::Sign { found, at },
            found if found.is_whitespace() => Self::Space { at },
            found => Self::Character { found, at },
        }
    }

    /// What to do about it, as the last part of a message.
    ///
    /// ```
    /// use fence_core::NotAFence;
    ///
    /// assert!(NotAFence::Real.remedy().contains("TEXT"));
    /// ```
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::Real => "declare the column that it comes from as TEXT, and bind the fence as text",
            _ => ACCEPTED,
        }
    }
}

impl fmt::Display for NotAFence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("is empty"),
            Self::Sign { found, at } => write!(f, "has a sign, '{found}', at character {at}"),
            Self::Space { at } => write!(f, "has a space at character {at}"),
            Self::Character { found, at } => {
                write!(f, "has '{}', no digit, at character {at}", shown::escaped(*found))
            }
            Self::TooManyDigits { digits } => write!(f, "has {digits} digits"),
            Self::OutOfRange => f.write_str("is 2^128 or above"),
            Self::Negative => f.write_str("is below 0"),
            Self::BlobLength { bytes: 1 } => f.write_str("is a BLOB of 1 byte"),
            Self::BlobLength { bytes } => write!(f, "is a BLOB of {bytes} bytes"),
            Self::Real => f.write_str("is a REAL and has already lost digits"),
        }
    }
}
