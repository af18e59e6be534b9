//! From the release in one process to the waiter's return in another; and what a hundred waiters cost while they wait.

use std::fs;
use std::thread::sleep;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use crate::child::{self, Child};
use crate::report::Line;
use crate::times::{Shown, Times};
use crate::{Result, host};

const ROUNDS: u64 = 500;
const WAITERS: i64 = 100;
const WATCHED: Duration = Duration::from_secs(5);
/// The system counts CPU time in hundredths of a second.
const TICKS: f64 = 100.0;

/// Measures the row.
pub fn measure() -> Result<Vec<Line>> {
    let folder = host::folder();
    let db = host::connect(&folder.path().join("app.db"))?;
    let mut waiter = Child::start(folder.path())?;
    let store = Connection::open(folder.path().join("kv.db"))?;
    let mut acquire = db.prepare("select fence_acquire('chat:42', 3600000)")?;
    let mut release = db.prepare("select fence_release('chat:42', ?1)")?;
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        let fence: String = acquire.query_row([], |row| row.get(0))?;
        waiter.tell("wait chat:42")?;
        until_in_line(&store, 1)?;
        // Anywhere between two questions of the waiter.
        sleep(Duration::from_micros(3_000 + round * 7_919 % 5_000));
        let released = child::now()?;
        release.query_row([&fence], |_| Ok(()))?;
        times.push(waiter.answer()?.parse::<u64>()?.saturating_sub(released));
    }
    let times = Times::new(times);
    let (median, p99) = (times.median(), times.p99());
    drop(waiter);

    acquire.query_row([], |_| Ok(()))?;
    let mut waiters = (0..WAITERS)
        .map(|_| Child::start(folder.path()))
        .collect::<Result<Vec<_>>>()?;
    for waiter in &mut waiters {
        waiter.tell("wait chat:42")?;
    }
    until_in_line(&store, WAITERS)?;
    let (began, before) = (Instant::now(), cpu(&waiters)?);
    sleep(WATCHED);
    let cores = (cpu(&waiters)? - before) / began.elapsed().as_secs_f64();
    Ok(vec![
        Line::at_most(
            "hand-over: release to the waiter's return, median",
            median as f64 / 1e6,
            1.0,
            "ms",
        )
        .with_times(times),
        Line::at_most("the same, p99", p99 as f64 / 1e6, 5.0, "ms").beside(&format!("p99 is {}", Shown(p99))),
        Line::at_most("100 waiters on one key, together", cores, 0.2, "cores"),
    ])
}

fn until_in_line(store: &Connection, waiters: i64) -> Result<()> {
    let mut count = store.prepare_cached("select count(*) from waiters")?;
    let began = Instant::now();
    while count.query_row([], |row| row.get::<_, i64>(0))? < waiters {
        if began.elapsed() > Duration::from_secs(60) {
            return Err("the waiters do not wait".into());
        }
        sleep(Duration::from_micros(200));
    }
    Ok(())
}

/// The CPU time of these processes so far, in seconds.
fn cpu(children: &[Child]) -> Result<f64> {
    let mut ticks = 0.0;
    for child in children {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
        // Behind the name, which is in parentheses, the 12th and 13th field are user and system time.
        let (_, fields) = stat.rsplit_once(") ").ok_or("/proc has changed")?;
        for field in fields.split(' ').skip(11).take(2) {
            ticks += field.parse::<f64>()?;
        }
    }
    Ok(ticks / TICKS)
}
