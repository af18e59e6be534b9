//! Acquire and release through SQL, beside two bare commits of the same rows ([`Bare`]) in the same process.

use crate::report::Line;
use crate::rows::bare::Bare;
use crate::times::in_turn;
use crate::{Result, host};

const ROUNDS: usize = 100_000;

/// Measures the row.
pub fn measure() -> Result<Vec<Line>> {
    let folder = host::folder();
    let db = host::connect(&folder.path().join("app.db"))?;
    let bare = Bare::create(&folder.path().join("bare.db"))?;
    let mut acquire = db.prepare("select fence_acquire(?1, 30000)")?;
    let mut release = db.prepare("select fence_release(?1, ?2)")?;
    let (ours, theirs) = in_turn(
        ROUNDS,
        || {
            let fence: String = acquire.query_row(["chat:42"], |row| row.get(0))?;
            let released: i64 = release.query_row(["chat:42", &fence], |row| row.get(0))?;
            if released == 1 {
                Ok(())
            } else {
                Err("not released".into())
            }
        },
        || bare.pair("chat:42"),
    )?;
    let tail = ours.p999() as f64 / ours.median() as f64;
    Ok(vec![
        Line::ratio("acquire + release, through SQL", "two bare commits", ours, theirs, 1.25),
        Line::at_most("the same, p99.9 beside its own median", tail, 10.0, "×"),
    ])
}
