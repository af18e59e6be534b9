//! Semaphores: `semaphore_acquire`, `semaphore_renew`, `semaphore_release`.
//!
//! A permit has an id and no fence. The id is text that is no number, so that every fence function refuses it (SEM-02).

use fence_core::{Limit, PermitId};

use super::options::{self, Of};
use crate::answer::{Answer, SqlError};
use crate::connection::HostConnection;
use crate::value::{Args, Value};

/// `semaphore_acquire(key, limit [, ttl_ms [, wait_ms [, options]]])`
pub(crate) fn acquire(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let key = args.key(0, "key")?;
    let limit = Limit::new(args.integer(1, Limit::ARGUMENT, Limit::MIN.get()..=Limit::MAX.get())?)?;
    let options = options::read(args, 2, Of::Permit)?;
    let permit = connection
        .store()?
        .acquire_permit(&key, limit, &options, &|| connection.is_interrupted())?;
    Ok(permit.map_or(Answer::Null, |permit| Answer::Text(permit.to_string())))
}

/// `semaphore_renew(key, permit [, ttl_ms])`
pub(crate) fn renew(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let key = args.key(0, "key")?;
    let permit = permit(args, 1)?;
    let ttl = options::ttl(args, 2)?;
    let Some(permit) = permit else {
        return Ok(Answer::Int(0));
    };
    Ok(Answer::Int(connection.store()?.renew_permit(&key, permit, ttl)?.into()))
}

/// `semaphore_release(key, permit)`
pub(crate) fn release(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let key = args.key(0, "key")?;
    let Some(permit) = permit(args, 1)? else {
        return Ok(Answer::Int(0));
    };
    Ok(Answer::Int(connection.store()?.release_permit(&key, permit)?.into()))
}

/// A permit's id; nothing for NULL and ''.
fn permit(args: &Args<'_>, index: usize) -> Result<Option<PermitId>, SqlError> {
    let value = args.value(index)?;
    let id = match value {
        Value::Null | Value::Text(b"") => return Ok(None),
        Value::Text(text) => std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()),
        _ => None,
    };
    id.map(Some).ok_or_else(|| {
        let accepted = "give the id that semaphore_acquire gave (a permit is no fence, nor a fence a permit)";
        args.refused("not a permit", "permit", value, accepted)
    })
}
