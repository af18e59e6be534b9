//! What `fence sql` and `fence audit` stand on: a connection with the functions built in.
//!
//! | file | idea |
//! |---|---|
//! | `mod.rs` | opening a database |
//! | `lines.rs` | where lines come from: a terminal, with editing, or a stream |
//! | `run.rs` | running statements and printing their rows |

pub mod lines;
pub mod run;

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use crate::args::STORE;

/// How long a database that another program has locked is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// Opens a database, or one in memory, with the functions built in. They find their store as they do everywhere, but for
/// `store`, which is as if `FENCE_STORE` had named it.
///
/// # Safety
///
/// There is no other thread yet: it could read the environment, which this changes.
pub unsafe fn open(database: Option<&Path>, store: Option<&Path>, flags: OpenFlags) -> Result<Connection, String> {
    if let Some(store) = store {
        // SAFETY: the caller's promise.
        unsafe { std::env::set_var(STORE, store) };
    }
    let opened = match database {
        Some(path) => Connection::open_with_flags(path, flags),
        None => Connection::open_in_memory(),
    };
    let named = database.unwrap_or(Path::new(":memory:"));
    let db = opened
        .and_then(|db| db.busy_timeout(PATIENCE).map(|()| db))
        .map_err(|error| {
            let what = run::message(&error);
            format!("fence: {named:?} cannot be opened: {what}: name a SQLite database, in a folder that exists")
        })?;
    fence_functions::register(&db)?;
    Ok(db)
}
