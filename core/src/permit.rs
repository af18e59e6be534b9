//! The id of a permit: text that is no number, so that no function takes it for a fence.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::shown;

/// What every id starts with.
const PREFIX: &str = "permit-";

/// A permit's id: 128 random bits, written `permit-` and 32 hexadecimal digits.
///
/// ```
/// use fence_core::PermitId;
///
/// let text = "permit-00112233445566778899aabbccddeeff";
/// assert_eq!(text.parse::<PermitId>()?.to_string(), text);
/// assert!("7".parse::<PermitId>().is_err());
/// # Ok::<(), fence_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PermitId([u8; 16]);

impl PermitId {
    /// A new id, unlike every other.
    pub(crate) fn random() -> Result<Self, Error> {
        let mut id = [0; 16];
        getrandom::fill(&mut id).map_err(|source| Error::Random { source })?;
        Ok(Self(id))
    }

    pub(crate) const fn from_bytes(id: [u8; 16]) -> Self {
        Self(id)
    }

    /// A random number.
    pub(crate) fn dice(&self) -> u64 {
        u64::from(self.0[15])
    }

    pub(crate) const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl fmt::Display for PermitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{:032x}", u128::from_be_bytes(self.0))
    }
}

impl FromStr for PermitId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        text.strip_prefix(PREFIX)
            .filter(|digits| digits.len() == 32 && digits.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f')))
            .and_then(|digits| u128::from_str_radix(digits, 16).ok())
            .map(|number| Self(number.to_be_bytes()))
            .ok_or_else(|| Error::NotAPermit {
                value: shown::text(text.as_bytes()),
            })
    }
}
