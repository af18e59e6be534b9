//! What the extension adds to the start of a sqlite3 shell, and how often the first acquire of a process waits for the
//! disk.

use std::fs;
use std::process::Command;

use fence_tests::Shell;

use crate::report::Line;
use crate::times::in_turn;
use crate::{Result, host};

const ROUNDS: usize = 300;

/// Measures the row.
pub fn measure() -> Result<Vec<Line>> {
    let (with, without) = (Shell::new(), Shell::plain());
    let run = |shell: &Shell, sql: &str| {
        shell.run(sql).ok();
        Ok(())
    };
    let (ours, theirs) = in_turn(
        ROUNDS,
        || run(&with, "select fence_pad(7);"),
        || run(&without, "select printf('%040d', 7);"),
    )?;
    let more = ours.median().saturating_sub(theirs.median()) as f64 / 1e6;
    let mut line = Line::at_most("a shell with `.load` and one `fence_pad`: more", more, 3.0, "ms")
        .beside("the same shell without")
        .with_times(ours);
    line.theirs = Some(theirs);
    let syncs = syncs_of_first_acquire()?;
    let line_of_syncs = match syncs {
        Some(syncs) => Line::at_most(
            "first acquire of a process: waits for the disk",
            syncs as f64,
            1.0,
            "fsync",
        ),
        None => Line::at_most(
            "first acquire of a process (strace is not installed)",
            f64::NAN,
            1.0,
            "fsync",
        ),
    };
    Ok(vec![line, line_of_syncs])
}

/// How many times a shell asks for a sync until it prints its first fence, in a store that another process has open.
/// Nothing without strace.
fn syncs_of_first_acquire() -> Result<Option<usize>> {
    if Command::new("strace").arg("-V").output().is_err() {
        return Ok(None);
    }
    let folder = host::folder();
    let (app, log) = (folder.path().join("app.db"), folder.path().join("log"));
    let other = host::connect(&app)?;
    other.query_row("select fence_acquire('another')", [], |_| Ok(()))?;
    let status = Command::new("strace")
        .args(["-f", "-e", "trace=fsync,fdatasync,sync_file_range,write", "-o"])
        .arg(&log)
        .arg(Shell::path())
        .args(["-batch", "-init", "/dev/null", "-cmd"])
        .arg(format!(".load \"{}\"", fence_tests::library().display()))
        .arg(&app)
        .arg("select 'fence ' || fence_acquire('job')")
        .env_remove("FENCE_STORE")
        .stdout(std::process::Stdio::null())
        .status()?;
    if !status.success() {
        return Err("the shell failed under strace".into());
    }
    let log = fs::read_to_string(log)?;
    let before = log.lines().take_while(|line| !line.contains("\"fence "));
    Ok(Some(before.filter(|line| line.contains("sync")).count()))
}
