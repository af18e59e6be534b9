//! The three files of an open store, and what is done at an opening when one of them was changed behind SQLite's back.
//!
//! SQLite takes it that kv.db, its WAL (`-wal`) and the WAL's index (`-shm`) belong together, and finds two of them by
//! name. Where somebody removes, moves or restores one of the three, it would lay old pages over a new file, or read a
//! WAL by the index of another. So which three belong together is noted beside the store at each opening, and the next
//! one puts right what no longer fits ([`put_right`]). All of this happens while no other process opens the store; one
//! that still has it open finds out before it hands out its next grant, for it looks whether the three are still there.
//!
//! kv.db may also be written over in place, as `cp` does. In WAL mode it is written to by checkpoints alone, and ours note
//! when; so a time of change that nobody noted is somebody else's writing. It may be harmless (a stranger's checkpoint):
//! nothing is thrown away then, but everybody opens anew, with a larger epoch.

use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use super::location::beside;
use super::sidecar::{FileId, Identity, Note};
use crate::error::{Error, Result};

/// Where SQLite keeps what belongs to kv.db.
#[derive(Debug)]
pub(super) struct Names {
    pub(super) store: PathBuf,
    wal: PathBuf,
    index: PathBuf,
}

impl Names {
    pub(super) fn of(store: &Path) -> Self {
        Self {
            store: store.to_owned(),
            wal: beside(store, "-wal"),
            index: beside(store, "-shm"),
        }
    }

    /// The three files that stand there now; nothing if one is missing.
    pub(super) fn identity(&self) -> Option<Identity> {
        self.look().map(|(identity, _)| identity)
    }

    /// When kv.db was changed last, in nanoseconds.
    pub(super) fn changed(&self) -> Option<i64> {
        std::fs::metadata(&self.store).ok().map(|found| changed(&found))
    }

    /// The three files that stand there now, and when kv.db was changed last; nothing if one is missing. One look at each:
    /// every grant pays for this.
    pub(super) fn look(&self) -> Option<(Identity, i64)> {
        let store = std::fs::metadata(&self.store).ok()?;
        let identity = Identity {
            store: FileId::from_metadata(&store),
            wal: FileId::of(&self.wal)?,
            index: FileId::of(&self.index)?,
        };
        Some((identity, changed(&store)))
    }

    /// Before SQLite reads the file: takes away, or sets apart, what does not belong to it.
    ///
    /// * kv.db was replaced: its WAL and index go. A WAL that came with the new kv.db (a copy of both) stays.
    /// * The WAL was removed or replaced: its index goes, which would tell where to read in the one that is gone.
    /// * The index was removed: whoever has the store open still writes by the old one, to the same place in the WAL as
    ///   we would by a new one. So the WAL goes on in a copy: they write to what nobody reads any more.
    ///
    /// * kv.db was written over, or SQLite found the files broken, `distrust`: perhaps the WAL was written over as well, so
    ///   that its index tells of what is no longer there. It is made anew from what the WAL holds.
    ///
    /// In each case what another process commits afterwards reaches nobody, for it no longer finds the files that it
    /// opened.
    pub(super) fn put_right(&self, noted: Option<Note>, store: FileId, distrust: bool) -> Result<()> {
        let Some(Note { identity, changed }) = noted else {
            return Ok(());
        };
        let noted = identity;
        let wal = FileId::of(&self.wal);
        let index = FileId::of(&self.index);
        let is_noted_wal = wal == Some(noted.wal);
        if store == noted.store && is_noted_wal {
            if distrust || (changed.is_some() && changed != self.changed()) {
                remove(&self.index)?;
            } else if index == Some(noted.index) {
                return Ok(());
            }
            return self.set_apart();
        }
        if index == Some(noted.index) {
            remove(&self.index)?;
        }
        if store != noted.store && is_noted_wal {
            remove(&self.wal)?;
        }
        Ok(())
    }

    /// Puts a copy of the WAL in its place.
    fn set_apart(&self) -> Result<()> {
        let copy = beside(&self.store, "-wal-copy");
        let run = || {
            std::fs::copy(&self.wal, &copy)?;
            let found = std::fs::metadata(&self.wal)?;
            // Only root may give a file away; for anybody else it is the same owner, or the permissions must do.
            let _ = std::os::unix::fs::chown(&copy, Some(found.uid()), Some(found.gid()));
            std::fs::File::open(&copy)?.sync_all()?;
            std::fs::rename(&copy, &self.wal)
        };
        run().map_err(|source| Error::Io {
            path: self.wal.clone(),
            doing: "setting the WAL apart after its index was removed",
            source,
        })
    }
}

/// When the file was changed last, in nanoseconds.
fn changed(found: &Metadata) -> i64 {
    found
        .ctime()
        .saturating_mul(1_000_000_000)
        .saturating_add(found.ctime_nsec())
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => Err(Error::Io {
            path: path.to_owned(),
            doing: "removing what belongs to a store that was replaced",
            source,
        }),
        _ => Ok(()),
    }
}
