//! Rows, as a table for people and as JSON for programs.

use std::io::{IsTerminal, Write};

use clap::Args;
use serde_json::{Map, Value as Json};

use crate::exit::Exit;

/// In which form rows are printed.
#[derive(Args, Debug)]
pub struct Form {
    /// Print a JSON array, an object for each row; the default unless a terminal reads it
    #[arg(long, conflicts_with = "table")]
    json: bool,
    /// Print a table; the default if a terminal reads it
    #[arg(long)]
    table: bool,
}

impl Form {
    fn is_json(&self) -> bool {
        self.json || !(self.table || std::io::stdout().is_terminal())
    }
}

/// Rows with named columns.
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<Json>>,
}

impl Table {
    /// A table without rows.
    pub fn new<C: ToString>(columns: &[C]) -> Self {
        Self {
            columns: columns.iter().map(C::to_string).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row; it has a value for each column.
    pub fn push(&mut self, row: Vec<Json>) {
        self.rows.push(row);
    }

    /// Prints it to the standard output.
    pub fn print(&self, form: &Form) -> Result<Exit, String> {
        print(&if form.is_json() { self.json() } else { self.table() })
    }

    /// A valid JSON array with one object on a line, for readers of either kind.
    fn json(&self) -> String {
        let object = |row: &Vec<Json>| {
            let fields: Map<_, _> = self.columns.iter().cloned().zip(row.iter().cloned()).collect();
            Json::Object(fields).to_string()
        };
        let objects: Vec<_> = self.rows.iter().map(object).collect();
        if objects.is_empty() {
            "[]\n".to_owned()
        } else {
            format!("[{}]\n", objects.join(",\n "))
        }
    }

    /// Columns as wide as their widest value, numbers to the right.
    fn table(&self) -> String {
        let cells: Vec<Vec<String>> = self.rows.iter().map(|row| row.iter().map(cell).collect()).collect();
        let width = |column: usize| {
            let values = cells.iter().filter_map(|row| row.get(column));
            values
                .chain(self.columns.get(column))
                .map(|cell| cell.chars().count())
                .max()
                .unwrap_or(0)
        };
        let widths: Vec<_> = (0..self.columns.len()).map(width).collect();
        let mut text = line(self.columns.iter().map(String::as_str), &widths, |_| false);
        for (row, cells) in self.rows.iter().zip(&cells) {
            let is_number = |column: usize| row.get(column).is_some_and(Json::is_number);
            text += &line(cells.iter().map(String::as_str), &widths, is_number);
        }
        text
    }
}

fn line<'a>(cells: impl Iterator<Item = &'a str>, widths: &[usize], to_the_right: impl Fn(usize) -> bool) -> String {
    let padded: Vec<_> = cells
        .zip(widths)
        .enumerate()
        .map(|(column, (cell, &width))| {
            if to_the_right(column) {
                format!("{cell:>width$}")
            } else {
                format!("{cell:<width$}")
            }
        })
        .collect();
    format!("{}\n", padded.join("  ").trim_end())
}

/// A value on one line.
fn cell(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text
            .chars()
            .map(|c| {
                if c.is_control() {
                    c.escape_unicode().to_string()
                } else {
                    c.to_string()
                }
            })
            .collect(),
        Json::Bool(yes) => if *yes { "yes" } else { "no" }.to_owned(),
        other => other.to_string(),
    }
}

/// Prints to the standard output. Whoever closed it has read enough.
pub fn print(text: &str) -> Result<Exit, String> {
    match std::io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(format!(
            "fence: writing to the standard output failed: {error}: see where it leads"
        )),
        _ => Ok(Exit::DONE),
    }
}
