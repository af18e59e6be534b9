//! Leases of several keys under one fence: `fence_acquire_all`, `fence_renew_all`, `fence_release_all`.

use serde_json::Value as Json;

use super::options::{self, Of};
use crate::answer::{Answer, SqlError};
use crate::connection::HostConnection;
use crate::value::{Args, Value};

/// The longest list that is read, in bytes: 1,000 keys of 1,024 bytes, each written as `\u00xx`, fit in.
const LONGEST: usize = 8 << 20;

/// `fence_acquire_all(keys [, ttl_ms [, wait_ms [, options]]])`, where `keys` is a JSON array.
pub(crate) fn acquire(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let keys = keys(args)?;
    let keys: Vec<&str> = keys.iter().map(String::as_str).collect();
    let options = options::read(args, 1, Of::Lease)?;
    let fence = connection
        .store()?
        .acquire_all(&keys, &options, &|| connection.is_interrupted())?;
    Ok(fence.map_or(Answer::Null, |fence| Answer::Wire(fence.wire())))
}

/// `fence_renew_all(fence [, ttl_ms])`
pub(crate) fn renew(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let fence = args.fence(0, "fence")?.fence();
    let ttl = options::ttl(args, 1)?;
    let Some(fence) = fence else { return Ok(Answer::Int(0)) };
    Ok(Answer::Int(connection.store()?.renew_all(fence, ttl)?.into()))
}

/// `fence_release_all(fence)`
pub(crate) fn release(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let Some(fence) = args.fence(0, "fence")?.fence() else {
        return Ok(Answer::Int(0));
    };
    Ok(Answer::Int(connection.store()?.release_all(fence)?.into()))
}

/// The keys in a JSON array: strings as they are, integers as their decimal text.
fn keys(args: &Args<'_>) -> Result<Vec<String>, SqlError> {
    let value = args.value(0)?;
    let refuse = || {
        let accepted = "give a JSON array of keys, such as '[\"from\",\"to\"]'";
        args.refused("not a list of keys", "keys", value, accepted)
    };
    let Value::Text(text) = value else { return Err(refuse()) };
    if text.len() > LONGEST {
        return Err(args.refused("too many keys", "keys", value, "give 1 to 1000 keys"));
    }
    let Ok(Json::Array(items)) = serde_json::from_slice(text) else {
        return Err(refuse());
    };
    items
        .into_iter()
        .map(|item| match item {
            Json::String(key) => Ok(key),
            Json::Number(number) if !number.is_f64() => Ok(number.to_string()),
            _ => Err(refuse()),
        })
        .collect()
}
