//! What fences cost, beside what they stand on: `make bench`.
//!
//! Every row of the table has a file in `rows/`, whose head says what is measured and beside what. The two sides of a
//! row are measured in turn within one run ([`times::in_turn`]), so that what else the machine does falls on both. The
//! program prints one table and writes it to BENCHMARKS.md with the date and the machine. Nothing is asserted: a busy
//! machine is no fault of the code.
//!
//! ```text
//! fence-bench             every row, and BENCHMARKS.md is written
//! fence-bench ROW ...     these rows, printed and nothing written
//! ```
//!
//! The extension is measured as users get it: the release library, loaded into this program's own SQLite, into Debian's
//! Python and into the sqlite3 shell. The stores are files in a temporary folder; `TMPDIR` chooses the disk.

mod child;
mod host;
mod machine;
mod report;
mod rows;
mod times;

use std::env;
use std::error::Error;
use std::process::ExitCode;

/// What a row may fail with. Whatever it is, the run ends with it.
type Result<T> = std::result::Result<T, Box<dyn Error>>;

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.split_first() {
        Some((first, rest)) if first == child::COMMAND => child::run(rest),
        _ => run(&arguments),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("fence-bench: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(chosen: &[String]) -> Result<()> {
    if let Some(unknown) = chosen
        .iter()
        .find(|name| rows::ROWS.iter().all(|row| row.name != **name))
    {
        let names: Vec<_> = rows::ROWS.iter().map(|row| row.name).collect();
        return Err(format!("there is no row {unknown}: the rows are {}", names.join(", ")).into());
    }
    let mut report = report::Report::begin()?;
    for row in rows::ROWS {
        if chosen.is_empty() || chosen.iter().any(|name| name == row.name) {
            eprintln!("measuring: {} (load {})", row.name, machine::load());
            report.add((row.measure)()?);
        }
    }
    report.end()?;
    print!("{report}");
    if chosen.is_empty() {
        report.write()?;
    }
    Ok(())
}
