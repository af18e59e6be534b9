//! Values as messages show them: as SQL writes them, on one line, and short whatever was given.

use std::fmt::Write;

/// How many characters of a text are shown. Enough for a fence with a digit too many, and for most keys.
const CHARACTERS: usize = 48;
/// How many bytes of a blob are shown: those of a fence, and some.
const BYTES: usize = 20;

/// A text in quotes. What is no UTF-8 becomes U+FFFD, what does not print is escaped, and of a long text the start is
/// shown and its length told. The work done does not grow with the length.
///
/// ```
/// use fence_core::shown;
///
/// assert_eq!(shown::text(b"it's"), "'it''s'");
/// assert_eq!(shown::text(b"a\0b\xff"), r"'a\u{0}b\u{fffd}'");
/// assert_eq!(shown::text(&[b'7'; 100]), format!("'{}…' (100 bytes)", "7".repeat(48)));
/// ```
pub fn text(text: &[u8]) -> String {
    // A character has at most 4 bytes; one more tells whether anything is left.
    let head = text.get(..4 * (CHARACTERS + 1)).unwrap_or(text);
    let head = String::from_utf8_lossy(head);
    let mut shown = String::from("'");
    for character in head.chars().take(CHARACTERS) {
        match character {
            '\'' => shown.push_str("''"),
            other => shown.push_str(&escaped(other)),
        }
    }
    if head.chars().count() > CHARACTERS {
        // Writing to a String cannot fail.
        let _ = write!(shown, "…' ({} bytes)", text.len());
    } else {
        shown.push('\'');
    }
    shown
}

/// A blob as hexadecimal digits, of a long one the start and its length.
///
/// ```
/// use fence_core::shown;
///
/// assert_eq!(shown::blob(b"job"), "x'6a6f62'");
/// assert_eq!(shown::blob(b""), "x''");
/// assert_eq!(shown::blob(&[0; 100]), format!("x'{}…' (100 bytes)", "00".repeat(20)));
/// ```
pub fn blob(blob: &[u8]) -> String {
    let mut shown = String::from("x'");
    for byte in blob.iter().take(BYTES) {
        // Writing to a String cannot fail.
        let _ = write!(shown, "{byte:02x}");
    }
    if blob.len() > BYTES {
        let _ = write!(shown, "…' ({} bytes)", blob.len());
    } else {
        shown.push('\'');
    }
    shown
}

/// A REAL, with a point or an exponent, so that it is not taken for an INTEGER.
///
/// ```
/// use fence_core::shown;
///
/// assert_eq!(shown::real(1.0), "1.0");
/// assert_eq!(shown::real(3.31328389774835e31), "3.31328389774835e31");
/// ```
pub fn real(number: f64) -> String {
    format!("{number:?}")
}

/// A character, escaped if it does not print or would not be told from others.
pub(crate) fn escaped(character: char) -> String {
    if character.is_control() || character == char::REPLACEMENT_CHARACTER {
        character.escape_unicode().to_string()
    } else {
        character.to_string()
    }
}

/// The first character; U+FFFD if it is no UTF-8 or there is none.
pub(crate) fn first_char(text: &[u8]) -> char {
    let head = text.get(..4).unwrap_or(text);
    String::from_utf8_lossy(head)
        .chars()
        .next()
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}
