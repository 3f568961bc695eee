//! What nodes say of their disks.

use serde::{Deserialize, Serialize};

use crate::{DiskKey, GrantId, NodeId, PolicyKey, ReportId};

/// The version of what nodes tell each other. Another one is not understood.
pub const VERSION: u16 = 1;
/// So many disks a report names of each kind.
pub const NAMED_MAX: usize = 8;
/// A demand of all there is.
pub const UNBOUNDED: u64 = u64::MAX / 4;
/// Delivered below so many percent of what is entitled, a minimum is not met.
pub(crate) const MET_PERCENT: u64 = 95;

/// What one disk did since it was last told. All rates are in normalised operations per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskLoad {
    /// Which.
    pub disk: DiskKey,
    /// The policy that it shares with others; its minimum and maximum are the policy's then, and
    /// the next two are not looked at.
    pub policy: Option<PolicyKey>,
    /// Its own minimum; 0: none.
    pub min_iops: u64,
    /// Its own maximum.
    pub max_iops: Option<u64>,
    /// What it may do when its node has heard nothing for long, if that was configured: more than
    /// its minimum, less than it may have while nodes hear each other.
    pub fallback_iops: Option<u64>,
    /// Its share of what nobody is entitled to, 1 to 10 000.
    pub weight: u32,
    /// What it asked for.
    pub demanded_iops: u64,
    /// What it got.
    pub delivered_iops: u64,
    /// Its requests waited because the node may do no more, so that more may be wanted than was
    /// asked for.
    pub waits_for_grant: bool,
    /// Its requests waited for the store itself.
    pub waits_for_store: bool,
    /// It had something to do nearly all the time, so that it may be that it asks for no more than it
    /// gets because it gets no more.
    #[serde(default)]
    pub is_busy: bool,
}

impl DiskLoad {
    /// What it would use, as far as is known.
    pub(crate) fn wanted_iops(&self) -> u64 {
        let demand = if self.waits_for_grant {
            UNBOUNDED
        } else {
            // What is asked for tells nothing of the next second.
            let demand = self.demanded_iops.min(UNBOUNDED);
            demand.saturating_add(demand / 8).saturating_add(1)
        };
        match (self.policy, self.max_iops) {
            (None, Some(max)) => demand.min(max),
            _ => demand,
        }
    }

    /// What it is entitled to of what it asks for.
    pub(crate) fn entitled_iops(&self) -> u64 {
        let is_own = self.policy.is_none();
        let is_open = self.waits_for_grant || self.is_busy;
        let demand = if is_open { UNBOUNDED } else { self.demanded_iops };
        if is_own { demand.min(self.min_iops) } else { 0 }
    }
}

/// A disk as a report names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedDisk {
    /// Which.
    pub disk: DiskKey,
    /// What it is entitled to of what it asks for, in normalised operations per second.
    pub entitled_iops: u64,
    /// What it asked for.
    pub demanded_iops: u64,
    /// What it got.
    pub delivered_iops: u64,
}

impl From<&DiskLoad> for NamedDisk {
    fn from(load: &DiskLoad) -> Self {
        Self {
            disk: load.disk,
            entitled_iops: load.entitled_iops(),
            demanded_iops: load.demanded_iops,
            delivered_iops: load.delivered_iops,
        }
    }
}

/// The disks of one policy on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyLoad {
    /// Which policy.
    pub policy: PolicyKey,
    /// What they would use, [`UNBOUNDED`] if they wait for grants.
    pub wanted_iops: u64,
    /// What they got.
    pub delivered_iops: u64,
    /// Their weights together.
    pub weight: u64,
}

/// All disks of a store on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLoad {
    /// How many disks.
    pub disks: u32,
    /// What their own minimums come to.
    pub minimums_iops: u64,
    /// What they may do when the node has heard nothing for long, if each has such a maximum.
    pub fallback_iops: Option<u64>,
    /// What they are entitled to of what they ask for.
    pub entitled_iops: u64,
    /// What they would use; at most [`UNBOUNDED`].
    pub wanted_iops: u64,
    /// What they got.
    pub delivered_iops: u64,
    /// The weights of those that want something, together.
    pub weight: u64,
    /// Requests waited for the store although the node may do more.
    pub waits_for_store: bool,
    /// What the store took for a request in the mean, in nanoseconds; 0: none was done.
    pub latency_ns: u64,
}

/// What a node tells the leader of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// [`VERSION`].
    pub version: u16,
    /// Who.
    pub node: NodeId,
    /// Which of its reports.
    pub id: ReportId,
    /// The last grant that it heard and applies. It never goes back to an earlier one.
    pub heard: Option<GrantId>,
    /// What it does at most without a lease.
    pub reserved_iops: u64,
    /// It can use leases: its clock is right.
    pub takes_leases: bool,
    /// Its disks together.
    pub load: NodeLoad,
    /// Its policies that others share, each once, ascending.
    pub policies: Vec<PolicyLoad>,
    /// Disks that got the most beyond what they are entitled to, [`NAMED_MAX`] at most.
    pub largest: Vec<NamedDisk>,
    /// Disks that did not get what they are entitled to, [`NAMED_MAX`] at most, the worst first.
    pub unmet: Vec<NamedDisk>,
}

/// Sums up what disks did.
pub(crate) fn sum(disks: &[DiskLoad], latency_ns: u64) -> NodeLoad {
    let mut load = NodeLoad { latency_ns, ..NodeLoad::default() };
    let mut fallback = (!disks.is_empty()).then_some(0_u64);
    for disk in disks {
        load.disks = load.disks.saturating_add(1);
        if disk.policy.is_none() {
            load.minimums_iops = load.minimums_iops.saturating_add(disk.min_iops);
        }
        fallback = fallback.zip(disk.fallback_iops).map(|(sum, iops)| sum.saturating_add(iops));
        load.entitled_iops = load.entitled_iops.saturating_add(disk.entitled_iops());
        load.wanted_iops = load.wanted_iops.saturating_add(disk.wanted_iops()).min(UNBOUNDED);
        load.delivered_iops = load.delivered_iops.saturating_add(disk.delivered_iops);
        if disk.demanded_iops > 0 || disk.waits_for_grant {
            load.weight = load.weight.saturating_add(u64::from(disk.weight));
        }
        load.waits_for_store |= disk.waits_for_store;
    }
    load.fallback_iops = fallback;
    load
}

/// The policies that disks have, and what they do for each.
pub(crate) fn by_policy(disks: &[DiskLoad]) -> Vec<PolicyLoad> {
    let mut found = std::collections::BTreeMap::new();
    for disk in disks {
        let Some(policy) = disk.policy else { continue };
        let empty = PolicyLoad { policy, wanted_iops: 0, delivered_iops: 0, weight: 0 };
        let load = found.entry(policy).or_insert(empty);
        load.wanted_iops = load.wanted_iops.saturating_add(disk.wanted_iops()).min(UNBOUNDED);
        load.delivered_iops = load.delivered_iops.saturating_add(disk.delivered_iops);
        load.weight = load.weight.saturating_add(u64::from(disk.weight));
    }
    found.into_values().collect()
}

/// The disks that a report names: those that got the most beyond their right, and those
/// that did not get it.
pub(crate) fn named(disks: &[DiskLoad]) -> (Vec<NamedDisk>, Vec<NamedDisk>) {
    let all = disks.iter().map(NamedDisk::from);
    let beyond = |disk: &NamedDisk| disk.delivered_iops.saturating_sub(disk.entitled_iops);
    let mut largest: Vec<_> = all.clone().filter(|disk| beyond(disk) > 0).collect();
    largest.sort_by_key(|disk| (core::cmp::Reverse(beyond(disk)), disk.disk));
    largest.truncate(NAMED_MAX);
    let lacks = |disk: &NamedDisk| disk.entitled_iops.saturating_sub(disk.delivered_iops);
    let is_unmet = |disk: &NamedDisk| disk.delivered_iops * 100 < disk.entitled_iops * MET_PERCENT;
    let mut unmet: Vec<_> = all.filter(is_unmet).collect();
    unmet.sort_by_key(|disk| (core::cmp::Reverse(lacks(disk)), disk.disk));
    unmet.truncate(NAMED_MAX);
    (largest, unmet)
}
