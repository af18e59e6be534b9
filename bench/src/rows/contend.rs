//! Eight processes on one store, each with a key of its own, all at once, beside one process alone.
//!
//! A few turns of both; totals are medians, the longest wait and the unfairness are the worst of all turns.

use crate::child::Child;
use crate::report::Line;
use crate::times::Shown;
use crate::{Result, host};

const PROCESSES: usize = 8;
const TURNS: usize = 3;
const MS: u64 = 2_000;

/// Measures the row.
pub fn measure() -> Result<Vec<Line>> {
    let folder = host::folder();
    let mut children = (0..PROCESSES)
        .map(|_| Child::start(folder.path()))
        .collect::<Result<Vec<_>>>()?;
    let (mut alone, mut together) = (Vec::new(), Vec::new());
    let (mut worst, mut worst_alone, mut unfair) = (0, 0, 0.0_f64);
    for _ in 0..TURNS {
        let (rounds, wait) = all_at_once(&mut children[..1])?;
        alone.push(rounds.iter().sum());
        worst_alone = wait.max(worst_alone);
        let (rounds, wait) = all_at_once(&mut children)?;
        together.push(rounds.iter().sum());
        worst = wait.max(worst);
        let (least, most) = (rounds.iter().min().copied(), rounds.iter().max().copied());
        unfair = unfair.max(most.unwrap_or(0) as f64 / least.unwrap_or(0).max(1) as f64);
    }
    let (alone, together) = (middle(alone), middle(together));
    let seconds = MS as f64 / 1000.0;
    Ok(vec![
        Line::at_least(
            "8 processes, a key each, all at once: pairs in a second",
            together as f64 / alone as f64,
            0.8,
            "×",
        )
        .beside(&format!(
            "one process ({:.0} against {:.0} in a second)",
            together as f64 / seconds,
            alone as f64 / seconds
        )),
        Line::at_most("the same: the longest single wait", worst as f64 / 1e6, 50.0, "ms")
            .beside(&format!("one process, its longest: {}", Shown(worst_alone))),
        Line::at_most("the same: the busiest process beside the slowest", unfair, 2.0, "×"),
    ])
}

/// Lets all of them go round; how often each did, and the longest wait of any.
fn all_at_once(children: &mut [Child]) -> Result<(Vec<u64>, u64)> {
    for (n, child) in children.iter_mut().enumerate() {
        child.tell(&format!("loop chat:{n} {MS}"))?;
    }
    let (mut rounds, mut worst) = (Vec::new(), 0);
    for child in children {
        let answer = child.answer()?;
        let (count, wait) = answer.split_once(' ').ok_or("a child gave no two numbers")?;
        rounds.push(count.parse()?);
        worst = worst.max(wait.parse()?);
    }
    Ok((rounds, worst))
}

fn middle(mut numbers: Vec<u64>) -> u64 {
    numbers.sort_unstable();
    numbers.get(numbers.len() / 2).copied().unwrap_or(0)
}
