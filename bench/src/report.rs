//! The table, on the screen and in BENCHMARKS.md.

use std::fmt;
use std::fs;

use crate::times::{Shown, Times};
use crate::{Result, host, machine};

/// One line of the table.
pub struct Line {
    /// What was measured.
    pub what: String,
    /// Beside what; empty for what stands alone.
    pub beside: String,
    /// How long the one took.
    pub ours: Option<Times>,
    /// How long the other took.
    pub theirs: Option<Times>,
    /// What came of it: a ratio or a figure.
    pub figure: String,
    /// What was to be reached.
    pub reach: String,
    /// Whether it was.
    pub reached: bool,
}

impl Line {
    /// A line about two medians, whose ratio should be no larger than `most`.
    pub fn ratio(what: &str, beside: &str, ours: Times, theirs: Times, most: f64) -> Self {
        let ratio = ours.median() as f64 / theirs.median() as f64;
        Self {
            what: what.into(),
            beside: beside.into(),
            ours: Some(ours),
            theirs: Some(theirs),
            figure: format!("{ratio:.2} ×"),
            reach: format!("≤ {most} ×"),
            reached: ratio <= most,
        }
    }

    /// A line about one figure, which should be no larger than `most`, in this unit.
    pub fn at_most(what: &str, figure: f64, most: f64, unit: &str) -> Self {
        Self::figure(what, figure, unit, format!("≤ {most} {unit}"), figure <= most)
    }

    /// A line about one figure, which should be no smaller than `least`, in this unit.
    pub fn at_least(what: &str, figure: f64, least: f64, unit: &str) -> Self {
        Self::figure(what, figure, unit, format!("≥ {least} {unit}"), figure >= least)
    }

    fn figure(what: &str, figure: f64, unit: &str, reach: String, reached: bool) -> Self {
        let decimals = if figure.fract() == 0.0 || figure.abs() >= 100.0 {
            0
        } else {
            2
        };
        Self {
            what: what.into(),
            beside: String::new(),
            ours: None,
            theirs: None,
            figure: format!("{figure:.decimals$} {unit}"),
            reach,
            reached,
        }
    }

    /// With what it is measured beside.
    pub fn beside(mut self, beside: &str) -> Self {
        self.beside = beside.into();
        self
    }

    /// With the times that the figure was taken from.
    pub fn with_times(mut self, times: Times) -> Self {
        self.ours = Some(times);
        self
    }
}

/// All lines, and what they were measured on.
pub struct Report {
    date: String,
    sqlite: String,
    load_before: String,
    load_after: String,
    lines: Vec<Line>,
}

impl Report {
    /// A report without lines, of now.
    pub fn begin() -> Result<Self> {
        Ok(Self {
            date: host::sqlite("select strftime('%Y-%m-%d %H:%M UTC', 'now')")?,
            sqlite: format!(
                "SQLite {} (this program), {} (the shell), {} (Python)",
                rusqlite::version(),
                host::shell_version(),
                host::python_version()
            ),
            load_before: machine::load(),
            load_after: String::new(),
            lines: Vec::new(),
        })
    }

    /// Adds the lines of a row.
    pub fn add(&mut self, lines: Vec<Line>) {
        self.lines.extend(lines);
    }

    /// Notes what is to be known at the end.
    pub fn end(&mut self) -> Result<()> {
        self.load_after = machine::load();
        Ok(())
    }

    /// Writes BENCHMARKS.md: the part that people wrote stays, the part between the marks is made anew.
    pub fn write(&self) -> Result<()> {
        const BEGIN: &str = "<!-- measured: make bench writes from here -->\n";
        const END: &str = "<!-- to here -->\n";
        let path = fence_tests::root().join("BENCHMARKS.md");
        let text = fs::read_to_string(&path)?;
        let (head, rest) = text.split_once(BEGIN).ok_or("BENCHMARKS.md has lost its first mark")?;
        let (_, tail) = rest.split_once(END).ok_or("BENCHMARKS.md has lost its second mark")?;
        Ok(fs::write(path, format!("{head}{BEGIN}\n{self}\n{END}{tail}"))?)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "Measured {} on {}, {}.",
            self.date,
            machine::processor(),
            machine::system()
        )?;
        writeln!(f, "{}.", self.sqlite)?;
        writeln!(
            f,
            "Load average at the beginning {}, at the end {}.\n",
            self.load_before, self.load_after
        )?;
        let mut cells = vec![
            [
                "what", "median", "p99.9", "beside", "median", "p99.9", "came to", "to reach", "",
            ]
            .map(String::from),
        ];
        cells.extend(self.lines.iter().map(|line| {
            let times = |times: &Option<Times>| match times {
                Some(times) => [Shown(times.median()).to_string(), Shown(times.p999()).to_string()],
                None => Default::default(),
            };
            let ([median, p999], [their_median, their_p999]) = (times(&line.ours), times(&line.theirs));
            [
                line.what.clone(),
                median,
                p999,
                line.beside.clone(),
                their_median,
                their_p999,
                line.figure.clone(),
                line.reach.clone(),
                if line.reached { "yes" } else { "**no**" }.to_owned(),
            ]
        }));
        let widths: Vec<usize> = (0..9)
            .map(|column| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or(0))
            .collect();
        for (index, row) in cells.iter().enumerate() {
            let padded: Vec<_> = row
                .iter()
                .zip(&widths)
                .map(|(cell, width)| format!("{cell:<width$}"))
                .collect();
            writeln!(f, "| {} |", padded.join(" | "))?;
            if index == 0 {
                let rules: Vec<_> = widths.iter().map(|width| "-".repeat(*width)).collect();
                writeln!(f, "| {} |", rules.join(" | "))?;
            }
        }
        Ok(())
    }
}
