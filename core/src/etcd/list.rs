//! Reading what is live, a page at a time, in the order of the keys.
//!
//! For how long more a key is held its etcd lease is asked, one by one: a listing is for people.

use std::collections::HashMap;

use super::client::{KeyValue, Keys, Range};
use super::names::Part;
use super::record::Record;
use super::session::{Session, patience};
use crate::engine::PageMark;
use crate::error::Result;
use crate::fence::{Count, Fence};
use crate::lease::{Hold, HoldKind};

/// How many keys are read at once.
const PAGE: i64 = 256;

impl Session {
    /// The next page of live leases and permits and of keys in delay. Nothing after the last.
    pub(super) fn page(&self, mark: &mut PageMark) -> Result<Option<Vec<Hold>>> {
        let deadline = patience();
        let all = self.names.all();
        // The mark is the last name that was read, without what all names begin with.
        let after: Vec<u8> = match mark.key.is_empty() {
            true => all.clone(),
            false => [&all, mark.key.as_bytes(), b"\0"].concat(),
        };
        let mut end = all.clone();
        // The names begin with a text that ends in a slash; this is what comes behind them all.
        end.pop();
        end.push(b'/' + 1);
        let range = Range {
            limit: PAGE,
            ..Range::of(Keys::Between(&after, &end))
        };
        let found = self.client.range(&range, deadline)?.kvs;
        let Some(last) = found.last() else { return Ok(None) };

        let mut left = HashMap::new();
        for lease in found.iter().map(|kv| kv.lease).filter(|lease| *lease != 0) {
            if let std::collections::hash_map::Entry::Vacant(entry) = left.entry(lease) {
                let lasts = self.client.lease_time_to_live(lease, deadline)?;
                entry.insert(lasts.map(|lasts| lasts.left_s.saturating_mul(1000).max(1)));
            }
        }
        let mut page: Vec<Hold> = Vec::new();
        // Whose lease is live: its key's delay does not run yet.
        let mut live = mark.permit.clone();
        for kv in &found {
            let remaining_ms = left.get(&kv.lease).copied().flatten();
            let Some(hold) = remaining_ms.and_then(|left| self.hold(kv, left)) else {
                continue;
            };
            match hold.kind {
                HoldKind::Delay if hold.key.as_bytes() == live => continue,
                HoldKind::Lease => live = hold.key.clone().into_bytes(),
                _ => {}
            }
            page.push(hold);
        }
        mark.key = String::from_utf8_lossy(last.key.get(all.len()..).unwrap_or_default()).into_owned();
        mark.permit = live;
        Ok(Some(page))
    }

    /// The row of a key, if it is a hold.
    fn hold(&self, kv: &KeyValue, remaining_ms: i64) -> Option<Hold> {
        let (key, part) = self.names.read(&kv.key)?;
        let record = Record::read(&kv.value)?;
        let count = Count::new(u64::try_from(kv.create_revision).ok()?);
        let (kind, permit, longest) = match part {
            Part::Held => (HoldKind::Lease, None, record.ttl.get()),
            Part::Delay => (HoldKind::Delay, None, record.delay.get()),
            Part::Permit(id) => (HoldKind::Permit, Some(id), record.ttl.get()),
            Part::Place => return None,
        };
        Some(Hold {
            key: key.to_owned(),
            kind,
            fence: permit.is_none().then(|| Fence::new(record.epoch, count)),
            permit,
            // What is rounded up to whole seconds is not told.
            remaining_ms: remaining_ms.min(longest.max(1)),
            delay_ms: record.delay.get(),
            process: record.process,
            bound: record.bound,
        })
    }
}
