//! What was done to the store, by whom and when: written as it happens, read back afterwards.
//!
//! Each process writes a log of its own, one line when an operation begins and one when it ends, each with one `write`,
//! so that a process that is killed leaves all that it did. An operation without an end may have had its effect or not.
//! Times are nanoseconds of CLOCK_BOOTTIME, one clock for all processes, which no fault of ours can step.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;

use rustix::time::{ClockId, clock_gettime};

/// The time, in nanoseconds.
pub fn now() -> u64 {
    let time = clock_gettime(ClockId::Boottime);
    u64::try_from(time.tv_sec * 1_000_000_000 + time.tv_nsec).expect("a time after the boot")
}

/// What was asked for. Several keys of one lease are joined by `+`. A lease is named by its fence, a permit by its id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum What {
    /// A lease; with a limit above 0 a permit.
    Acquire {
        key: String,
        limit: u64,
        ttl_ms: u64,
        bound: bool,
    },
    Renew {
        key: String,
        name: String,
        ttl_ms: u64,
    },
    Release {
        key: String,
        name: String,
    },
    /// The conditional update of the key's row in app.db.
    Write {
        key: String,
        name: String,
    },
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The fence or the permit.
    Name(String),
    Held,
    Yes,
    No,
    /// With SQLite's result code.
    Error(i32),
}

/// One operation of one process.
#[derive(Clone, Debug)]
pub struct Op {
    /// The process: a number of its own, also for a child made by fork.
    pub worker: String,
    pub began: u64,
    /// When it ended and with what; nothing if the process did not live to see it.
    pub end: Option<(u64, Answer)>,
    pub what: What,
}

/// A log that is being written.
pub struct Log {
    file: File,
}

impl Log {
    /// Begins the log of this process.
    pub fn begin(folder: &Path, worker: &str) -> io::Result<Self> {
        let path = folder.join(format!("{worker}.log"));
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let mut log = Self { file };
        log.line(&format!("P {}", std::process::id()))?;
        Ok(log)
    }

    /// Runs an operation and notes it. It gives what it came to, and more that is not noted.
    pub fn run<T>(&mut self, what: &What, work: impl FnOnce() -> (Answer, T)) -> io::Result<(Answer, T)> {
        self.line(&format!("B {} {}", now(), print(what)))?;
        let (answer, more) = work();
        self.line(&format!("E {} {}", now(), print_answer(&answer)))?;
        Ok((answer, more))
    }

    /// Notes that the process ends as it should.
    pub fn end(&mut self) -> io::Result<()> {
        self.line(&format!("X {}", now()))
    }

    /// Notes something for the summary.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        self.line(&format!("N {text}"))
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        self.file.write_all(format!("{text}\n").as_bytes())
    }
}

/// A log that is read while it is being written.
#[derive(Debug)]
pub struct Reader {
    worker: String,
    read: usize,
    /// All operations so far, in their order.
    pub ops: Vec<Op>,
    pub process: Option<i32>,
    pub ended: bool,
    /// The time of the last line: until then it lived.
    pub last: u64,
    pub notes: Vec<String>,
}

impl Reader {
    pub fn new(worker: &str) -> Self {
        Self {
            worker: worker.to_owned(),
            read: 0,
            ops: Vec::new(),
            process: None,
            ended: false,
            last: 0,
            notes: Vec::new(),
        }
    }

    /// Reads on to the last whole line; gives where the new operations begin.
    pub fn read_on(&mut self, folder: &Path) -> io::Result<usize> {
        use std::io::{Read, Seek, SeekFrom};
        let first = self.ops.len().saturating_sub(1);
        let mut file = File::open(folder.join(format!("{}.log", self.worker)))?;
        file.seek(SeekFrom::Start(self.read as u64))?;
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let whole = text.rfind('\n').map_or(0, |end| end + 1);
        self.read += whole;
        for line in text[..whole].lines() {
            self.take(line)
                .unwrap_or_else(|| panic!("{}: no such line: {line}", self.worker));
        }
        Ok(first)
    }

    fn take(&mut self, line: &str) -> Option<()> {
        let words: Vec<_> = line.split(' ').collect();
        match words.as_slice() {
            ["P", id] => self.process = Some(id.parse().ok()?),
            ["X", time] => {
                self.ended = true;
                self.last = time.parse().ok()?;
            }
            ["N", note @ ..] => self.notes.push(note.join(" ")),
            ["B", time, what @ ..] => {
                self.last = time.parse().ok()?;
                self.ops.push(Op {
                    worker: self.worker.clone(),
                    began: self.last,
                    end: None,
                    what: parse(what)?,
                });
            }
            ["E", time, answer @ ..] => {
                self.last = time.parse().ok()?;
                self.ops.last_mut()?.end = Some((self.last, parse_answer(answer)?));
            }
            _ => return None,
        }
        Some(())
    }
}

fn print(what: &What) -> String {
    match what {
        What::Acquire {
            key,
            limit,
            ttl_ms,
            bound,
        } => format!("acquire {key} {limit} {ttl_ms} {bound}"),
        What::Renew { key, name, ttl_ms } => format!("renew {key} {name} {ttl_ms}"),
        What::Release { key, name } => format!("release {key} {name}"),
        What::Write { key, name } => format!("write {key} {name}"),
    }
}

fn parse(words: &[&str]) -> Option<What> {
    let own = |text: &&str| (*text).to_owned();
    Some(match words {
        ["acquire", key, limit, ttl, bound] => What::Acquire {
            key: own(key),
            limit: limit.parse().ok()?,
            ttl_ms: ttl.parse().ok()?,
            bound: bound.parse().ok()?,
        },
        ["renew", key, name, ttl] => What::Renew {
            key: own(key),
            name: own(name),
            ttl_ms: ttl.parse().ok()?,
        },
        ["release", key, name] => What::Release {
            key: own(key),
            name: own(name),
        },
        ["write", key, name] => What::Write {
            key: own(key),
            name: own(name),
        },
        _ => return None,
    })
}

fn print_answer(answer: &Answer) -> String {
    match answer {
        Answer::Name(name) => format!("name {name}"),
        Answer::Held => "held".to_owned(),
        Answer::Yes => "yes".to_owned(),
        Answer::No => "no".to_owned(),
        Answer::Error(code) => format!("error {code}"),
    }
}

fn parse_answer(words: &[&str]) -> Option<Answer> {
    Some(match words {
        ["name", name] => Answer::Name((*name).to_owned()),
        ["held"] => Answer::Held,
        ["yes"] => Answer::Yes,
        ["no"] => Answer::No,
        ["error", code] => Answer::Error(code.parse().ok()?),
        _ => return None,
    })
}
