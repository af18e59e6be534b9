//! What a key may be.

/// What counts as a key, as the last part of a message about what does not.
pub(super) const ACCEPTED: &str = "give TEXT of 1 to 1024 bytes without NUL, or an INTEGER";

/// The longest key, in bytes.
const LONGEST: usize = 1024;

/// The key that this text is, if it may be one. Keys are compared byte by byte, so nothing may cut or mend them: a NUL
/// or what is no UTF-8 would make two keys one.
pub(super) fn of_text(text: &[u8]) -> Option<&str> {
    let fits = (1..=LONGEST).contains(&text.len()) && !text.contains(&0);
    std::str::from_utf8(text).ok().filter(|_| fits)
}
