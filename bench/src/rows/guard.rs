//! An UPDATE of one row of a guarded table, beside the same UPDATE of an unguarded one that compares by itself, `and
//! summary_fence <= ?`. Both within one transaction, so that no commit hides what the guard costs.

use crate::report::Line;
use crate::times::in_turn;
use crate::{Result, host};

const ROUNDS: usize = 100_000;
const ROWS: i64 = 1_000;

/// Measures the row.
pub fn measure() -> Result<Vec<Line>> {
    let folder = host::folder();
    let db = host::connect(&folder.path().join("app.db"))?;
    let known = "select count(*) from pragma_function_list where name = 'fence_guard'";
    if db.query_row(known, [], |row| row.get::<_, i64>(0))? == 0 {
        return Ok(Vec::new()); // A library without guards has none to measure.
    }
    for table in ["guarded", "plain"] {
        db.execute_batch(&format!(
            "create table {table} (id integer primary key, summary text, summary_fence text);
             with recursive n(i) as (select 1 union all select i + 1 from n limit {ROWS})
             insert into {table} select i, 'a summary', fence_pad(1) from n;"
        ))?;
    }
    db.query_row("select fence_guard('guarded', 'summary_fence')", [], |_| Ok(()))?;
    let mut guarded = db.prepare("update guarded set summary = ?1, summary_fence = ?2 where id = ?3")?;
    let mut plain =
        db.prepare("update plain set summary = ?1, summary_fence = ?2 where id = ?3 and summary_fence <= ?2")?;
    db.execute_batch("begin")?;
    let (mut mine, mut other) = (0, 0);
    let write = |statement: &mut rusqlite::Statement<'_>, count: &mut i64| -> Result<()> {
        *count += 1;
        let fence = format!("{:040}", *count + 1);
        match statement.execute((if *count % 2 == 0 { "even" } else { "odd" }, &fence, *count % ROWS + 1))? {
            1 => Ok(()),
            _ => Err("not written".into()),
        }
    };
    let (ours, theirs) = in_turn(
        ROUNDS,
        || write(&mut guarded, &mut mine),
        || write(&mut plain, &mut other),
    )?;
    db.execute_batch("rollback")?;
    Ok(vec![Line::ratio(
        "a guarded UPDATE of one row, within a transaction",
        "unguarded, with `and summary_fence <= ?`",
        ours,
        theirs,
        1.5,
    )])
}
