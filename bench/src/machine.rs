//! What the figures were measured on.

use std::fs;
use std::thread::available_parallelism;

/// The processor and how many of its cores there are for us.
pub fn processor() -> String {
    let cores = available_parallelism().map_or(1, usize::from);
    let model = fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    format!(
        "{cores} cores of {}",
        model.as_deref().unwrap_or(std::env::consts::ARCH)
    )
}

/// The system.
pub fn system() -> String {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", std::env::consts::OS, release.trim())
        .trim_end()
        .to_owned()
}

/// How many processes wanted to run during the last minute, on average.
pub fn load() -> String {
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    load.split(' ')
        .next()
        .filter(|load| !load.is_empty())
        .unwrap_or("unknown")
        .to_owned()
}
