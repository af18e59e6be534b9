//! Acquire and release in Debian's Python, beside the pair that one writes there by hand: BEGIN IMMEDIATE, the bump, the
//! upsert, COMMIT, and the DELETE.

use std::collections::HashMap;

use fence_tests::Python;

use super::bare;
use crate::report::Line;
use crate::times::Times;
use crate::{Result, host};

/// Measures the row.
pub fn measure() -> Result<Vec<Line>> {
    let folder = host::folder();
    let out = Python::new(include_str!("python.py"))
        .arg(folder.path())
        .arg(bare::SETUP)
        .run()
        .ok();
    let mut times: HashMap<String, Vec<u64>> = serde_json::from_str(&out)?;
    let mut take = |name: &str| {
        times
            .remove(name)
            .map(Times::new)
            .ok_or(format!("Python gave no {name}"))
    };
    Ok(vec![Line::ratio(
        "acquire + release in Python",
        "the hand-written pair",
        take("ours")?,
        take("theirs")?,
        0.8,
    )])
}
