//! The engine: what [`crate::engine`] asks for, each call done by this process's session.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::line;
use super::location::Location;
use super::process::PerProcess;
use super::session::{Session, patience};
use crate::clock::{Clock, SystemClock};
use crate::engine::{self, Granted, Name, PageMark, Request};
use crate::error::Result;
use crate::fence::{Epoch, Fence};
use crate::key::Key;
use crate::lease::Hold;
use crate::limits::{Ttl, Wait};

/// The engines of this process, by their location. One that was made stays: what it has seen of its cluster tells whether
/// that was restored (LOCK-08).
static ENGINES: PerProcess<Mutex<HashMap<PathBuf, Arc<Engine>>>> = PerProcess::new();

/// One store on a cluster.
pub(crate) struct Engine {
    location: Location,
    path: PathBuf,
    clock: Arc<dyn Clock>,
    session: PerProcess<Arc<Session>>,
}

/// The engine of this location: the one that the process has, or a new one. Asks nobody.
pub(crate) fn find(location: Location) -> Result<Arc<Engine>> {
    let engines = ENGINES.get_or_make(|| Ok(Mutex::default()))?;
    let mut engines = engines.lock().unwrap_or_else(PoisonError::into_inner);
    let path = PathBuf::from(location.shown());
    if let Some(engine) = engines.get(&path).filter(|engine| engine.location == location) {
        return Ok(Arc::clone(engine));
    }
    let engine = Arc::new(Engine::new(location, Arc::new(SystemClock)));
    engines.insert(path, Arc::clone(&engine));
    Ok(engine)
}

impl Engine {
    pub(crate) fn new(location: Location, clock: Arc<dyn Clock>) -> Self {
        Self {
            path: PathBuf::from(location.shown()),
            location,
            clock,
            session: PerProcess::new(),
        }
    }

    /// Reads the epoch, which tells whether the cluster can be used, and makes one where none is.
    pub(crate) fn ensure_open(&self) -> Result<()> {
        self.session()?.look_at_epoch(None, patience()).map(drop)
    }

    /// The epoch that stands in the cluster, if there is one. Makes none.
    pub(crate) fn peek_epoch(&self) -> Result<Option<Epoch>> {
        self.session()?.peek_epoch(patience())
    }

    fn session(&self) -> Result<&Arc<Session>> {
        self.session.get_or_make(|| {
            let (location, clock) = (self.location.clone(), Arc::clone(&self.clock));
            Ok(Arc::new(Session::new(location, self.path.clone(), clock)?))
        })
    }
}

impl engine::Engine for Engine {
    fn path(&self) -> &Path {
        &self.path
    }

    /// By this machine's lease clock. The cluster's decides; this one is never ahead of it.
    fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    fn epoch(&self) -> Result<Epoch> {
        Ok(self.session()?.look_at_epoch(None, patience())?.epoch)
    }

    fn advance(&self, fence: Fence) -> Result<Epoch> {
        Ok(self.session()?.look_at_epoch(Some(fence), patience())?.epoch)
    }

    fn acquire(&self, request: &Request<'_>, wait: Wait, interrupted: &dyn Fn() -> bool) -> Result<Option<Granted>> {
        line::acquire(self.session()?, request, wait, interrupted)
    }

    fn renew(&self, key: Key<'_>, name: Name, ttl: Option<Ttl>) -> Result<bool> {
        self.session()?.renew(key, name, ttl)
    }

    fn release(&self, key: Key<'_>, name: Name) -> Result<bool> {
        self.session()?.release(key, name)
    }

    fn renew_all(&self, fence: Fence, ttl: Option<Ttl>) -> Result<bool> {
        self.session()?.renew_all(fence, ttl)
    }

    fn release_all(&self, fence: Fence) -> Result<bool> {
        self.session()?.release_all(fence)
    }

    fn page(&self, mark: &mut PageMark) -> Result<Option<Vec<Hold>>> {
        self.session()?.page(mark)
    }
}
