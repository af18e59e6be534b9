//! The rows of the table, each in a file of its own.

mod bare;
mod contend;
mod crowd;
mod functions;
mod guard;
mod handover;
mod held;
mod pair;
mod python;
mod size;
mod start;

use crate::Result;
use crate::report::Line;

/// A row.
pub struct Row {
    /// The name by which it is chosen.
    pub name: &'static str,
    /// Measures it.
    pub measure: fn() -> Result<Vec<Line>>,
}

/// All rows, in the order of the table.
pub const ROWS: &[Row] = &[
    row("pair", pair::measure),
    row("python", python::measure),
    row("held", held::measure),
    row("functions", functions::measure),
    row("guard", guard::measure),
    row("crowd", crowd::measure),
    row("contend", contend::measure),
    row("handover", handover::measure),
    row("start", start::measure),
    row("size", size::measure),
];

const fn row(name: &'static str, measure: fn() -> Result<Vec<Line>>) -> Row {
    Row { name, measure }
}
