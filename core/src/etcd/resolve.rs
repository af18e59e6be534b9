//! From a member's name to its addresses.
//!
//! The agent asks for every request, so answers are remembered for [`FRESH`]; and an answer that is older does as long as
//! no new one is to be had. An address needs no asking. A name is looked up by the system in a thread of its own, for
//! that is the only way to stop waiting for it; it is the one thread that this client ever starts, and it ends with the
//! system's answer.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ureq::config::Config;
use ureq::http::Uri;
use ureq::unversioned::resolver::{DefaultResolver, ResolvedSocketAddrs, Resolver};
use ureq::unversioned::transport::NextTimeout;

/// For how long an answer is used without asking again.
const FRESH: Duration = Duration::from_secs(30);

/// Looks up names and remembers what it found.
#[derive(Debug, Default)]
pub(super) struct Remembering {
    system: DefaultResolver,
    known: Mutex<HashMap<String, (Instant, Vec<SocketAddr>)>>,
}

impl Remembering {
    fn known(&self) -> MutexGuard<'_, HashMap<String, (Instant, Vec<SocketAddr>)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn filled(&self, addresses: &[SocketAddr]) -> ResolvedSocketAddrs {
        let mut filled = self.empty();
        // There is room for 16; the system's answer was cut to that.
        addresses.iter().take(16).for_each(|address| filled.push(*address));
        filled
    }
}

impl Resolver for Remembering {
    fn resolve(&self, uri: &Uri, config: &Config, timeout: NextTimeout) -> Result<ResolvedSocketAddrs, ureq::Error> {
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        if let Ok(address) = authority.parse::<SocketAddr>() {
            return Ok(self.filled(&[address]));
        }
        let known = self.known().get(authority).cloned();
        if let Some((since, addresses)) = &known
            && since.elapsed() < FRESH
        {
            return Ok(self.filled(addresses));
        }
        match (self.system.resolve(uri, config, timeout), known) {
            (Ok(found), _) => {
                let addresses = found.iter().copied().collect();
                self.known().insert(authority.to_owned(), (Instant::now(), addresses));
                Ok(found)
            }
            (Err(_), Some((_, addresses))) => Ok(self.filled(&addresses)),
            (Err(error), None) => Err(error),
        }
    }
}
