//! Measuring: two works in turn, and what is said of many times.

use std::fmt;
use std::time::{Duration, Instant};

use crate::Result;

/// How long one work took, each time, in nanoseconds and in order.
#[derive(Clone, Debug)]
pub struct Times(Vec<u64>);

impl Times {
    /// These times.
    pub fn new(mut nanoseconds: Vec<u64>) -> Self {
        nanoseconds.sort_unstable();
        Self(nanoseconds)
    }

    /// Half of them are no longer.
    pub fn median(&self) -> u64 {
        self.at(0.5)
    }

    /// All but one of a thousand are no longer.
    pub fn p999(&self) -> u64 {
        self.at(0.999)
    }

    /// All but one of a hundred are no longer.
    pub fn p99(&self) -> u64 {
        self.at(0.99)
    }

    fn at(&self, share: f64) -> u64 {
        let last = self.0.len().saturating_sub(1);
        self.0.get((last as f64 * share).round() as usize).copied().unwrap_or(0)
    }
}

/// Runs two works in turn, so many times each after a warming-up, and takes the time of each. Now one goes first and
/// now the other: whatever a work leaves behind in the machine meets both alike.
pub fn in_turn(
    rounds: usize,
    mut ours: impl FnMut() -> Result<()>,
    mut theirs: impl FnMut() -> Result<()>,
) -> Result<(Times, Times)> {
    let mut times = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    for round in 0..rounds + rounds / 10 {
        let (mine, other);
        if round % 2 == 0 {
            mine = timed(&mut ours)?;
            other = timed(&mut theirs)?;
        } else {
            other = timed(&mut theirs)?;
            mine = timed(&mut ours)?;
        }
        if round >= rounds / 10 {
            times.0.push(mine);
            times.1.push(other);
        }
    }
    Ok((Times::new(times.0), Times::new(times.1)))
}

fn timed(work: &mut impl FnMut() -> Result<()>) -> Result<u64> {
    let begun = Instant::now();
    work()?;
    Ok(begun.elapsed().as_nanos() as u64)
}

/// A time as people read it: three digits and a unit.
pub struct Shown(pub u64);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = Duration::from_nanos(self.0).as_secs_f64();
        let (number, unit) = match self.0 {
            ..1_000 => (time * 1e9, "ns"),
            1_000..1_000_000 => (time * 1e6, "µs"),
            1_000_000..1_000_000_000 => (time * 1e3, "ms"),
            _ => (time, "s"),
        };
        let decimals = if number < 9.995 { 2 } else { usize::from(number < 99.95) };
        write!(f, "{number:.decimals$} {unit}")
    }
}
