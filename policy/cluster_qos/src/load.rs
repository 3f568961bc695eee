//! Loads of disks and the reports that nodes send to the leader.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::divide::WeightedDemand;
use crate::{DiskKey, GrantId, NodeId, PolicyKey, ReportId};

/// Version of reports and grants. Other versions are rejected.
pub const PROTOCOL_VERSION: u16 = 2;
/// Maximum length of each of the two disk lists in a report: [`LoadReport::largest`] and
/// [`LoadReport::unmet`].
pub const REPORTED_DISKS_MAX: usize = 8;
/// Maximum number of policies of a cluster, and thereby of loads of policies in a report and of
/// shares of policies in a grant.
pub const POLICIES_MAX: usize = 4096;
/// Maximum number of claims in a report. Claims are grouped by powers of four of the demand per
/// weight.
pub const WEIGHTED_DEMANDS_MAX: usize = 34;
/// Demand that counts as unlimited, in normalised operations per second.
pub const UNLIMITED_DEMAND_IOPS: u64 = u64::MAX / 4;
/// Delivered rate, in percent of the guaranteed rate, below which a minimum is unmet.
pub(crate) const MINIMUM_MET_PERCENT: u64 = 95;

/// Load of one disk since the previous sample. Rates are in normalised operations per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskLoad {
    /// Identifier of the disk, unique in the cluster.
    pub disk: DiskKey,
    /// Policy whose limits the disk shares with other disks. If set, `min_iops` and `max_iops` are
    /// ignored.
    pub policy: Option<PolicyKey>,
    /// Minimum of the disk; 0: none.
    pub min_iops: u64,
    /// Maximum of the disk; `None`: none.
    pub max_iops: Option<u64>,
    /// Rate that the disk may use after
    /// [`Parameters::fallback_after`](crate::Parameters::fallback_after) without a grant, if
    /// configured. At least the minimum and at most the maximum.
    pub fallback_iops: Option<u64>,
    /// Weight in the division of spare capacity, 1 to 10 000.
    pub weight: u32,
    /// Demand: rate of submitted requests.
    #[serde(rename = "demanded_iops")]
    pub demand_iops: u64,
    /// Delivered rate: rate of completed requests.
    pub delivered_iops: u64,
    /// True if requests were queued because of the node's cap. The demand may then exceed the rate
    /// of submitted requests.
    pub waits_for_grant: bool,
    /// True if requests were queued at the store itself.
    pub waits_for_store: bool,
    /// True if requests were in flight nearly all the time. The client may then submit more
    /// requests once completions are faster.
    #[serde(default)]
    #[serde(rename = "is_busy")]
    pub is_fully_utilised: bool,
}

impl DiskLoad {
    /// Returns the estimated demand in normalised operations per second: [`UNLIMITED_DEMAND_IOPS`]
    /// if requests were queued because of the cap, otherwise the submitted rate plus an eighth. At
    /// most the disk's own maximum.
    pub(crate) fn estimated_demand_iops(&self) -> u64 {
        let demand = if self.waits_for_grant {
            UNLIMITED_DEMAND_IOPS
        } else {
            // The demand may rise until the next sample.
            let demand = self.demand_iops.min(UNLIMITED_DEMAND_IOPS);
            demand.saturating_add(demand / 8).saturating_add(1)
        };
        match (self.policy, self.max_iops) {
            (None, Some(max)) => demand.min(max),
            _ => demand,
        }
    }

    /// Returns the smaller of estimated demand and minimum; 0 for a disk with a policy.
    fn within_minimum(&self) -> u64 {
        let own_minimum = if self.policy.is_none() { self.min_iops } else { 0 };
        self.estimated_demand_iops().min(own_minimum)
    }

    /// Returns the guaranteed rate, in normalised operations per second: the minimum, or the demand
    /// if that is lower and certain. 0 for a disk with a policy.
    pub(crate) fn guaranteed_iops(&self) -> u64 {
        let is_own = self.policy.is_none();
        let is_open = self.waits_for_grant || self.is_fully_utilised;
        let demand = if is_open { UNLIMITED_DEMAND_IOPS } else { self.demand_iops };
        if is_own { demand.min(self.min_iops) } else { 0 }
    }
}

/// Disk named in a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportedDisk {
    /// Identifier of the disk, unique in the cluster.
    pub disk: DiskKey,
    /// Guaranteed part of the demand, in normalised operations per second.
    #[serde(rename = "entitled_iops")]
    pub guaranteed_iops: u64,
    /// Demand, in normalised operations per second.
    #[serde(rename = "demanded_iops")]
    pub demand_iops: u64,
    /// Delivered rate, in normalised operations per second.
    pub delivered_iops: u64,
}

impl From<&DiskLoad> for ReportedDisk {
    fn from(load: &DiskLoad) -> Self {
        Self {
            disk: load.disk,
            guaranteed_iops: load.guaranteed_iops(),
            demand_iops: load.demand_iops,
            delivered_iops: load.delivered_iops,
        }
    }
}

/// Load of the disks of one policy on one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyLoad {
    /// Identifier of the policy, unique in the cluster.
    pub policy: PolicyKey,
    /// Demand of the disks, in normalised operations per second; [`UNLIMITED_DEMAND_IOPS`] if
    /// limited by grants.
    #[serde(rename = "wanted_iops")]
    pub demand_iops: u64,
    /// Delivered rate, in normalised operations per second.
    pub delivered_iops: u64,
    /// Sum of the disks' weights.
    pub weight: u64,
}

/// Load of all disks of a store on one node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeLoad {
    /// Number of disks of the store that are open on the node.
    pub disks: u32,
    /// Sum of the minimums of disks without a policy.
    pub minimums_iops: u64,
    /// Sum of the fallback rates; `None` unless every disk has one.
    pub fallback_iops: Option<u64>,
    /// Guaranteed part of the demand of all disks.
    #[serde(rename = "entitled_iops")]
    pub guaranteed_iops: u64,
    /// Demand of all disks, at most [`UNLIMITED_DEMAND_IOPS`].
    #[serde(rename = "wanted_iops")]
    pub demand_iops: u64,
    /// Delivered rate of all disks.
    pub delivered_iops: u64,
    /// Sum of the weights of disks with demand.
    pub weight: u64,
    /// True if requests were queued at the store although the node's cap was not reached.
    pub waits_for_store: bool,
    /// Mean latency of a request at the store, in ns; 0 if none completed.
    pub latency_ns: u64,
}

/// Report of a node to the leader of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadReport {
    /// Protocol version, [`PROTOCOL_VERSION`].
    pub version: u16,
    /// Node that made the report.
    pub node: NodeId,
    /// Identifier of the report, increasing per node.
    pub id: ReportId,
    /// Newest grant that the node has received and applied. A node never returns to an earlier one.
    #[serde(rename = "heard")]
    pub acknowledged: Option<GrantId>,
    /// Reserved rate of the node's current grant, in normalised operations per second.
    pub reserved_iops: u64,
    /// True if the node applies leases; false while its clock is found to be slow.
    #[serde(rename = "takes_leases")]
    pub applies_leases: bool,
    /// Load of all disks together.
    pub load: NodeLoad,
    /// Demand of the disks within and beyond their minimums. Reports of version 1 lack it; the
    /// default permits decoding them to report the version.
    #[serde(default)]
    #[serde(rename = "wants")]
    pub demand: Demand,
    /// Loads of shared policies, each once, in ascending order, at most [`POLICIES_MAX`].
    pub policies: Vec<PolicyLoad>,
    /// Disks that deliver more than their guaranteed rate, at most [`REPORTED_DISKS_MAX`], largest
    /// excess first.
    #[serde(rename = "largest")]
    pub disks_over_guarantee: Vec<ReportedDisk>,
    /// Disks below their guaranteed rate, at most [`REPORTED_DISKS_MAX`], largest deficit first.
    #[serde(rename = "unmet")]
    pub disks_below_guarantee: Vec<ReportedDisk>,
}

impl LoadReport {
    /// Returns a copy with lists of at most their documented lengths, and with each policy once, in
    /// ascending order. A node may report longer lists, which the leader would store for as long as
    /// the node is a member.
    pub(crate) fn bounded(&self) -> Self {
        let mut policies = first(&self.policies, POLICIES_MAX);
        policies.sort_by_key(|load| load.policy);
        policies.dedup_by_key(|load| load.policy);
        let beyond_minimums = first(&self.demand.beyond_minimums, WEIGHTED_DEMANDS_MAX);
        Self {
            version: self.version,
            node: self.node,
            id: self.id,
            acknowledged: self.acknowledged,
            reserved_iops: self.reserved_iops,
            applies_leases: self.applies_leases,
            load: self.load,
            demand: Demand { beyond_minimums, ..self.demand },
            policies,
            disks_over_guarantee: first(&self.disks_over_guarantee, REPORTED_DISKS_MAX),
            disks_below_guarantee: first(&self.disks_below_guarantee, REPORTED_DISKS_MAX),
        }
    }

    /// Returns the load of a policy in a report that [`Self::bounded`] has returned; `None` if the
    /// node has no disks of the policy.
    pub(crate) fn policy_load(&self, policy: PolicyKey) -> Option<&PolicyLoad> {
        let index = self.policies.binary_search_by_key(&policy, |load| load.policy).ok()?;
        self.policies.get(index)
    }
}

/// Returns a copy of the first elements of a list, at most `max`.
fn first<T: Copy>(list: &[T], max: usize) -> Vec<T> {
    list.iter().take(max).copied().collect()
}

#[cfg(test)]
impl LoadReport {
    /// Returns a report of a node without disks, with the first report identifier.
    pub(crate) fn empty(node: NodeId) -> Self {
        Self {
            version: PROTOCOL_VERSION,
            node,
            id: ReportId { incarnation: 1, number: 2 },
            acknowledged: None,
            reserved_iops: 0,
            applies_leases: true,
            load: NodeLoad::default(),
            demand: Demand::default(),
            policies: Vec::new(),
            disks_over_guarantee: Vec::new(),
            disks_below_guarantee: Vec::new(),
        }
    }
}

/// Returns the sum of the loads of the disks of one node; `latency_ns` is copied.
pub(crate) fn sum(disks: &[DiskLoad], latency_ns: u64) -> NodeLoad {
    let mut load = NodeLoad { latency_ns, ..NodeLoad::default() };
    let mut fallback = (!disks.is_empty()).then_some(0_u64);
    for disk in disks {
        load.disks = load.disks.saturating_add(1);
        if disk.policy.is_none() {
            load.minimums_iops = load.minimums_iops.saturating_add(disk.min_iops);
        }
        fallback = fallback.zip(disk.fallback_iops).map(|(sum, iops)| sum.saturating_add(iops));
        load.guaranteed_iops = load.guaranteed_iops.saturating_add(disk.guaranteed_iops());
        load.demand_iops = load
            .demand_iops
            .saturating_add(disk.estimated_demand_iops())
            .min(UNLIMITED_DEMAND_IOPS);
        load.delivered_iops = load.delivered_iops.saturating_add(disk.delivered_iops);
        if disk.demand_iops > 0 || disk.waits_for_grant {
            load.weight = load.weight.saturating_add(u64::from(disk.weight));
        }
        load.waits_for_store |= disk.waits_for_store;
    }
    load.fallback_iops = fallback;
    load
}

/// Demand of a node's disks, assuming their minimums are in effect.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Demand {
    /// Sum of the demands up to each disk's minimum, in normalised operations per second.
    pub within_minimums_iops: u64,
    /// Demands beyond the minimums, at most [`WEIGHTED_DEMANDS_MAX`] claims. Disks with similar
    /// demand per weight form one claim, so that a disk with a large weight and a small demand does
    /// not increase the share of another.
    pub beyond_minimums: Vec<WeightedDemand>,
}

/// Returns the demand of disks within and beyond their minimums, with the latter grouped into
/// claims.
pub(crate) fn demand(disks: &[DiskLoad]) -> Demand {
    let mut within_minimums_iops = 0_u64;
    let mut claims: BTreeMap<u32, WeightedDemand> = BTreeMap::new();
    for disk in disks {
        let (within_minimum, weight) = (disk.within_minimum(), u64::from(disk.weight).max(1));
        within_minimums_iops = within_minimums_iops.saturating_add(within_minimum);
        let beyond_minimum = disk.estimated_demand_iops().saturating_sub(within_minimum);
        let kind = match (beyond_minimum / weight).checked_ilog2() {
            _ if beyond_minimum == 0 => continue,
            // Unlimited demand, independent of the weight.
            _ if beyond_minimum >= UNLIMITED_DEMAND_IOPS / 2 => u32::MAX,
            Some(per_weight) => 1 + per_weight / 2,
            None => 0,
        };
        let claim = claims.entry(kind).or_default();
        claim.demand_iops =
            claim.demand_iops.saturating_add(beyond_minimum).min(UNLIMITED_DEMAND_IOPS);
        claim.weight = claim.weight.saturating_add(weight);
    }
    Demand { within_minimums_iops, beyond_minimums: claims.into_values().collect() }
}

/// Returns the sum of the loads of each policy's disks, in ascending order of policies.
pub(crate) fn policy_loads(disks: &[DiskLoad]) -> Vec<PolicyLoad> {
    let mut loads = BTreeMap::new();
    for disk in disks {
        let Some(policy) = disk.policy else { continue };
        let empty = PolicyLoad { policy, demand_iops: 0, delivered_iops: 0, weight: 0 };
        let load = loads.entry(policy).or_insert(empty);
        load.demand_iops = load
            .demand_iops
            .saturating_add(disk.estimated_demand_iops())
            .min(UNLIMITED_DEMAND_IOPS);
        load.delivered_iops = load.delivered_iops.saturating_add(disk.delivered_iops);
        load.weight = load.weight.saturating_add(u64::from(disk.weight));
    }
    loads.into_values().collect()
}

/// Returns true if the delivered rate is at least [`MINIMUM_MET_PERCENT`] of the guaranteed one.
pub(crate) fn is_met(delivered_iops: u64, guaranteed_iops: u64) -> bool {
    u128::from(delivered_iops) * 100
        >= u128::from(guaranteed_iops) * u128::from(MINIMUM_MET_PERCENT)
}

/// Returns the disks to name in a report: first those with the most throughput above their
/// guaranteed rate, second those with the largest deficit, at most [`REPORTED_DISKS_MAX`] each.
pub(crate) fn disks_to_report(disks: &[DiskLoad]) -> (Vec<ReportedDisk>, Vec<ReportedDisk>) {
    let named = disks.iter().map(ReportedDisk::from);
    let excess = |disk: &ReportedDisk| disk.delivered_iops.saturating_sub(disk.guaranteed_iops);
    let mut largest: Vec<_> = named.clone().filter(|disk| excess(disk) > 0).collect();
    largest.sort_by_key(|disk| (core::cmp::Reverse(excess(disk)), disk.disk));
    largest.truncate(REPORTED_DISKS_MAX);
    let lacks = |disk: &ReportedDisk| disk.guaranteed_iops.saturating_sub(disk.delivered_iops);
    let is_unmet = |disk: &ReportedDisk| !is_met(disk.delivered_iops, disk.guaranteed_iops);
    let mut unmet: Vec<_> = named.filter(is_unmet).collect();
    unmet.sort_by_key(|disk| (core::cmp::Reverse(lacks(disk)), disk.disk));
    unmet.truncate(REPORTED_DISKS_MAX);
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
            demand_iops: delivered_iops,
            delivered_iops,
            waits_for_grant: waits,
            waits_for_store: false,
            is_fully_utilised: waits,
        }
    }

    #[test]
    fn demands_of_equal_ratio_to_the_weight_are_one_claim() {
        let open = disk(25, 0, 2000, true);
        let satisfied = DiskLoad { max_iops: Some(45), ..disk(700, 45, 45, true) };
        let low_demand = DiskLoad { max_iops: Some(1000), ..disk(300, 0, 1000, false) };
        let claim = |demand_iops, weight| WeightedDemand { demand_iops, weight };
        let disks = [open, satisfied, low_demand, open, low_demand];
        let (of_little, of_open) = (claim(2000, 600), claim(UNLIMITED_DEMAND_IOPS, 50));
        let result = demand(&disks);
        assert_eq!(result.beyond_minimums, [of_little, of_open]);
        assert_eq!(result.within_minimums_iops, 45);
        let result = demand(&[satisfied, disk(9, 100, 0, false)]);
        assert_eq!((result.beyond_minimums, result.within_minimums_iops), (vec![], 46));
        let loads = (0..64).map(|bit| DiskLoad { max_iops: Some(1 << bit), ..disk(1, 0, 1, true) });
        assert!(demand(&loads.collect::<Vec<_>>()).beyond_minimums.len() <= WEIGHTED_DEMANDS_MAX);
    }

    /// The leader reports the unsupported version, which requires that it can decode the report.
    #[test]
    fn a_report_of_an_earlier_version_is_read() {
        let report = LoadReport { version: 1, ..LoadReport::empty(NodeId(3)) };
        let mut text = serde_json::to_value(&report).unwrap();
        assert!(text.as_object_mut().unwrap().remove("wants").is_some());
        assert_eq!(serde_json::from_value::<LoadReport>(text).unwrap(), report);
    }

    /// The leader stores the report of each node.
    #[test]
    fn lists_of_a_report_are_cut_to_the_lengths_that_nodes_keep_to() {
        let named = ReportedDisk::from(&disk(1, 0, 1, false));
        let load = |policy| PolicyLoad {
            policy: PolicyKey(policy),
            demand_iops: 1,
            delivered_iops: 1,
            weight: 1,
        };
        let claim = WeightedDemand { demand_iops: 1, weight: 1 };
        let report = LoadReport {
            demand: Demand { within_minimums_iops: 7, beyond_minimums: vec![claim; 1000] },
            policies: (0..10_000).rev().map(load).collect(),
            disks_over_guarantee: vec![named; 1000],
            disks_below_guarantee: vec![named; 1000],
            ..LoadReport::empty(NodeId(3))
        };
        let bounded = report.bounded();
        assert_eq!(bounded.policies.len(), POLICIES_MAX);
        assert!(bounded.policies.is_sorted_by_key(|load| load.policy));
        assert_eq!(bounded.policy_load(PolicyKey(9999)), Some(&load(9999)));
        assert_eq!(bounded.policy_load(PolicyKey(0)), None);
        assert_eq!(
            (bounded.disks_over_guarantee.len(), bounded.disks_below_guarantee.len()),
            (8, 8)
        );
        assert_eq!(bounded.demand.beyond_minimums.len(), WEIGHTED_DEMANDS_MAX);
        assert_eq!(bounded.demand.within_minimums_iops, 7);
        // Nothing else changes.
        assert_eq!(LoadReport::empty(NodeId(3)).bounded(), LoadReport::empty(NodeId(3)));
        let twice = LoadReport { policies: vec![load(2), load(1), load(2)], ..bounded };
        assert_eq!(twice.bounded().policies, [load(1), load(2)]);
    }

    #[test]
    fn rates_of_any_size_are_compared() {
        assert!(is_met(u64::MAX, u64::MAX) && !is_met(u64::MAX / 2, u64::MAX));
    }
}
