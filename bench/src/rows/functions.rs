//! `fence_ok` and `fence_pad` over 2,000,000 rows, beside the built-in functions that do the nearest thing: in Debian's
//! SQLite, which most programs here use, and in the newest one, this program's own, whose built-in functions are quicker.
//!
//! In this program criterion takes the times. It measures one function after the other, so the two of a pair take turns by
//! whole measurements, a few times each, and all samples of a side count together. The times are CPU time, for nothing is
//! waited for here. The scan itself is in both.

use std::path::Path;
use std::time::Duration;

use criterion::measurement::{Measurement, ValueFormatter, WallTime};
use criterion::{Criterion, SamplingMode};
use fence_tests::Python;
use rusqlite::Connection;
use rustix::time::{ClockId, clock_gettime};

use crate::report::Line;
use crate::times::Times;
use crate::{Result, host};

const ROWS: u32 = 2_000_000;
/// How often each function is measured, with so many scans each time.
const TURNS: usize = 4;
const SCANS: usize = 10;

/// Each function, and the built-in that it is measured beside.
const OK: (&str, &str) = ("fence_ok(a, b)", "max(a, b) = b");
const PAD: (&str, &str) = ("fence_pad(a)", "printf('%040d', i)");

/// Measures the row.
pub fn measure() -> Result<Vec<Line>> {
    let folder = host::folder();
    let db = host::connect(Path::new(":memory:"))?;
    db.execute_batch("create table t (a text, b text, i integer)")?;
    db.execute(
        "with recursive n(i) as (select 1 union all select i + 1 from n limit ?1)
         insert into t select fence_pad(fence_make(1796134800000 + i % 7, i)), fence_pad(fence_make(1796134800003, i)),
                              i * 1000003 from n",
        [ROWS],
    )?;
    let mut criterion = Criterion::default()
        .with_measurement(CpuTime)
        .output_directory(folder.path())
        .without_plots()
        .sample_size(SCANS)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500));
    let mut compare = |name: &str, ours: &str, theirs: &str, most: f64| -> Result<Line> {
        let (mut mine, mut other) = (Vec::new(), Vec::new());
        for turn in 0..TURNS {
            for (side, expression, samples) in [("ours", ours, &mut mine), ("theirs", theirs, &mut other)] {
                let function = format!("{side}-{turn}");
                scan(&mut criterion, &db, name, &function, expression)?;
                samples.extend(samples_of(&folder.path().join(name).join(&function))?);
            }
        }
        let what = format!("`{ours}` over {ROWS} rows, SQLite {}", rusqlite::version());
        Ok(Line::ratio(
            &what,
            &format!("the built-in `{theirs}`"),
            Times::new(mine),
            Times::new(other),
            most,
        ))
    };
    let newest = [compare("ok", OK.0, OK.1, 0.6)?, compare("pad", PAD.0, PAD.1, 0.7)?];
    Ok(in_python()?.into_iter().chain(newest).collect())
}

/// The same in Debian's SQLite, measured by a script of our own.
fn in_python() -> Result<Vec<Line>> {
    let script = Python::new(include_str!("functions.py")).arg(ROWS.to_string());
    [(OK, 0.6), (PAD, 0.7)]
        .into_iter()
        .map(|((ours, theirs), most)| {
            let out = script.clone().arg(ours).arg(theirs).run().ok();
            let (mine, other): (Vec<u64>, Vec<u64>) = serde_json::from_str(&out)?;
            let what = format!("`{ours}` over {ROWS} rows, SQLite {}", host::python_version());
            Ok(Line::ratio(
                &what,
                &format!("the built-in `{theirs}`"),
                Times::new(mine),
                Times::new(other),
                most,
            ))
        })
        .collect()
}

fn scan(
    criterion: &mut Criterion<CpuTime>,
    db: &Connection,
    group: &str,
    function: &str,
    expression: &str,
) -> Result<()> {
    let mut select = db.prepare(&format!("select max({expression}) from t"))?;
    let mut failed = Ok(());
    let mut group = criterion.benchmark_group(group);
    group
        .sampling_mode(SamplingMode::Flat)
        .bench_function(function, |bencher| {
            bencher.iter(|| {
                if let Err(error) = select.query_row([], |_| Ok(())) {
                    failed = Err(error);
                }
            });
        });
    group.finish();
    Ok(failed?)
}

/// What criterion wrote down of one measurement: how long one scan took, in each sample.
fn samples_of(folder: &Path) -> Result<Vec<u64>> {
    #[derive(serde::Deserialize)]
    struct Sample {
        iters: Vec<f64>,
        times: Vec<f64>,
    }
    let sample: Sample = serde_json::from_str(&std::fs::read_to_string(folder.join("new/sample.json"))?)?;
    Ok(sample
        .times
        .iter()
        .zip(sample.iters)
        .map(|(time, count)| (time / count) as u64)
        .collect())
}

/// The CPU time of this process, in nanoseconds.
struct CpuTime;

impl Measurement for CpuTime {
    type Intermediate = u64;
    type Value = u64;

    fn start(&self) -> u64 {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        time.tv_sec.unsigned_abs() * 1_000_000_000 + time.tv_nsec.unsigned_abs()
    }

    fn end(&self, start: u64) -> u64 {
        self.start() - start
    }

    fn add(&self, a: &u64, b: &u64) -> u64 {
        a + b
    }

    fn zero(&self) -> u64 {
        0
    }

    fn to_f64(&self, value: &u64) -> f64 {
        *value as f64
    }

    fn formatter(&self) -> &dyn ValueFormatter {
        WallTime.formatter()
    }
}
