//! This program as another process: what the rows with several processes start.
//!
//! A child opens the store of a folder, says `ready` and does what it is told, line by line. Its times are those of the
//! wall clock, in nanoseconds since 1970, so that they can be compared with its parent's.
//!
//! | line | does | answers |
//! |---|---|---|
//! | `loop KEY MS` | acquires and releases the key for so long | how often, and the longest call in nanoseconds |
//! | `wait KEY` | acquires the key, waiting for up to an hour, and releases it | when it got it |

use std::env;
use std::io::{BufRead, BufReader, Lines, Write, stdin};
use std::path::Path;
use std::process::{Child as Process, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;

use crate::{Result, host};

/// The first argument of a child.
pub const COMMAND: &str = "child";

/// A child that lives; it ends with the value.
pub struct Child {
    process: Process,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Child {
    /// Starts a child on the store in this folder and waits until it has opened it.
    pub fn start(folder: &Path) -> Result<Self> {
        let mut process = Command::new(env::current_exe()?)
            .arg(COMMAND)
            .arg(folder)
            .env_remove("FENCE_STORE")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let (Some(stdin), Some(stdout)) = (process.stdin.take(), process.stdout.take()) else {
            return Err("a child without pipes".into());
        };
        let lines = BufReader::new(stdout).lines();
        let mut child = Self { process, stdin, lines };
        child.answer()?;
        Ok(child)
    }

    /// Gives it a line.
    pub fn tell(&mut self, line: &str) -> Result<()> {
        Ok(writeln!(self.stdin, "{line}")?)
    }

    /// Its next line.
    pub fn answer(&mut self) -> Result<String> {
        Ok(self.lines.next().ok_or("a child has ended")??)
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.process.id()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        // Already ended is just as good.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The time by the wall clock, in nanoseconds since 1970.
pub fn now() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64)
}

/// The child's own side.
pub fn run(arguments: &[String]) -> Result<()> {
    let [folder] = arguments else {
        return Err("a child is given a folder".into());
    };
    let db = host::connect(&Path::new(folder).join("app.db"))?;
    db.query_row("select fence_open()", [], |_| Ok(()))?;
    println!("ready");
    for line in stdin().lines() {
        let line = line?;
        match line.split(' ').collect::<Vec<_>>()[..] {
            ["loop", key, ms] => go_round(&db, key, Duration::from_millis(ms.parse()?))?,
            ["wait", key] => {
                let fence: String = db
                    .prepare_cached("select fence_acquire(?1, 30000, 3600000)")?
                    .query_row([key], |row| row.get(0))?;
                let got = now()?;
                db.prepare_cached("select fence_release(?1, ?2)")?
                    .query_row([key, &fence], |_| Ok(()))?;
                println!("{got}");
            }
            _ => return Err(format!("a child does not know: {line}").into()),
        }
    }
    Ok(())
}

fn go_round(db: &Connection, key: &str, long: Duration) -> Result<()> {
    let mut acquire = db.prepare_cached("select fence_acquire(?1, 30000)")?;
    let mut release = db.prepare_cached("select fence_release(?1, ?2)")?;
    let begun = Instant::now();
    let (mut rounds, mut worst) = (0_u64, Duration::ZERO);
    while begun.elapsed() < long {
        let started = Instant::now();
        let fence: String = acquire.query_row([key], |row| row.get(0))?;
        let acquired = Instant::now();
        release.query_row([key, &fence], |_| Ok(()))?;
        worst = worst.max(acquired - started).max(acquired.elapsed());
        rounds += 1;
    }
    println!("{rounds} {}", worst.as_nanos());
    Ok(())
}
