//! The small file beside a store (`kv.db-fence`): what must hold whatever becomes of kv.db itself.
//!
//! It is used through classic POSIX record locks, which die with the process however it died and are not inherited by
//! fork. kv.db itself is never opened by hand: closing such a file would drop the locks that SQLite holds on it.
//!
//! * **Opening.** Byte 0 is locked while a process opens the store, so that one process at a time finds out whether
//!   kv.db is still the file that its WAL was written for ([`Sidecar::opening`]).
//! * **Presence.** A process that has bound leases or waits in a line holds the byte of its *token*, a random number.
//!   Whoever sees that byte unlocked knows that the process has died, also from another container, for no process id
//!   is compared ([`Sidecar::token`], [`Sidecar::is_alive`]).
//!   Where the file itself was removed nobody can tell, so the next opening lets bound leases last for their ttl.
//! * **Identity.** Its text tells which kv.db was opened last, with which WAL and which index of it, and when one of us
//!   last wrote to kv.db ([`Note`]).
//!
//! The system drops all record locks of a process on a file as soon as the process closes *any* descriptor of it. So a
//! process opens this file once, whatever it uses it for, and closes it when nothing in the process uses it any more.

use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread::sleep;
use std::time::{Duration, Instant};

use once_cell::sync::Lazy;
use rusqlite::ffi;

use super::location::beside;
use crate::error::{Error, Result};

/// The byte that is locked while a store opens.
const OPENING: i64 = 0;
/// Where the bytes of the tokens begin. A token is a random number of 62 bits.
const PRESENCE: i64 = 1 << 32;
/// How long the opening of another process is waited for.
const OPENING_PATIENCE: Duration = Duration::from_secs(5);

/// Every sidecar that this process has open.
static OPEN: Lazy<Mutex<HashMap<PathBuf, Weak<Sidecar>>>> = Lazy::new(Mutex::default);

/// The sidecars that stay open until the process ends: those of stores in which it took bound leases. A bound lease
/// ends with the process, not with the connection that took it.
static KEPT: Mutex<Vec<Arc<Sidecar>>> = Mutex::new(Vec::new());

/// The sidecar of one store, open once in a process.
#[derive(Debug)]
pub(super) struct Sidecar {
    path: PathBuf,
    file: File,
    /// Keeps the threads of this process apart; record locks do not.
    opening: Mutex<()>,
    /// The token that this process holds, and the process that it was made in.
    token: Mutex<Option<(u32, i64)>>,
}

impl Sidecar {
    /// The sidecar of the store at `path`; the file is made if need be.
    pub(super) fn open(store: &Path) -> Result<Arc<Self>> {
        let path = beside(store, "-fence");
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sidecar) = open.get(&path).and_then(Weak::upgrade)
            && !sidecar.is_replaced()
        {
            return Ok(sidecar);
        }
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .and_then(|file| {
                if file.metadata()?.size() == 0 {
                    share_like(store, &file)?;
                }
                Ok(file)
            })
            .map_err(|source| Error::Io {
                path: path.clone(),
                doing: "opening the file beside the store",
                source,
            })?;
        let sidecar = Arc::new(Self {
            path: path.clone(),
            file,
            opening: Mutex::new(()),
            token: Mutex::new(None),
        });
        open.retain(|_, sidecar| sidecar.strong_count() > 0);
        open.insert(path, Arc::downgrade(&sidecar));
        Ok(sidecar)
    }

    /// Whether another file, or none, stands at the path now.
    pub(super) fn is_replaced(&self) -> bool {
        let Ok(ours) = self.file.metadata() else { return true };
        std::fs::metadata(&self.path).map_or(true, |found| !is_same(&ours, &found))
    }

    /// Keeps every other process from opening the store until the answer is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::Busy`] when another process does not finish its own opening within 5 s.
    pub(super) fn opening(&self) -> Result<Opening<'_>> {
        let thread = self.opening.lock().unwrap_or_else(PoisonError::into_inner);
        let start = Instant::now();
        loop {
            match self.lock_opening() {
                Ok(()) => {
                    return Ok(Opening {
                        sidecar: self,
                        _thread: thread,
                    });
                }
                Err(error) if !is_taken(&error) => {
                    return Err(Error::Io {
                        path: self.path.clone(),
                        doing: "waiting for another process to open the store",
                        source: error,
                    });
                }
                Err(_) if start.elapsed() < OPENING_PATIENCE => sleep(Duration::from_micros(200)),
                Err(_) => {
                    let busy = ffi::Error::new(ffi::SQLITE_BUSY);
                    return Err(Error::Busy {
                        path: self.path.clone(),
                        doing: "waiting for another process to open the store",
                        source: rusqlite::Error::SqliteFailure(busy, None),
                    });
                }
            }
        }
    }

    /// [`Sidecar::opening`] without waiting: nothing if somebody else is at it.
    pub(super) fn try_opening(&self) -> Option<Opening<'_>> {
        let thread = self.opening.try_lock().ok()?;
        self.lock_opening().ok().map(|()| Opening {
            sidecar: self,
            _thread: thread,
        })
    }

    fn lock_opening(&self) -> io::Result<()> {
        record_lock(&self.file, libc::F_SETLK, libc::F_WRLCK as libc::c_short, OPENING).map(drop)
    }

    /// What was noted last.
    pub(super) fn noted(&self) -> Option<Note> {
        let mut text = [0; 512];
        let length = self.file.read_at(&mut text, 0).ok()?;
        Note::parse(std::str::from_utf8(text.get(..length)?).ok()?)
    }

    /// This process's token. Its byte is locked from the first call until the process ends or the store is closed.
    pub(super) fn token(&self) -> Result<i64> {
        let mut held = self.token.lock().unwrap_or_else(PoisonError::into_inner);
        let process = std::process::id();
        // A child made by fork has its parent's memory, but not its parent's locks.
        if let Some((owner, token)) = *held
            && owner == process
        {
            return Ok(token);
        }
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|source| Error::Random { source })?;
        let token = (i64::from_be_bytes(random) & ((1 << 62) - 1)).max(1);
        record_lock(
            &self.file,
            libc::F_SETLK,
            libc::F_WRLCK as libc::c_short,
            PRESENCE + token,
        )
        .map_err(|source| Error::Io {
            path: self.path.clone(),
            doing: "locking this process's byte",
            source,
        })?;
        *held = Some((process, token));
        Ok(token)
    }

    /// Keeps the token's lock until the process ends, even if every connection closes before.
    pub(super) fn keep(self: &Arc<Self>) {
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        if !kept.iter().any(|sidecar| Arc::ptr_eq(sidecar, self)) {
            kept.push(Arc::clone(self));
        }
    }

    /// Whether the process with this token lives. When the system does not tell, it lives.
    pub(super) fn is_alive(&self, token: i64) -> bool {
        let held = *self.token.lock().unwrap_or_else(PoisonError::into_inner);
        if held == Some((std::process::id(), token)) {
            return true; // A process does not see its own locks.
        }
        if !(1..1 << 62).contains(&token) {
            return false; // No process ever had it: a row edited by hand.
        }
        record_lock(
            &self.file,
            libc::F_GETLK,
            libc::F_WRLCK as libc::c_short,
            PRESENCE + token,
        )
        .map_or(true, |found| found.l_type != libc::F_UNLCK as libc::c_short)
    }
}

/// The right to open the store, alone among all processes.
pub(super) struct Opening<'a> {
    sidecar: &'a Sidecar,
    _thread: MutexGuard<'a, ()>,
}

impl Opening<'_> {
    /// What was noted last.
    pub(super) fn noted(&self) -> Option<Note> {
        self.sidecar.noted()
    }

    /// Whether another file stands beside the store by now, so that another process may be opening the store too.
    pub(super) fn is_replaced(&self) -> bool {
        self.sidecar.is_replaced()
    }

    /// The number of the file beside the store: no other opening that is under way has the same.
    pub(super) fn inode(&self) -> u64 {
        self.sidecar.file.metadata().map_or(0, |found| found.ino())
    }

    /// Removes the file if nobody ever noted anything in it: what it was made for turned out to be no store.
    pub(super) fn discard_if_unused(&self) {
        if self.sidecar.file.metadata().is_ok_and(|found| found.size() == 0) {
            // A file that stays does no harm.
            let _ = std::fs::remove_file(&self.sidecar.path);
        }
    }

    /// Notes which files are open now.
    pub(super) fn note(&self, note: &Note) -> Result<()> {
        let text = note.print();
        self.sidecar
            .file
            .write_all_at(text.as_bytes(), 0)
            .and_then(|()| self.sidecar.file.set_len(text.len() as u64))
            .map_err(|source| Error::Io {
                path: self.sidecar.path.clone(),
                doing: "noting which files are open",
                source,
            })
    }
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        // It cannot fail for a lock that is held; and the process's end would drop it.
        let _ = record_lock(
            &self.sidecar.file,
            libc::F_SETLK,
            libc::F_UNLCK as libc::c_short,
            OPENING,
        );
    }
}

/// One file, told from every other: an inode's number is given anew after the file's end, its time of birth is not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FileId {
    device: u64,
    inode: u64,
    born_ns: u128,
}

impl FileId {
    /// The file at this path, if there is one.
    pub(super) fn of(path: &Path) -> Option<Self> {
        std::fs::metadata(path).ok().map(|found| Self::from_metadata(&found))
    }

    pub(super) fn from_metadata(found: &Metadata) -> Self {
        let born = found
            .created()
            .ok()
            .and_then(|time| time.duration_since(std::time::UNIX_EPOCH).ok());
        Self {
            device: found.dev(),
            inode: found.ino(),
            born_ns: born.map_or(0, |since| since.as_nanos()),
        }
    }
}

/// Which kv.db, which WAL and which index of it belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    pub(super) store: FileId,
    pub(super) wal: FileId,
    pub(super) index: FileId,
}

/// What is noted: which files belong together, and when kv.db was last written to by one of us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Note {
    pub(super) identity: Identity,
    /// The time of change of kv.db; nothing while a checkpoint writes to it.
    pub(super) changed: Option<i64>,
}

impl Note {
    const HEAD: &'static str = "fence 1";

    fn print(&self) -> String {
        let mut text = String::from(Self::HEAD);
        let Identity { store, wal, index } = self.identity;
        for file in [store, wal, index] {
            text.push_str(&format!(" {} {} {}", file.device, file.inode, file.born_ns));
        }
        text.push_str(&format!(" {}\n", self.changed.unwrap_or(0)));
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut fields = text.strip_prefix(Self::HEAD)?.split_whitespace();
        let mut file = || {
            Some(FileId {
                device: fields.next()?.parse().ok()?,
                inode: fields.next()?.parse().ok()?,
                born_ns: fields.next()?.parse().ok()?,
            })
        };
        let identity = Identity {
            store: file()?,
            wal: file()?,
            index: file()?,
        };
        let changed = fields.next()?.parse().ok()?;
        Some(Self {
            identity,
            changed: Some(changed).filter(|changed| *changed != 0),
        })
    }
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    a.dev() == b.dev() && a.ino() == b.ino()
}

/// Gives the new file the owner and the permissions of the store, as SQLite does for a WAL.
fn share_like(store: &Path, file: &File) -> io::Result<()> {
    let Ok(found) = std::fs::metadata(store) else {
        return Ok(());
    };
    file.set_permissions(found.permissions())?;
    let ours = file.metadata()?;
    if (found.uid(), found.gid()) != (ours.uid(), ours.gid()) {
        // Only root may; for anybody else the permissions must do.
        let _ = std::os::unix::fs::fchown(file, Some(found.uid()), Some(found.gid()));
    }
    Ok(())
}

fn is_taken(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EACCES | libc::EAGAIN | libc::EINTR))
}

/// One call of fcntl about one byte.
fn record_lock(file: &File, command: libc::c_int, kind: libc::c_short, byte: i64) -> io::Result<libc::flock> {
    // SAFETY: flock is a plain C struct for which all zeros is a value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    lock.l_type = kind;
    lock.l_whence = libc::SEEK_SET as libc::c_short;
    lock.l_start = byte as libc::off_t;
    lock.l_len = 1;
    // SAFETY: the descriptor is open while `file` lives, and `lock` lives through the call.
    let answer = unsafe { libc::fcntl(file.as_raw_fd(), command, &raw mut lock) };
    if answer == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(lock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_reads_back_as_it_was_noted() -> std::result::Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let store = folder.path().join("kv.db");
        std::fs::write(&store, "x")?;
        let file = FileId::of(&store).ok_or("no file")?;
        let identity = Identity {
            store: file,
            wal: file,
            index: file,
        };
        let sidecar = Sidecar::open(&store)?;
        let opening = sidecar.opening()?;
        assert_eq!(opening.noted(), None);
        for changed in [None, Some(i64::MAX)] {
            let note = Note { identity, changed };
            opening.note(&note)?;
            assert_eq!(opening.noted(), Some(note));
        }
        Ok(())
    }

    #[test]
    fn a_process_sees_its_own_token_as_alive_and_no_other() -> std::result::Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let sidecar = Sidecar::open(&folder.path().join("kv.db"))?;
        let token = sidecar.token()?;
        assert_eq!(sidecar.token()?, token);
        assert!(sidecar.is_alive(token));
        assert!(!sidecar.is_alive(token ^ 1));
        assert!(!sidecar.is_alive(-1));
        Ok(())
    }
}
