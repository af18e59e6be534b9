//! What belongs to one connection of the host, and ends with it.
//!
//! Every stateful function and table of a connection holds the same [`HostConnection`]; SQLite drops them when the
//! connection closes, and with the last one it is gone. Nothing here keeps a connection from closing.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use fence_core::{Epoch, Store};
use rusqlite::ffi;

use crate::answer::SqlError;
use crate::host::{self, Guest};
use crate::store::choice;

/// The connections that have our functions, by address. A connection's entry leaves with its last function, which SQLite
/// drops before it frees the connection: so no address stands here for anything but the connection that has it now.
static CONNECTIONS: Mutex<BTreeMap<usize, Weak<HostConnection>>> = Mutex::new(BTreeMap::new());

/// One connection of the host.
pub(crate) struct HostConnection {
    db: *mut ffi::sqlite3,
    /// All functions and tables are registered; set once, at the end of a load.
    complete: AtomicBool,
    /// The store that it uses, once it was needed or chosen.
    store: Mutex<Option<Store>>,
    /// The last field, and so the last to go: what stands above it may call the host when it is dropped.
    _guest: Guest,
}

// SAFETY: the handle may be used on any thread, for a SQLite without threads is refused at load; SQLite calls our
// functions under the connection's own mutex, or in a host that keeps its threads apart itself.
unsafe impl Send for HostConnection {}
// SAFETY: as above.
unsafe impl Sync for HostConnection {}

impl HostConnection {
    /// What belongs to this connection: the same at every load into it.
    pub(crate) fn of(db: *mut ffi::sqlite3, guest: &Guest) -> Arc<Self> {
        let mut connections = connections();
        if let Some(known) = connections.get(&db.addr()).and_then(Weak::upgrade) {
            return known;
        }
        let new = Arc::new(Self {
            db,
            complete: AtomicBool::new(false),
            store: Mutex::new(None),
            _guest: guest.another(),
        });
        connections.insert(db.addr(), Arc::downgrade(&new));
        new
    }

    /// The connection itself. It is open for as long as a function that SQLite calls on it runs.
    pub(crate) fn db(&self) -> *mut ffi::sqlite3 {
        self.db
    }

    /// The store of this connection, opened now if it was not needed before. An opening that fails is tried again at the
    /// next call.
    pub(crate) fn store(&self) -> Result<Store, SqlError> {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        match &*store {
            Some(store) => Ok(store.clone()),
            None => {
                let opened = choice::open_default(self.db)?;
                Ok(store.insert(opened).clone())
            }
        }
    }

    /// The epoch of the store that this connection uses or would use. Opens none and creates none; None if there is none.
    pub(crate) fn epoch(&self) -> Result<Option<Epoch>, SqlError> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        match &*store {
            Some(store) => Ok(Some(store.epoch()?)),
            None => choice::peek_epoch(self.db),
        }
    }

    /// Uses this store from now on.
    pub(crate) fn set_store(&self, chosen: Store) -> Store {
        let mut store = self.store.lock().unwrap_or_else(PoisonError::into_inner);
        let before = store.replace(chosen.clone());
        drop(store);
        if let Some(before) = before {
            before.close();
        }
        chosen
    }

    /// Whether the host wants the running statement to stop.
    pub(crate) fn is_interrupted(&self) -> bool {
        host::is_interrupted(self.db)
    }

    /// Whether everything is registered already.
    pub(crate) fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Acquire)
    }

    /// Everything is registered.
    pub(crate) fn set_complete(&self) {
        self.complete.store(true, Ordering::Release);
    }
}

impl Drop for HostConnection {
    fn drop(&mut self) {
        connections().remove(&self.db.addr());
        // Once the guest has gone the host may be unloaded, so the store's own connection goes before.
        if let Some(store) = self.store.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            store.close();
        }
    }
}

fn connections() -> MutexGuard<'static, BTreeMap<usize, Weak<HostConnection>>> {
    // Nothing that can panic runs under this mutex; and were it so, the map would still be whole.
    CONNECTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}
