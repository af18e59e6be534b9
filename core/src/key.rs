//! Keys: the names that leases and permits are taken under.
//!
//! A key is 1 to 1,024 bytes of UTF-8 text without NUL and is compared byte by byte: `'a'`, `'A'` and `'a '` are three
//! keys. The empty text is no key, so that a name that was forgotten never becomes a lock that everybody shares.

use crate::error::Error;
use crate::shown;

/// A key that keeps the rules above.
///
/// ```
/// use fence_core::Key;
///
/// assert_eq!(Key::new("chat:42")?.as_str(), "chat:42");
/// assert!(Key::new("").is_err());
/// assert!(Key::new("job\0A").is_err());
/// assert!(Key::new(&"k".repeat(1025)).is_err());
/// # Ok::<(), fence_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key<'a>(&'a str);

impl<'a> Key<'a> {
    /// The longest key, in bytes.
    pub const MAX_BYTES: usize = 1024;

    /// Takes a text as a key.
    ///
    /// # Errors
    ///
    /// [`Error::Key`] when it is empty, longer than [`Key::MAX_BYTES`] or holds a NUL.
    ///
    /// ```
    /// use fence_core::Key;
    ///
    /// assert!(Key::new("chat:42").is_ok());
    /// assert!(Key::new("").is_err());
    /// ```
    pub fn new(text: &'a str) -> Result<Self, Error> {
        Self::from_bytes(text.as_bytes())
    }

    /// Takes bytes as a key; besides the rules of [`Key::new`] they must be UTF-8.
    ///
    /// # Errors
    ///
    /// [`Error::Key`], as of [`Key::new`], and when the bytes are no UTF-8.
    ///
    /// ```
    /// use fence_core::Key;
    ///
    /// assert_eq!(Key::from_bytes(b"chat:42")?, Key::new("chat:42")?);
    /// assert!(Key::from_bytes(b"j\xff").is_err());
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn from_bytes(bytes: &'a [u8]) -> Result<Self, Error> {
        let refuse = |reason| Error::Key {
            value: shown::text(bytes),
            reason,
        };
        if bytes.is_empty() {
            return Err(refuse("it is empty"));
        }
        if bytes.len() > Self::MAX_BYTES {
            return Err(refuse("it is longer than 1,024 bytes"));
        }
        if bytes.contains(&0) {
            return Err(refuse("it holds a NUL"));
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self(text)),
            Err(_) => Err(refuse("it is no UTF-8")),
        }
    }

    /// The key's text.
    ///
    /// ```
    /// # use fence_core::Key;
    /// assert_eq!(Key::new("chat:42")?.as_str(), "chat:42");
    /// # Ok::<(), fence_core::Error>(())
    /// ```
    pub fn as_str(self) -> &'a str {
        self.0
    }
}
