//! `fence_guard`, `fence_unguard` and `fence_admit`.

use fence_core::Key;
use fence_guard::Mode;

use super::borrowed;
use crate::answer::{Answer, SqlError};
use crate::connection::HostConnection;
use crate::value::{Args, Value};

/// What counts as a table, a column, a mode, as the last part of a message about what does not.
const TABLES: &str = "give the name of a table, as 'table' or 'schema.table'";
const FENCE_COLUMNS: &str = "give the name of the fence column";
const MODES: &str = "give 'holder', 'write', 'holder+remember' or 'write+remember'";
const COLUMNS: &str = "give a JSON array of names, such as '[\"summary\", \"title\"]'";

/// `fence_guard(table, column [, mode [, columns]])`: 1.
pub(crate) fn guard(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let table = args.text(0, "table", TABLES)?;
    let column = args.text(1, "column", FENCE_COLUMNS)?;
    let mut mode = Mode::holder();
    if args.len() > 2 {
        mode = Mode::named(args.text(2, "mode", MODES)?)
            .ok_or_else(|| args.refused("no such mode", "mode", args.value(2).unwrap_or(Value::Null), MODES))?;
    }
    if args.len() > 3 {
        if !mode.raises() {
            let accepted = "leave them out, or choose mode 'write', in which writes to them must raise the fence";
            return Err(args.refused("columns without mode write", "columns", args.value(3)?, accepted));
        }
        mode = mode.columns(names(args, 3)?);
    }
    fence_guard::guard(&*borrowed(connection)?, table, column, &mode)?;
    Ok(Answer::Int(1))
}

/// `fence_unguard(table [, column])`: 1, or 0 if there was no guard.
pub(crate) fn unguard(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let table = args.text(0, "table", TABLES)?;
    let column = match args.len() {
        0 | 1 => None,
        _ => Some(args.text(1, "column", FENCE_COLUMNS)?),
    };
    Ok(Answer::Int(
        fence_guard::unguard(&*borrowed(connection)?, table, column)?.into(),
    ))
}

/// `fence_admit(key, fence)`: 1 if no larger fence was seen for the key, else 0. No fence is never admitted.
pub(crate) fn admit(connection: &HostConnection, args: &Args<'_>) -> Result<Answer, SqlError> {
    let key = args.key(0, "key")?;
    let Some(fence) = args.fence(1, "fence")?.fence() else {
        return Ok(Answer::Int(0));
    };
    Ok(Answer::Int(
        fence_guard::admit(&*borrowed(connection)?, Key::new(&key)?, fence)?.into(),
    ))
}

/// A JSON array of names.
fn names(args: &Args<'_>, index: usize) -> Result<Vec<String>, SqlError> {
    let value = args.value(index)?;
    let names: Option<Vec<String>> = match value {
        Value::Text(text) => serde_json::from_slice(text).ok(),
        _ => None,
    };
    names
        .filter(|names| !names.is_empty())
        .ok_or_else(|| args.refused("no columns", "columns", value, COLUMNS))
}
