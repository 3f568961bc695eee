//! What nodes say of their disks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::divide::Claim;
use crate::{DiskKey, GrantId, NodeId, PolicyKey, ReportId};

/// The version of what nodes tell each other. Another one is not understood.
pub const VERSION: u16 = 2;
/// So many disks a report names of each kind.
pub const NAMED_MAX: usize = 8;
/// So many claims a report has at most: for what is wanted for a unit of weight, one for each power of four.
pub const CLAIMS_MAX: usize = 34;
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

    /// What of that is what it is to have anyway.
    fn within_minimum(&self) -> u64 {
        let own = if self.policy.is_none() { self.min_iops } else { 0 };
        self.wanted_iops().min(own)
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
    /// What its disks want. One of an earlier version has none, and is read so far that it can be told.
    #[serde(default)]
    pub wants: Wants,
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

/// What disks of a node want, where their minimums are in effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wants {
    /// Within their minimums.
    pub within_minimums_iops: u64,
    /// Beyond, [`CLAIMS_MAX`] at most. Those that want about as much for their weight are one claim, so that
    /// one with a large weight that wants a little claims nothing for another.
    pub beyond_minimums: Vec<Claim>,
}

/// What disks want.
pub(crate) fn wants(disks: &[DiskLoad]) -> Wants {
    let mut within_minimums_iops = 0_u64;
    let mut found: BTreeMap<u32, Claim> = BTreeMap::new();
    for disk in disks {
        let (within, weight) = (disk.within_minimum(), u64::from(disk.weight).max(1));
        within_minimums_iops = within_minimums_iops.saturating_add(within);
        let beyond = disk.wanted_iops().saturating_sub(within);
        let kind = match (beyond / weight).checked_ilog2() {
            _ if beyond == 0 => continue,
            // All there is, whatever its weight.
            _ if beyond >= UNBOUNDED / 2 => u32::MAX,
            Some(each) => 1 + each / 2,
            None => 0,
        };
        let claim = found.entry(kind).or_default();
        claim.wanted_iops = claim.wanted_iops.saturating_add(beyond).min(UNBOUNDED);
        claim.weight = claim.weight.saturating_add(weight);
    }
    Wants { within_minimums_iops, beyond_minimums: found.into_values().collect() }
}

/// The policies that disks have, and what they do for each.
pub(crate) fn by_policy(disks: &[DiskLoad]) -> Vec<PolicyLoad> {
    let mut found = BTreeMap::new();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn disk(weight: u32, min_iops: u64, delivered_iops: u64, waits: bool) -> DiskLoad {
        DiskLoad {
            disk: DiskKey(u64::from(weight)),
            policy: None,
            min_iops,
            max_iops: None,
            fallback_iops: None,
            weight,
            demanded_iops: delivered_iops,
            delivered_iops,
            waits_for_grant: waits,
            waits_for_store: false,
            is_busy: waits,
        }
    }

    #[test]
    fn those_that_want_as_much_for_their_weight_are_one_claim() {
        let open = disk(25, 0, 2000, true);
        let satisfied = DiskLoad { max_iops: Some(45), ..disk(700, 45, 45, true) };
        let little = DiskLoad { max_iops: Some(1000), ..disk(300, 0, 1000, false) };
        let claim = |wanted_iops, weight| Claim { wanted_iops, weight };
        let disks = [open, satisfied, little, open, little];
        let (of_little, of_open) = (claim(2000, 600), claim(UNBOUNDED, 50));
        let told = wants(&disks);
        assert_eq!(told.beyond_minimums, [of_little, of_open]);
        assert_eq!(told.within_minimums_iops, 45);
        let told = wants(&[satisfied, disk(9, 100, 0, false)]);
        assert_eq!((told.beyond_minimums, told.within_minimums_iops), (vec![], 46));
        let all = (0..64).map(|bit| DiskLoad { max_iops: Some(1 << bit), ..disk(1, 0, 1, true) });
        assert!(wants(&all.collect::<Vec<_>>()).beyond_minimums.len() <= CLAIMS_MAX);
    }

    /// The leader tells of it by its version, and can only if it can read it.
    #[test]
    fn a_report_of_an_earlier_version_is_read() {
        let report = Report {
            version: 1,
            node: NodeId(3),
            id: ReportId { incarnation: 1, number: 2 },
            heard: None,
            reserved_iops: 0,
            takes_leases: true,
            load: NodeLoad::default(),
            wants: Wants::default(),
            policies: Vec::new(),
            largest: Vec::new(),
            unmet: Vec::new(),
        };
        let mut text = serde_json::to_value(&report).unwrap();
        assert!(text.as_object_mut().unwrap().remove("wants").is_some());
        assert_eq!(serde_json::from_value::<Report>(text).unwrap(), report);
    }
}
