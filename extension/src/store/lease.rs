//! Leases: `fence_acquire`, `fence_renew`, `fence_release`.

use super::options::{self, Of};
use crate::answer::{Answer, SqlError};
use crate::connection::HostConnection;
use crate::value::Args;

/// `fence_acquire(key [, ttl_ms [, wait_ms [, options]]])`
pub(crate) fn acquire(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let key = args.key(0, "key")?;
    let options = options::read(args, 1, Of::Lease)?;
    let lease = connection
        .store()?
        .acquire_unless(&key, &options, &|| connection.is_interrupted())?;
    Ok(lease.map_or(Answer::Null, |lease| Answer::Wire(lease.fence().wire())))
}

/// `fence_renew(key, fence [, ttl_ms])`
pub(crate) fn renew(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let key = args.key(0, "key")?;
    let fence = args.fence(1, "fence")?.fence();
    let ttl = options::ttl(args, 2)?;
    let Some(fence) = fence else { return Ok(Answer::Int(0)) };
    Ok(Answer::Int(connection.store()?.renew(&key, fence, ttl)?.into()))
}

/// `fence_release(key, fence)`
pub(crate) fn release(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let key = args.key(0, "key")?;
    let Some(fence) = args.fence(1, "fence")?.fence() else {
        return Ok(Answer::Int(0));
    };
    Ok(Answer::Int(connection.store()?.release(&key, fence)?.into()))
}
