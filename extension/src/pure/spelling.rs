//! One fence in another spelling.
//!
//! | function | gives | of `7` |
//! |---|---|---|
//! | `fence_pad(fence)` | 40 zero-padded digits, whose text order is number order | `'0000000000000000000000000000000000000007'` |
//! | `fence_wire(fence)` | the plain decimal digits | `'7'` |
//! | `fence_blob(fence)` | 16 bytes, big-endian: compact, and sorts as well | `x'00000000000000000000000000000007'` |
//!
//! NULL gives NULL and '' gives '': a column without a fence stays one without, in each of its two ways to say so.

use crate::answer::{Answer, SqlError};
use crate::value::{Args, Given};

/// `fence_pad(fence)`
#[inline]
pub(crate) fn pad(args: &Args<'_>) -> Result<Answer, SqlError> {
    Ok(match args.fence(0, "fence")? {
        Given::Null => Answer::Null,
        Given::Empty => Answer::Static(""),
        Given::Padded(padded) => Answer::Padded(padded),
        Given::Number(fence) => Answer::Padded(fence.padded()),
    })
}

/// `fence_wire(fence)`
pub(crate) fn wire(args: &Args<'_>) -> Result<Answer, SqlError> {
    Ok(match args.fence(0, "fence")? {
        Given::Null => Answer::Null,
        Given::Empty => Answer::Static(""),
        Given::Padded(padded) => Answer::Wire(padded.wire()),
        Given::Number(fence) => Answer::Wire(fence.wire()),
    })
}

/// `fence_blob(fence)`
pub(crate) fn blob(args: &Args<'_>) -> Result<Answer, SqlError> {
    Ok(match args.fence(0, "fence")? {
        Given::Null => Answer::Null,
        Given::Empty => Answer::Static(""),
        Given::Padded(padded) => Answer::Blob(padded.fence().to_be_bytes()),
        Given::Number(fence) => Answer::Blob(fence.to_be_bytes()),
    })
}
