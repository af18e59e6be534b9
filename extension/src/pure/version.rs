//! `fence_version()`: the version of this library, so that a program can check that it is there.

use crate::answer::{Answer, SqlError};
use crate::value::Args;

/// The version of this library.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// `fence_version()`
pub(crate) fn version(_: &Args<'_>) -> Result<Answer, SqlError> {
    Ok(Answer::Static(VERSION))
}
