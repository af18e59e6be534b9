//! What goes back to SQL: an answer or an error.

use std::ffi::c_int;

use fence_core::{FenceError, Padded, Wire};
use rusqlite::ffi;

/// The answer of a function.
pub(crate) enum Answer {
    Null,
    Int(i64),
    /// Text that was put together for this answer.
    Text(String),
    /// Text that stands in the library.
    Static(&'static str),
    /// A fence as 40 digits.
    Padded(Padded),
    /// A fence as plain digits.
    Wire(Wire),
    /// A fence as 16 bytes.
    Blob([u8; 16]),
}

/// An error of a function: the message as people read it, and SQLite's result code as programs do.
#[derive(Debug)]
pub(crate) struct SqlError {
    pub(crate) code: c_int,
    pub(crate) message: String,
}

impl SqlError {
    /// An error with a result code that says something of its own, such as SQLITE_BUSY.
    pub(crate) fn new(code: c_int, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
        }
    }

    /// An error with the general code, SQLITE_ERROR.
    pub(crate) fn error(message: impl Into<String>) -> Self {
        Self::new(ffi::SQLITE_ERROR, message)
    }

    /// A write that is refused: SQLITE_CONSTRAINT.
    pub(crate) fn constraint(message: impl Into<String>) -> Self {
        Self::new(ffi::SQLITE_CONSTRAINT, message)
    }

    /// SQLite had no memory to hand a value over.
    pub(crate) fn no_memory() -> Self {
        Self::new(ffi::SQLITE_NOMEM, "fence: out of memory: free some and try again")
    }
}

/// Trouble with the store, with SQLite's own code.
impl From<fence_core::Error> for SqlError {
    fn from(error: fence_core::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// What a guard refuses, and SQLite's errors on the caller's own database, with their codes.
impl From<fence_guard::Error> for SqlError {
    fn from(error: fence_guard::Error) -> Self {
        Self::new(error.code(), error.to_string())
    }
}

/// A fence that is none, where no argument is to be named.
impl From<FenceError> for SqlError {
    fn from(error: FenceError) -> Self {
        Self::error(error.to_string())
    }
}

/// For the callbacks of virtual tables, which rusqlite calls: it keeps both the message and the code of this variant.
impl From<SqlError> for rusqlite::Error {
    fn from(error: SqlError) -> Self {
        Self::SqliteFailure(ffi::Error::new(error.code), Some(error.message))
    }
}

/// Gives SQLite the result of a call. Text and blobs are copied by SQLite before this returns, so a fence on the stack
/// costs no allocation here.
///
/// # Safety
///
/// `context` is that of the call that is being answered.
#[inline]
pub(crate) unsafe fn give(context: *mut ffi::sqlite3_context, result: Result<Answer, SqlError>) {
    // SAFETY: each is the caller's promise, and every slice outlives the call.
    unsafe {
        match result {
            Ok(Answer::Null) => ffi::sqlite3_result_null(context),
            Ok(Answer::Int(number)) => ffi::sqlite3_result_int64(context, number),
            Ok(Answer::Text(text)) => give_text(context, text.as_bytes()),
            Ok(Answer::Static(text)) => give_text(context, text.as_bytes()),
            Ok(Answer::Padded(padded)) => give_text(context, padded.as_bytes()),
            Ok(Answer::Wire(wire)) => give_text(context, wire.as_bytes()),
            Ok(Answer::Blob(bytes)) => ffi::sqlite3_result_blob64(
                context,
                bytes.as_ptr().cast(),
                bytes.len() as u64,
                ffi::SQLITE_TRANSIENT(),
            ),
            Err(error) => give_error(context, &error),
        }
    }
}

/// # Safety
///
/// As for [`give`].
#[inline]
unsafe fn give_text(context: *mut ffi::sqlite3_context, text: &[u8]) {
    // SAFETY: the caller's promise; SQLite copies the text, and answers 'too big' itself if it is.
    unsafe {
        ffi::sqlite3_result_text64(
            context,
            text.as_ptr().cast(),
            text.len() as u64,
            ffi::SQLITE_TRANSIENT(),
            ffi::SQLITE_UTF8 as u8,
        );
    }
}

/// The message first, the code last: to set a message sets the code to SQLITE_ERROR as well. rusqlite's own functions
/// do it the other way round and lose the code, which is why none of ours is registered through them.
///
/// # Safety
///
/// As for [`give`].
#[cold]
unsafe fn give_error(context: *mut ffi::sqlite3_context, error: &SqlError) {
    let length = c_int::try_from(error.message.len()).unwrap_or(c_int::MAX);
    // SAFETY: the caller's promise; SQLite copies the message.
    unsafe {
        ffi::sqlite3_result_error(context, error.message.as_ptr().cast(), length);
        ffi::sqlite3_result_error_code(context, error.code);
    }
}
