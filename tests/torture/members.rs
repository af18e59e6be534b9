//! The faults of a cluster's members. How each ends is in `strike.rs`.
//!
//! Two of three must take part for anything to be granted. So one fails at a time, but for [`Torture::quorum_is_lost`].

use std::collections::BTreeMap;
use std::path::PathBuf;

use fence_tests::etcd::Cluster;

use crate::run::Torture;
use crate::strike::After;

/// The cluster, and which of its members do not take part.
pub struct Members {
    cluster: Cluster,
    /// With whether it was killed.
    down: BTreeMap<usize, bool>,
}

impl Members {
    /// Three.
    pub fn start() -> Self {
        Self {
            cluster: Cluster::start(),
            down: BTreeMap::new(),
        }
    }

    /// The location of the store.
    pub fn location(&self) -> PathBuf {
        self.cluster.location("torture").into()
    }

    fn fail(&mut self, member: usize, kill: bool) {
        if kill {
            self.cluster.kill(member);
        } else {
            self.cluster.stop(member);
        }
        self.down.insert(member, kill);
    }

    fn come_back(&mut self, member: usize) {
        match self.down.remove(&member) {
            Some(true) => self.cluster.restart(member),
            Some(false) => self.cluster.go_on(member),
            None => {}
        }
    }
}

impl Torture {
    /// Kills or stops a member until this time: the one that leads, or another.
    pub fn member_fails(&mut self, leads: bool, kill: bool, until: u64) {
        let Some(members) = self.members.as_mut().filter(|members| members.down.is_empty()) else {
            return;
        };
        let member = if leads {
            members.cluster.leader()
        } else {
            members.cluster.follower()
        };
        members.fail(member, kill);
        self.pending.push((until, After::MemberBack(member)));
        self.count(match (leads, kill) {
            (true, true) => "leaders killed",
            (true, false) => "leaders stopped",
            (false, true) => "other members killed",
            (false, false) => "other members stopped",
        });
    }

    /// Stops two of the three members until this time.
    pub fn quorum_is_lost(&mut self, until: u64) {
        let Some(members) = self.members.as_mut().filter(|members| members.down.is_empty()) else {
            return;
        };
        for member in [members.cluster.leader(), members.cluster.follower()] {
            members.fail(member, false);
            self.pending.push((until, After::MemberBack(member)));
        }
        self.count("times without a quorum");
    }

    /// Ends the fault of a member.
    pub fn member_comes_back(&mut self, member: usize) {
        if let Some(members) = &mut self.members {
            members.come_back(member);
        }
    }
}
