//! Two fences, compared as numbers whatever their spellings: the one that stands in the row and the one that comes.
//!
//! | function | stored lower | equal | stored higher | nothing stored | nothing comes |
//! |---|---|---|---|---|---|
//! | `fence_ok(stored, incoming)` | 1 | 1 | 0 | 1 | 0 |
//! | `fence_newer(stored, incoming)` | 1 | 0 | 0 | 1 | 0 |
//! | `fence_require(stored, incoming)` | incoming, padded | incoming, padded | error: stale | incoming, padded | error: unfenced |
//!
//! 'Nothing' is NULL or ''. No fence never passes: nothing incoming is refused even where nothing is stored.
//! The errors of `fence_require` have the code SQLITE_CONSTRAINT and stop the statement.

use std::cmp::Ordering;

use crate::answer::{Answer, SqlError};
use crate::value::{Args, Given};

/// `fence_ok(stored, incoming)`
#[inline]
pub(crate) fn ok(args: &Args<'_>) -> Result<Answer, SqlError> {
    let (stored, incoming) = read(args)?;
    Ok(Answer::Int(passes(&stored, &incoming, Ordering::is_ge).into()))
}

/// `fence_newer(stored, incoming)`
#[inline]
pub(crate) fn newer(args: &Args<'_>) -> Result<Answer, SqlError> {
    let (stored, incoming) = read(args)?;
    Ok(Answer::Int(passes(&stored, &incoming, Ordering::is_gt).into()))
}

/// `fence_require(stored, incoming)`
pub(crate) fn require(args: &Args<'_>) -> Result<Answer, SqlError> {
    let (stored, incoming) = read(args)?;
    let passes = passes(&stored, &incoming, Ordering::is_ge);
    match (stored.fence(), incoming.fence()) {
        (_, Some(fence)) if passes => Ok(Answer::Padded(fence.padded())),
        (Some(stored), Some(incoming)) => Err(SqlError::constraint(format!(
            "fence: stale: fence_require(incoming) is {incoming}, and {stored} was seen already: \
             somebody else got the key meanwhile; acquire it again and do the work anew",
        ))),
        _ => Err(SqlError::constraint(format!(
            "fence: unfenced: fence_require(incoming) is {}: pass the fence of the lease under which this is written",
            args.value(1)?,
        ))),
    }
}

#[inline]
fn read(args: &Args<'_>) -> Result<(Given, Given), SqlError> {
    Ok((args.fence(0, "stored")?, args.fence(1, "incoming")?))
}

/// Whether a fence comes that relates to the stored one as it must. With nothing stored, any will do.
#[inline]
fn passes(stored: &Given, incoming: &Given, must: fn(Ordering) -> bool) -> bool {
    match (stored, incoming) {
        // Text order is number order: no need for the numbers.
        (Given::Padded(stored), Given::Padded(incoming)) => must(incoming.cmp(stored)),
        _ => match (stored.fence(), incoming.fence()) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(stored), Some(incoming)) => must(incoming.cmp(&stored)),
        },
    }
}
