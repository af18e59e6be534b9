//! `fence_advance`: for a store that was restored from a backup, or whose kv.db was lost (LOCK-10).

use crate::answer::{Answer, SqlError};
use crate::connection::HostConnection;
use crate::value::Args;

/// `fence_advance(fence)`
pub(crate) fn advance(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let Some(fence) = args.fence(0, "fence")?.fence() else {
        let accepted = "give the largest fence in your data; with no fence in it there is nothing to advance past";
        return Err(args.refused("no fence", "fence", args.value(0)?, accepted));
    };
    let epoch = connection.store()?.advance(fence)?;
    // A store keeps no epoch that SQLite's integers do not hold.
    Ok(Answer::Int(i64::try_from(epoch.get()).unwrap_or(i64::MAX)))
}
