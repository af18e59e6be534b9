//! What is written with a lease, a permit and the epoch: small JSON, so that people can read it with `etcdctl get`.

use serde_json::{Value, json};

use super::names::{hex, unhex};
use crate::fence::Epoch;
use crate::limits::{Delay, Ttl};
use crate::permit::PermitId;

/// What is known of a lease or a permit besides its name. Its fence's count is the revision in which its key was created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    /// The id of the request, by which a grant is found whose answer was lost; of a permit its own.
    pub(super) id: PermitId,
    /// The epoch under which it was granted.
    pub(super) epoch: Epoch,
    pub(super) ttl: Ttl,
    pub(super) delay: Delay,
    /// The etcd lease of the key that keeps the delay; 0 if there is none.
    pub(super) delay_lease: i64,
    /// The process that asked for it, as it saw itself.
    pub(super) process: i64,
    pub(super) bound: bool,
    pub(super) several: bool,
    /// How often a process that it is not bound to has renewed it.
    pub(super) renewed: i64,
}

impl Record {
    pub(super) fn write(&self) -> Vec<u8> {
        json!({
            "id": hex(self.id),
            "epoch": self.epoch.get(),
            "ttl_ms": self.ttl.get(),
            "delay_ms": self.delay.get(),
            "delay_lease": self.delay_lease,
            "process": self.process,
            "bound": self.bound,
            "several": self.several,
            "renewed": self.renewed,
        })
        .to_string()
        .into_bytes()
    }

    /// Nothing if we did not write it.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        let number = |name| value.get(name)?.as_i64();
        let flag = |name| value.get(name)?.as_bool();
        Some(Self {
            id: unhex(value.get("id")?.as_str()?)?,
            epoch: Epoch::new(value.get("epoch")?.as_u64()?),
            ttl: Ttl::new(number("ttl_ms")?).ok()?,
            delay: Delay::new(number("delay_ms")?).ok()?,
            delay_lease: number("delay_lease")?,
            process: number("process")?,
            bound: flag("bound")?,
            several: flag("several")?,
            renewed: number("renewed")?,
        })
    }
}

/// The epoch that stands, and the cluster for which it does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EpochRecord {
    pub(super) epoch: Epoch,
    pub(super) cluster: u64,
    /// By how much the cluster's raft index was ahead of its revision when this was written, see `epoch.rs`.
    pub(super) lead: Option<i64>,
}

impl EpochRecord {
    pub(super) fn write(&self) -> Vec<u8> {
        json!({
            "epoch": self.epoch.get(),
            "cluster": format!("{:x}", self.cluster),
            "lead": self.lead,
        })
        .to_string()
        .into_bytes()
    }

    /// Nothing if we did not write it.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(bytes).ok()?;
        Some(Self {
            epoch: Epoch::new(value.get("epoch")?.as_u64()?),
            cluster: u64::from_str_radix(value.get("cluster")?.as_str()?, 16).ok()?,
            lead: value.get("lead").and_then(Value::as_i64),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Result;

    #[test]
    fn records_are_read_as_they_were_written() -> Result<()> {
        let record = Record {
            id: PermitId::random()?,
            epoch: Epoch::new(i64::MAX.unsigned_abs()),
            ttl: Ttl::MAX,
            delay: Delay::MIN,
            delay_lease: i64::MAX,
            process: 7,
            bound: true,
            several: false,
            renewed: 3,
        };
        assert_eq!(Record::read(&record.write()), Some(record));
        for lead in [None, Some(-5)] {
            let epoch = EpochRecord {
                epoch: Epoch::new(1),
                cluster: u64::MAX,
                lead,
            };
            assert_eq!(EpochRecord::read(&epoch.write()), Some(epoch));
        }
        assert_eq!(Record::read(b"somebody else's"), None);
        assert_eq!(EpochRecord::read(b"{}"), None);
        Ok(())
    }
}
