//! The two halves of a fence, and back.
//!
//! | function | gives |
//! |---|---|
//! | `fence_epoch(fence)` | the high 64 bits: the epoch in which the store was opened |
//! | `fence_count(fence)` | the low 64 bits: how many leases the store had given |
//! | `fence_make(epoch, count)` | the fence of these two, as plain decimal digits |
//!
//! A half is an INTEGER up to 2^63 - 1, and above, where SQLite's integers end, TEXT of decimal digits. `fence_make`
//! takes both. NULL and '' give NULL: where there is no fence there are no halves; and half a fence is none.

use fence_core::{Count, Epoch, Fence};

use crate::answer::{Answer, SqlError};
use crate::value::Args;

/// `fence_epoch(fence)`
pub(crate) fn epoch(args: &Args<'_>) -> Result<Answer, SqlError> {
    Ok(args
        .fence(0, "fence")?
        .fence()
        .map_or(Answer::Null, |fence| half(fence.epoch().get())))
}

/// `fence_count(fence)`
pub(crate) fn count(args: &Args<'_>) -> Result<Answer, SqlError> {
    Ok(args
        .fence(0, "fence")?
        .fence()
        .map_or(Answer::Null, |fence| half(fence.count().get())))
}

/// `fence_make(epoch, count)`
pub(crate) fn make(args: &Args<'_>) -> Result<Answer, SqlError> {
    let (epoch, count) = (args.half(0, "epoch")?, args.half(1, "count")?);
    Ok(match (epoch, count) {
        (Some(epoch), Some(count)) => Answer::Wire(Fence::new(Epoch::new(epoch), Count::new(count)).wire()),
        _ => Answer::Null,
    })
}

fn half(number: u64) -> Answer {
    match i64::try_from(number) {
        Ok(integer) => Answer::Int(integer),
        Err(_) => Answer::Wire(Fence::from(u128::from(number)).wire()),
    }
}
