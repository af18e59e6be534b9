//! The only reader of what SQL passes in.
//!
//! A value is read as the type that it has and never converted: SQLite converts in place, and would move the text that
//! was read before. So every slice that is read here is good for as long as the call runs.
//!
//! - TEXT is bytes and their number: a NUL ends nothing, and it need not be UTF-8. From a UTF-16 database it arrives as
//!   UTF-8.
//! - An empty BLOB has a null pointer in SQLite; here it is an empty slice.
//! - A value that no memory was left for is an error, never an empty one.
//!
//! On top of that stand the readers that functions share, one for each kind of argument. Whatever they refuse becomes an
//! error that names the function, the argument, the value, shortened, and what is accepted.

use std::ffi::c_int;
use std::fmt;
use std::ops::RangeInclusive;
use std::slice;

use fence_core::{Fence, FenceError, Key, Padded, shown};
use rusqlite::ffi;
use rusqlite::types::ValueRef;

use crate::answer::SqlError;

/// What counts as a key, as the last part of a message about what does not.
const KEYS: &str = "give TEXT of 1 to 1024 bytes of UTF-8 without NUL, or an INTEGER";

/// The arguments of one call.
pub(crate) struct Args<'a> {
    function: &'static str,
    values: Values<'a>,
}

/// Where the arguments are.
enum Values<'a> {
    /// With SQLite, which calls a function.
    Passed(&'a [*mut ffi::sqlite3_value]),
    /// Read already, from what SQLite passed to a table.
    Read(&'a [Value<'a>]),
}

/// A value as SQL passed it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Integer(i64),
    Real(f64),
    Text(&'a [u8]),
    Blob(&'a [u8]),
}

/// A fence as it was given. Padded text stays text, since it compares without becoming a number.
pub(crate) enum Given {
    /// NULL: no fence.
    Null,
    /// '': no fence.
    Empty,
    Padded(Padded),
    Number(Fence),
}

impl<'a> Args<'a> {
    /// The arguments that SQLite passes to the function of this name.
    #[inline]
    pub(crate) fn new(function: &'static str, values: &'a [*mut ffi::sqlite3_value]) -> Self {
        Self {
            function,
            values: Values::Passed(values),
        }
    }

    /// The arguments of a table that stands for the function of this name.
    pub(crate) fn read(function: &'static str, values: &'a [Value<'a>]) -> Self {
        Self {
            function,
            values: Values::Read(values),
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        match self.values {
            Values::Passed(values) => values.len(),
            Values::Read(values) => values.len(),
        }
    }

    /// One of them, as it is. One that was left out is NULL.
    #[inline]
    pub(crate) fn value(&self, index: usize) -> Result<Value<'a>, SqlError> {
        match self.values {
            Values::Passed(values) => match values.get(index) {
                // SAFETY: SQLite passed it to the call that `self` belongs to, and keeps it until the call returns.
                Some(value) => unsafe { Value::read(*value) },
                None => Ok(Value::Null),
            },
            Values::Read(values) => Ok(values.get(index).copied().unwrap_or(Value::Null)),
        }
    }

    /// A fence, in any spelling.
    #[inline]
    pub(crate) fn fence(&self, index: usize, name: &str) -> Result<Given, SqlError> {
        let value = self.value(index)?;
        if let Value::Text(text) = value
            && let Some(padded) = Padded::from_bytes(text)
        {
            return Ok(Given::Padded(padded));
        }
        value.fence().map_err(|error| self.not_a_fence(name, &error))
    }

    /// Half a fence: an INTEGER from 0 or TEXT of digits below 2^64; None for NULL.
    pub(crate) fn half(&self, index: usize, name: &str) -> Result<Option<u64>, SqlError> {
        let value = self.value(index)?;
        let number = match value {
            Value::Null => return Ok(None),
            Value::Integer(number) => u64::try_from(number).ok(),
            Value::Text(text) => Fence::from_text(text)
                .ok()
                .and_then(|number| u64::try_from(number.get()).ok()),
            Value::Real(_) | Value::Blob(_) => None,
        };
        let accepted = "give an INTEGER from 0 up, or TEXT of digits up to 18446744073709551615";
        number
            .map(Some)
            .ok_or_else(|| self.refused("not a 64-bit number", name, value, accepted))
    }

    /// An INTEGER within limits. Nothing else counts: not the text of a number, nor a REAL, nor NULL.
    pub(crate) fn integer(&self, index: usize, name: &str, limits: RangeInclusive<i64>) -> Result<i64, SqlError> {
        let value = self.value(index)?;
        let happened = match value {
            Value::Integer(number) if limits.contains(&number) => return Ok(number),
            Value::Integer(_) => "out of range",
            _ => "not an INTEGER",
        };
        let accepted = format!("give an INTEGER from {} to {}", limits.start(), limits.end());
        Err(self.refused(happened, name, value, &accepted))
    }

    /// A key: TEXT as it is, an INTEGER as its decimal text.
    pub(crate) fn key(&self, index: usize, name: &str) -> Result<String, SqlError> {
        let value = self.value(index)?;
        let key = match value {
            Value::Integer(number) => Some(number.to_string()),
            Value::Text(text) => Key::from_bytes(text).ok().map(|key| key.as_str().to_owned()),
            Value::Null | Value::Real(_) | Value::Blob(_) => None,
        };
        key.ok_or_else(|| self.refused("not a key", name, value, KEYS))
    }

    /// A name or another word: TEXT that is UTF-8, not empty and without NUL.
    pub(crate) fn text(&self, index: usize, name: &str, accepted: &str) -> Result<&'a str, SqlError> {
        match self.value(index)? {
            Value::Text(text) if !text.is_empty() && !text.contains(&0) => std::str::from_utf8(text).ok(),
            _ => None,
        }
        .ok_or_else(|| match self.value(index) {
            Ok(value) => self.refused("no name", name, value, accepted),
            Err(error) => error,
        })
    }

    /// The error for an argument: what happened, to which value, and what is accepted instead.
    #[cold]
    pub(crate) fn refused(&self, happened: &str, name: &str, value: Value<'_>, accepted: &str) -> SqlError {
        SqlError::error(format!(
            "fence: {happened}: {}({name}) is {value}: {accepted}",
            self.function
        ))
    }

    #[cold]
    fn not_a_fence(&self, name: &str, error: &FenceError) -> SqlError {
        let (function, value, kind) = (self.function, error.value(), error.kind());
        SqlError::error(format!(
            "fence: not a fence: {function}({name}) is {value}, which {kind}: {}",
            kind.remedy()
        ))
    }
}

impl<'a> Value<'a> {
    /// # Safety
    ///
    /// SQLite keeps the value for as long as `'a`, and nobody converts it meanwhile.
    #[inline]
    unsafe fn read(value: *mut ffi::sqlite3_value) -> Result<Self, SqlError> {
        // SAFETY: the caller's promise, for all of these. Each reads the type that the value has, so none converts; and
        // the bytes are counted after the text or blob was asked for, which is when their number is known.
        unsafe {
            match ffi::sqlite3_value_type(value) {
                ffi::SQLITE_INTEGER => Ok(Self::Integer(ffi::sqlite3_value_int64(value))),
                ffi::SQLITE_FLOAT => Ok(Self::Real(ffi::sqlite3_value_double(value))),
                ffi::SQLITE_TEXT => {
                    let start = ffi::sqlite3_value_text(value);
                    bytes(start, ffi::sqlite3_value_bytes(value)).map(Self::Text)
                }
                ffi::SQLITE_BLOB => {
                    let start = ffi::sqlite3_value_blob(value);
                    bytes(start.cast(), ffi::sqlite3_value_bytes(value)).map(Self::Blob)
                }
                _ => Ok(Self::Null),
            }
        }
    }
}

/// The bytes that SQLite points at.
///
/// # Safety
///
/// There are as many as it says, and they live for `'a`.
#[inline]
unsafe fn bytes<'a>(start: *const u8, count: c_int) -> Result<&'a [u8], SqlError> {
    match usize::try_from(count) {
        Ok(count @ 1..) if !start.is_null() => {
            // SAFETY: the caller's promise.
            Ok(unsafe { slice::from_raw_parts(start, count) })
        }
        Ok(1..) => Err(SqlError::no_memory()),
        _ => Ok(&[]),
    }
}

impl Value<'_> {
    fn fence(self) -> Result<Given, FenceError> {
        match self {
            Self::Null => Ok(Given::Null),
            Self::Text(b"") => Ok(Given::Empty),
            Self::Text(text) => Fence::from_text(text).map(Given::Number),
            Self::Integer(integer) => Fence::try_from(integer).map(Given::Number),
            Self::Blob(blob) => Fence::from_blob(blob).map(Given::Number),
            Self::Real(number) => Err(FenceError::real(number)),
        }
    }
}

/// What rusqlite has read for a table; the types are the same.
impl<'a> From<ValueRef<'a>> for Value<'a> {
    fn from(value: ValueRef<'a>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(text) => Self::Text(text),
            ValueRef::Blob(blob) => Self::Blob(blob),
        }
    }
}

/// As messages show it: as SQL writes it, and short.
impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("NULL"),
            Self::Integer(number) => write!(f, "{number}"),
            Self::Real(number) => f.write_str(&shown::real(*number)),
            Self::Text(text) => f.write_str(&shown::text(text)),
            Self::Blob(blob) => f.write_str(&shown::blob(blob)),
        }
    }
}

impl Given {
    /// The fence, if there is one.
    #[inline]
    pub(crate) fn fence(&self) -> Option<Fence> {
        match self {
            Self::Null | Self::Empty => None,
            Self::Padded(padded) => Some(padded.fence()),
            Self::Number(fence) => Some(*fence),
        }
    }
}
