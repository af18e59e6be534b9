//! Which engine a store's path asks for: `etcd://` or `etcds://` a cluster, everything else a file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::clock::{Clock, SystemClock};
use crate::engine::Engine;
use crate::error::Result;
use crate::fence::Epoch;
use crate::sqlite;

/// What a cluster's location begins with: without and with TLS.
const CLUSTER: [&str; 2] = ["etcd://", "etcds://"];

/// The engine at this path, ready to be used.
pub(crate) fn open(path: &Path) -> Result<Arc<dyn Engine>> {
    if let Some(location) = cluster(path) {
        return on_cluster::open(location);
    }
    let engine = sqlite::find(path)?;
    engine.ensure_open()?;
    Ok(engine)
}

/// An engine of its own at this path, with this clock, as another process would have one.
pub(crate) fn open_alone(path: &Path, clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
    if let Some(location) = cluster(path) {
        return on_cluster::open_alone(location, clock);
    }
    let engine = sqlite::Engine::alone(path, clock)?;
    engine.ensure_open()?;
    Ok(Arc::new(engine))
}

/// An engine in memory, private to whoever asks for it.
pub(crate) fn in_memory() -> Result<Arc<dyn Engine>> {
    let engine = sqlite::Engine::in_memory(Arc::new(SystemClock));
    engine.ensure_open()?;
    Ok(Arc::new(engine))
}

/// The path in the spelling that stands for all. Opens nothing.
pub(crate) fn locate(path: &Path) -> Result<PathBuf> {
    match cluster(path) {
        Some(location) => on_cluster::locate(location),
        None => sqlite::locate(path),
    }
}

/// Whether there is a store.
pub(crate) fn exists(path: &Path) -> Result<bool> {
    match cluster(path) {
        Some(location) => Ok(on_cluster::peek_epoch(location)?.is_some()),
        None => Ok(sqlite::locate(path)?.exists()),
    }
}

/// The epoch that stands there, if there is a store. Makes none.
pub(crate) fn peek_epoch(path: &Path) -> Result<Option<Epoch>> {
    match cluster(path) {
        Some(location) => on_cluster::peek_epoch(location),
        None => sqlite::peek_epoch(path),
    }
}

/// Waits until no fork of another thread is under way, for whoever is about to be unloaded.
pub(crate) fn wait_for_fork() {
    sqlite::wait_for_fork();
}

/// The location of a cluster, if the path is one.
fn cluster(path: &Path) -> Option<&str> {
    let text = path.to_str()?;
    CLUSTER.iter().any(|scheme| text.starts_with(scheme)).then_some(text)
}

#[cfg(feature = "etcd")]
mod on_cluster {
    use super::*;
    use crate::etcd::{self, Location, find};

    pub(super) fn open(location: &str) -> Result<Arc<dyn Engine>> {
        let engine = find(Location::parse(location)?)?;
        engine.ensure_open()?;
        Ok(engine)
    }

    pub(super) fn open_alone(location: &str, clock: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
        let engine = etcd::Engine::new(Location::parse(location)?, clock);
        engine.ensure_open()?;
        Ok(Arc::new(engine))
    }

    pub(super) fn locate(location: &str) -> Result<PathBuf> {
        Ok(PathBuf::from(Location::parse(location)?.shown()))
    }

    pub(super) fn peek_epoch(location: &str) -> Result<Option<Epoch>> {
        find(Location::parse(location)?)?.peek_epoch()
    }
}

/// A library that was built without: it makes no file of that name.
#[cfg(not(feature = "etcd"))]
mod on_cluster {
    use super::*;
    use crate::error::Error;

    pub(super) fn open(_: &str) -> Result<Arc<dyn Engine>> {
        Err(Error::NoClusters)
    }

    pub(super) fn open_alone(_: &str, _: Arc<dyn Clock>) -> Result<Arc<dyn Engine>> {
        Err(Error::NoClusters)
    }

    pub(super) fn locate(_: &str) -> Result<PathBuf> {
        Err(Error::NoClusters)
    }

    pub(super) fn peek_epoch(_: &str) -> Result<Option<Epoch>> {
        Err(Error::NoClusters)
    }
}
