//! An acquire of a key that somebody holds, beside one indexed SELECT by a prepared statement on the same file.

use rusqlite::Connection;

use crate::report::Line;
use crate::times::in_turn;
use crate::{Result, host};

const ROUNDS: usize = 200_000;

/// Measures the row.
pub fn measure() -> Result<Vec<Line>> {
    let folder = host::folder();
    let db = host::connect(&folder.path().join("app.db"))?;
    db.query_row("select fence_acquire('chat:42', 3600000)", [], |_| Ok(()))?;
    let store = Connection::open(folder.path().join("kv.db"))?;
    let mut acquire = db.prepare("select fence_acquire(?1, 30000)")?;
    let mut select = store.prepare("select expires from leases where key = ?1 and permit = x''")?;
    let (ours, theirs) = in_turn(
        ROUNDS,
        || {
            let fence: Option<String> = acquire.query_row(["chat:42"], |row| row.get(0))?;
            if fence.is_none() {
                Ok(())
            } else {
                Err("not held".into())
            }
        },
        || Ok(select.query_row(["chat:42"], |row| row.get::<_, i64>(0)).map(drop)?),
    )?;
    Ok(vec![Line::ratio(
        "acquire of a key that is held",
        "one indexed SELECT on the same file",
        ours,
        theirs,
        2.0,
    )])
}
