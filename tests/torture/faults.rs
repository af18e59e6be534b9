//! What befalls the processes and the files, by a seed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::random::Random;

/// One fault. Those with a length go on while others come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// SIGKILL; another one is started in its place.
    Kill,
    /// SIGSTOP, and SIGCONT after this time.
    Stop { ms: u64 },
    /// The next process that is started stops or dies at this point of the code.
    Point { point: &'static str, kill: bool, pass: u64 },
    /// A process's wall clock is stepped by this.
    Clock { by: &'static str },
    /// A stranger keeps kv.db locked.
    Stranger { begin: &'static str, ms: u64 },
    /// The disk is full.
    DiskFull { ms: u64 },
    /// The folder has another name.
    FolderMoved { ms: u64 },
    /// kv.db changes behind everybody's back.
    Swap(Swap),
    /// A copy of kv.db and its WAL is put aside.
    Copy,
    /// The file beside the store is removed.
    SidecarRemoved,
}

/// How kv.db changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// kv.db, its WAL and its index are removed.
    DeletedAll,
    /// kv.db alone is removed.
    DeletedAlone,
    /// The WAL alone is removed.
    WalDeleted,
    /// The copy of kv.db is moved over it; the WAL stays that of the other.
    MovedOver,
    /// The copies of both are moved over them.
    MovedOverWithWal,
    /// The copy of kv.db is written into it, and the WAL removed.
    WrittenOver,
    /// The copies of both are written into them, the WAL's first.
    WrittenOverWithWal,
}

const POINTS: [&str; 6] = [
    "grant-before-commit",
    "grant-after-commit",
    "epoch-before-commit",
    "epoch-after-commit",
    "checkpoint-before",
    "checkpoint-after",
];

/// The next fault of the schedule.
pub fn next(random: &mut Random) -> Fault {
    match random.below(100) {
        0..25 => Fault::Kill,
        25..50 => Fault::Stop {
            ms: random.between(5, 1_200),
        },
        50..60 => Fault::Point {
            point: random.pick::<&str>(&POINTS),
            kill: random.once_in(2),
            pass: random.between(1, 4),
        },
        60..70 => Fault::Clock {
            by: random.pick::<&str>(&["-1h", "+0", "+1h"]),
        },
        70..78 => Fault::Stranger {
            begin: random.pick::<&str>(&[
                "begin immediate",
                "begin exclusive",
                "begin; select count(*) from leases",
            ]),
            ms: random.between(20, 500),
        },
        78..80 => Fault::DiskFull {
            ms: random.between(20, 300),
        },
        80..81 => Fault::FolderMoved {
            ms: random.between(20, 300),
        },
        81..82 => Fault::SidecarRemoved,
        82..90 => Fault::Copy,
        90..96 => Fault::Swap(*random.pick(&[
            Swap::DeletedAll,
            Swap::DeletedAlone,
            Swap::WalDeleted,
            Swap::MovedOver,
            Swap::MovedOverWithWal,
            Swap::WrittenOver,
            Swap::WrittenOverWithWal,
        ])),
        _ => Fault::Stop {
            ms: random.between(400, 2_000),
        },
    }
}

/// Changes kv.db. `copy` holds a copy of it, perhaps with a WAL; without one nothing happens to what needs one.
pub fn swap(kind: Swap, store: &Path, copy: &Path) -> io::Result<bool> {
    let copied = copy.join("kv.db");
    if matches!(
        kind,
        Swap::MovedOver | Swap::MovedOverWithWal | Swap::WrittenOver | Swap::WrittenOverWithWal
    ) && !copied.exists()
    {
        return Ok(false);
    }
    // On the same file system as the store, so that it can be moved.
    let new = beside(store, "-new");
    match kind {
        Swap::DeletedAll => {
            for suffix in ["", "-shm", "-wal"] {
                remove(&beside(store, suffix))?;
            }
        }
        Swap::DeletedAlone => remove(store)?,
        Swap::WalDeleted => remove(&beside(store, "-wal"))?,
        Swap::MovedOver => {
            fs::copy(&copied, &new)?;
            fs::rename(&new, store)?;
        }
        Swap::MovedOverWithWal => {
            fs::copy(&copied, &new)?;
            let wal = beside(&copied, "-wal");
            if wal.exists() {
                let new_wal = beside(store, "-new-wal");
                fs::copy(&wal, &new_wal)?;
                fs::rename(&new_wal, beside(store, "-wal"))?;
            } else {
                remove(&beside(store, "-wal"))?;
            }
            fs::rename(&new, store)?;
        }
        Swap::WrittenOver => {
            remove(&beside(store, "-wal"))?;
            fs::copy(&copied, store)?;
        }
        Swap::WrittenOverWithWal => {
            let wal = beside(&copied, "-wal");
            if wal.exists() && beside(store, "-wal").exists() {
                fs::copy(&wal, beside(store, "-wal"))?;
            }
            fs::copy(&copied, store)?;
        }
    }
    Ok(true)
}

/// The path with something behind its name.
pub fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Removes a file that may be gone already.
pub fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
