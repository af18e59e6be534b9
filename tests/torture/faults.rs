//! What befalls the processes and the files, by a seed: which fault comes next, and how kv.db changes.

use std::fs;
use std::io;
use std::path::Path;

use crate::machine::{beside, remove};
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
    /// The WAL's index is removed, which loses no lease.
    IndexRemoved,
    /// A member of the cluster is killed or stopped, and back after this time.
    Member { leads: bool, kill: bool, ms: u64 },
    /// Two members stand still at the same time, so that there is no quorum.
    NoQuorum { ms: u64 },
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

/// Where a process on a cluster stops or dies.
const POINTS_OF_A_CLUSTER: [&str; 3] = ["grant-before-commit", "grant-after-commit", "release-after-commit"];

const POINTS: [&str; 14] = [
    "grant-looked",
    "grant-before-commit",
    "grant-after-commit",
    "release-after-commit",
    "opening-begins",
    "opening-looked",
    "opening-sets-apart",
    "opening-put-right",
    "opening-read",
    "opening-noted",
    "epoch-before-commit",
    "epoch-after-commit",
    "checkpoint-before",
    "checkpoint-after",
];

/// Which fault comes next, by the seed.
#[derive(Debug)]
pub struct Schedule {
    pub random: Random,
    /// Whether a storm never ends.
    always: bool,
    /// Whether the store is a cluster.
    etcd: bool,
    /// How many faults of the present storm are left.
    storm: u64,
}

impl Schedule {
    /// The schedule of this seed; with `storm` all of it is one.
    pub fn new(seed: u64, storm: bool, etcd: bool) -> Self {
        Self {
            random: Random::new(seed),
            always: storm,
            etcd,
            storm: 0,
        }
    }

    /// How long it is calm before the next fault, in milliseconds.
    pub fn pause_ms(&mut self) -> u64 {
        let longest = if self.is_storm() { 80 } else { 240 };
        // Of one who died a cluster keeps the lease for seconds.
        let times = if self.etcd { 5 } else { 1 };
        self.random.between(10, longest * times)
    }

    /// The next fault. Now and then a storm begins, of some seconds in which kv.db changes again and again while processes
    /// stand still, inside an opening as well.
    pub fn next(&mut self) -> Fault {
        if self.is_storm() {
            self.storm = self.storm.saturating_sub(1);
            return if self.etcd { self.of_a_cluster() } else { self.stormy() };
        }
        if self.random.once_in(200) {
            self.storm = self.random.between(20, 200);
        }
        if self.etcd { self.of_a_cluster() } else { self.usual() }
    }

    fn is_storm(&self) -> bool {
        self.always || self.storm > 0
    }

    fn stormy(&mut self) -> Fault {
        match self.random.below(100) {
            0..30 => self.swap(),
            30..45 => self.point(),
            45..60 => Fault::Kill,
            60..85 => self.stop(5, 400),
            85..88 => Fault::IndexRemoved,
            88..90 => Fault::SidecarRemoved,
            90..96 => Fault::Copy,
            96..98 => self.stranger(),
            _ => self.stop(400, 2_000),
        }
    }

    fn usual(&mut self) -> Fault {
        let random = &mut self.random;
        match random.below(100) {
            0..25 => Fault::Kill,
            25..50 => self.stop(5, 1_200),
            50..60 => self.point(),
            60..70 => Fault::Clock {
                by: random.pick::<&str>(&["-1h", "+0", "+1h"]),
            },
            70..77 => self.stranger(),
            77..78 => Fault::IndexRemoved,
            78..80 => Fault::DiskFull {
                ms: random.between(20, 300),
            },
            80..81 => Fault::FolderMoved {
                ms: random.between(20, 300),
            },
            81..82 => Fault::SidecarRemoved,
            82..90 => Fault::Copy,
            90..96 => self.swap(),
            _ => self.stop(400, 2_000),
        }
    }

    /// What needs no file.
    fn of_a_cluster(&mut self) -> Fault {
        let random = &mut self.random;
        match random.below(100) {
            0..25 => Fault::Kill,
            25..50 => self.stop(5, 1_200),
            50..65 => self.point(),
            65..70 => Fault::Clock {
                by: random.pick::<&str>(&["-1h", "+0", "+1h"]),
            },
            70..90 => Fault::Member {
                leads: random.once_in(2),
                kill: random.once_in(2),
                ms: random.between(100, 3_000),
            },
            90..93 => Fault::NoQuorum {
                ms: random.between(100, 3_000),
            },
            _ => self.stop(1_000, 4_000),
        }
    }

    fn stop(&mut self, from: u64, to: u64) -> Fault {
        Fault::Stop {
            ms: self.random.between(from, to),
        }
    }

    fn point(&mut self) -> Fault {
        Fault::Point {
            point: if self.etcd {
                self.random.pick::<&str>(&POINTS_OF_A_CLUSTER)
            } else {
                self.random.pick::<&str>(&POINTS)
            },
            kill: self.random.once_in(2),
            pass: self.random.between(1, 4),
        }
    }

    fn stranger(&mut self) -> Fault {
        Fault::Stranger {
            begin: self.random.pick::<&str>(&[
                "begin immediate",
                "begin exclusive",
                "begin; select count(*) from leases",
            ]),
            ms: self.random.between(20, 500),
        }
    }

    fn swap(&mut self) -> Fault {
        Fault::Swap(*self.random.pick(&[
            Swap::DeletedAll,
            Swap::DeletedAlone,
            Swap::WalDeleted,
            Swap::MovedOver,
            Swap::MovedOverWithWal,
            Swap::WrittenOver,
            Swap::WrittenOverWithWal,
        ]))
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
