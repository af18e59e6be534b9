//! One engine, and so one connection, for each kv.db in a process. It goes when nobody uses it any more.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use once_cell::sync::Lazy;

use super::{Engine, connection, fork, location};
use crate::clock::SystemClock;
use crate::error::Result;
use crate::fence::{Epoch, Fence};

/// The engines of a process, by the resolved path of their file.
pub(super) type Engines = HashMap<PathBuf, Weak<Engine>>;

static ENGINES: Lazy<Mutex<Engines>> = Lazy::new(Mutex::default);

/// The largest fence that this process has seen of each store that it has closed. A store that is opened again and knows
/// less was restored meanwhile (LOCK-08).
static SEEN: Lazy<Mutex<HashMap<PathBuf, Fence>>> = Lazy::new(Mutex::default);

/// The engine of this file: the one that the process has, or a new one.
pub(crate) fn find(path: &Path) -> Result<Arc<Engine>> {
    let path = location::resolve(path)?;
    fork::watch();
    let mut engines = lock();
    if let Some(engine) = engines.get(&path).and_then(Weak::upgrade) {
        return Ok(engine);
    }
    engines.retain(|_, engine| engine.strong_count() > 0);
    let engine = Arc::new(Engine::new(path.clone(), Arc::new(SystemClock)));
    engine.shared.store(true, Ordering::Relaxed);
    if let Some(seen) = seen().get(&path) {
        engine.has_seen(*seen);
    }
    engines.insert(path, Arc::downgrade(&engine));
    Ok(engine)
}

/// The path by which a file's engine is found.
pub(crate) fn locate(path: &Path) -> Result<PathBuf> {
    location::resolve(path)
}

/// The epoch in this file, if there is one, without opening it as a store.
pub(crate) fn peek_epoch(path: &Path) -> Result<Option<Epoch>> {
    let path = location::resolve(path)?;
    let open = lock().get(&path).and_then(Weak::upgrade);
    match open {
        Some(engine) => engine.epoch().map(Some),
        None if path.exists() => connection::peek_epoch(&path).map(Some),
        None => Ok(None),
    }
}

/// Remembers what an engine has seen that goes.
pub(super) fn remember(path: &Path, fence: Fence) {
    let mut seen = seen();
    let largest = seen.get(path).map_or(fence, |before| fence.max(*before));
    seen.insert(path.to_owned(), largest);
}

fn seen() -> MutexGuard<'static, HashMap<PathBuf, Fence>> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The engines, for this thread alone.
pub(super) fn lock() -> MutexGuard<'static, Engines> {
    ENGINES.lock().unwrap_or_else(PoisonError::into_inner)
}
