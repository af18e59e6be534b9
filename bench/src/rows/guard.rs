//! An UPDATE of one row of a guarded table, beside the same UPDATE of an unguarded one that compares by itself, `and
//! summary_fence <= ?`: once as a transaction of its own, as programs usually send it, and once within a long one, where no
//! commit hides what the guard costs.

use rusqlite::{Connection, Statement};

use crate::report::Line;
use crate::times::in_turn;
use crate::{Result, host};

const ROUNDS: usize = 100_000;
const ROWS: i64 = 1_000;
const BESIDE: &str = "unguarded, with `and summary_fence <= ?`";

/// Measures the row.
pub fn measure() -> Result<Vec<Line>> {
    let folder = host::folder();
    let db = host::connect(&folder.path().join("app.db"))?;
    db.execute_batch("pragma journal_mode = wal; pragma synchronous = normal")?;
    for table in ["guarded", "plain"] {
        db.execute_batch(&format!(
            "create table {table} (id integer primary key, summary text, summary_fence text);
             with recursive n(i) as (select 1 union all select i + 1 from n limit {ROWS})
             insert into {table} select i, 'a summary', fence_pad(1) from n;"
        ))?;
    }
    db.query_row("select fence_guard('guarded', 'summary_fence')", [], |_| Ok(()))?;
    let mut updates = Updates::prepare(&db)?;
    let by_itself = updates.measure("a guarded UPDATE of one row")?;
    db.execute_batch("begin")?;
    let within = updates.measure("the same within a transaction")?;
    db.execute_batch("commit")?;
    // What is measured is a guard only if it refuses what is stale.
    match updates.guarded.execute(("stale", format!("{:040}", 0), 1)) {
        Err(refused) if refused.to_string().contains("stale") => Ok(vec![by_itself, within]),
        other => Err(format!("the guard let a stale write through: {other:?}").into()),
    }
}

/// The two statements, and a fence that grows with each execution.
struct Updates<'a> {
    guarded: Statement<'a>,
    plain: Statement<'a>,
    count: (i64, i64),
}

impl<'a> Updates<'a> {
    fn prepare(db: &'a Connection) -> Result<Self> {
        Ok(Self {
            guarded: db.prepare("update guarded set summary = ?1, summary_fence = ?2 where id = ?3")?,
            plain: db
                .prepare("update plain set summary = ?1, summary_fence = ?2 where id = ?3 and summary_fence <= ?2")?,
            count: (1, 1),
        })
    }

    fn measure(&mut self, what: &str) -> Result<Line> {
        let Self { guarded, plain, count } = self;
        let (ours, theirs) = in_turn(ROUNDS, || write(guarded, &mut count.0), || write(plain, &mut count.1))?;
        Ok(Line::ratio(what, BESIDE, ours, theirs, 1.5))
    }
}

/// Writes one row with the next fence.
fn write(update: &mut Statement<'_>, count: &mut i64) -> Result<()> {
    *count += 1;
    let fence = format!("{:040}", *count);
    match update.execute((if *count % 2 == 0 { "even" } else { "odd" }, &fence, *count % ROWS + 1))? {
        1 => Ok(()),
        _ => Err("not written".into()),
    }
}
