//! The three files of an open store, and what is done at an opening when one of them was changed behind SQLite's back.
//!
//! SQLite takes it that kv.db, its WAL (`-wal`) and the WAL's index (`-shm`) belong together, and finds two of them by
//! name. Where somebody removes, moves or restores one of the three, it would lay old pages over a new file, or read a
//! WAL by the index of another. So which three belong together is noted beside the store at each opening, and the next
//! one puts right what no longer fits ([`Names::put_right`]). All of this happens while no other process opens the store; one
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
use super::sidecar::{FileId, Identity, Note, Opening};
use crate::error::{Error, Result};
use crate::fault;

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

    /// The WAL that stands there now.
    pub(super) fn wal(&self) -> Option<FileId> {
        FileId::of(&self.wal)
    }

    /// Whether nothing is written in the WAL that stands there now.
    pub(super) fn is_wal_empty(&self) -> bool {
        std::fs::metadata(&self.wal).is_ok_and(|found| found.size() == 0)
    }

    /// Before SQLite reads the file: takes away, or sets apart, what does not belong to it. With `distrust` SQLite has
    /// found the files broken.
    ///
    /// Where the three are not those that were noted, or kv.db was written over, the index goes: it tells where to read
    /// in a WAL that may be another by now, and SQLite makes it anew from what the WAL holds. Whoever has the old one
    /// open still writes by it, to the same place in the WAL as we would by a new one. So the WAL goes on in a copy, and
    /// they write to what nobody reads any more. But
    ///
    /// * a WAL that was noted with another kv.db goes: SQLite would lay its pages over this one;
    /// * so does every WAL beside an empty kv.db. SQLite would remove it, but not its index.
    ///
    /// A WAL that came with a new kv.db (a copy of both) so stays. In each case what another process commits afterwards
    /// reaches nobody, for it no longer finds the files that it opened; and what it has handed out before was committed
    /// while its index stood there still, so it is in the copy.
    ///
    /// All of this is for one opening at a time. Where the file beside the store was removed another may be under way, with
    /// a file of its own, and what is put right here would be its work: then the answer is false, and this one is to
    /// begin anew.
    pub(super) fn put_right(&self, opening: &Opening<'_>, store: &Metadata, distrust: bool) -> Result<bool> {
        let noted = opening.noted();
        let wal = self.wal();
        let index = FileId::of(&self.index);
        let is_empty = store.size() == 0;
        let id = FileId::from_metadata(store);
        let fits = match noted {
            Some(Note { identity, changed }) => {
                (id, wal, index) == (identity.store, Some(identity.wal), Some(identity.index))
                    && changed.is_none_or(|noted| noted == self::changed(store))
            }
            // The file beside the store is gone, or this is its first opening.
            None => wal.is_some() == index.is_some() && !(is_empty && wal.is_some()),
        };
        if fits && !distrust {
            return Ok(true);
        }
        fault::point("opening-puts-right");
        if opening.is_replaced() {
            return Ok(false);
        }
        remove(&self.index)?;
        match noted {
            _ if wal.is_none() => {}
            Some(Note { identity, .. }) if id != identity.store && wal == Some(identity.wal) => remove(&self.wal)?,
            _ if is_empty => remove(&self.wal)?,
            _ => return self.set_apart(opening, store),
        }
        Ok(true)
    }

    /// Puts a copy of the WAL in its place. It is noted with this kv.db before it stands there: should another kv.db be
    /// put in place meanwhile, the copy is known not to belong to that.
    ///
    /// False if another opening is under way, as for [`Names::put_right`]. Its copy has another name: the one that a killed
    /// process left is written over by the next opening with the same file beside the store.
    fn set_apart(&self, opening: &Opening<'_>, store: &Metadata) -> Result<bool> {
        let copy = beside(&self.store, &format!("-wal-copy-{:x}", opening.inode()));
        remove(&copy)?;
        let run = || -> io::Result<FileId> {
            std::fs::copy(&self.wal, &copy)?;
            let found = std::fs::metadata(&self.wal)?;
            // Only root may give a file away; for anybody else it is the same owner, or the permissions must do.
            let _ = std::os::unix::fs::chown(&copy, Some(found.uid()), Some(found.gid()));
            let file = std::fs::File::open(&copy)?;
            file.sync_all()?;
            Ok(FileId::from_metadata(&file.metadata()?))
        };
        let failed = |source| Error::Io {
            path: self.wal.clone(),
            doing: "setting the WAL apart from those who still write to it",
            source,
        };
        let wal = match run() {
            // Gone meanwhile: there is nothing to set apart.
            Err(source) if source.kind() == io::ErrorKind::NotFound => {
                remove(&copy)?;
                return Ok(true);
            }
            done => done.map_err(failed)?,
        };
        if let Some(Note { identity, .. }) = opening.noted() {
            let identity = Identity {
                store: FileId::from_metadata(store),
                wal,
                ..identity
            };
            let changed = Some(changed(store));
            opening.note(&Note { identity, changed })?;
        }
        fault::point("opening-sets-apart");
        if opening.is_replaced() {
            remove(&copy)?;
            return Ok(false);
        }
        std::fs::rename(&copy, &self.wal).map_err(failed)?;
        Ok(true)
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
