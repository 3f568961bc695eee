//! Liveness properties of a cluster: guaranteed minimums are delivered, and spare capacity is used.
//!
//! These checkers receive limits, capacities, base reservations of nodes, and completed operations.
//! They do not query the policy about admission: a minimum must be delivered if it and all earlier
//! minimums together do not exceed the reservable capacity.

use std::collections::BTreeMap;

use suimon_cluster_qos::{GUARANTEED_PERCENT_MAX, Parameters};
use suimon_quantity::Time;
use suimon_sim_kernel::{Checker, SECOND_NS, Violations};

use crate::cluster::facts::{AsClusterFact, ClusterFact};

/// Evaluation window of a minimum in ns, and shortest time after a change before it is evaluated.
const JUDGED_NS: u64 = 5 * SECOND_NS;
/// Smallest percentage of a minimum that must be delivered.
const MET_PERCENT: u128 = 98;
/// Smallest percentage of the usable capacity that must be used.
const USED_PERCENT: u64 = 95;
/// Time in ns after a slowdown of a store until its whole capacity must be used again: the spare
/// limit is lowered for 10 s and then rises by 1/32 of the capacity per second.
const CLIMB_NS: u64 = 45 * SECOND_NS;
/// A change of demand by less than the capacity divided by this number is insignificant.
const LITTLE: u64 = 50;
/// Percentage of a window in which a node must wait for the window to be evaluated.
const WAITED_PERCENT: u64 = 95;

/// Content of a fact that concerns a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DiskFact {
    /// Limits of a disk: minimum (0 for none) and maximum (`u64::MAX` for none).
    Limits { disk: u32, min_iops: u64, max_iops: u64 },
    /// Demand of a disk in normalised operations per second; `u64::MAX` for unlimited.
    Demand { disk: u32, iops: u64 },
    /// Number of operations completed for the disk.
    OperationsCompleted { disk: u32, operations: u64 },
    /// Disks of a node on a store start or stop waiting for the node's limit.
    NodeLimitWaitChanged { node: u32, store: u32, is_so: bool },
    /// Stores are impaired until this time.
    StoresDisturbed { until_ns: u64 },
}

/// Fact that may concern a disk.
pub(crate) trait AsDiskFact: AsClusterFact {
    /// Returns the content that concerns a disk; `None` if the fact concerns something else.
    fn as_disk_fact(&self) -> Option<DiskFact>;
}

/// Location of disks, and tolerances of the checkers.
#[derive(Clone, Debug)]
pub(crate) struct CheckerParameters {
    /// Node and store of each disk, as pairs.
    pub(crate) disk_locations: Vec<(u32, u32)>,
    pub(crate) capacities: Vec<u64>,
    /// Number of nodes with disks in each store.
    pub(crate) nodes_per_store: Vec<u64>,
    /// Interval in ns at which completed operations are reported; 1 if they are reported
    /// immediately.
    pub(crate) report_interval_ns: u64,
    /// Largest number of normalised operations that one request counts as.
    pub(crate) request_cost_max: u64,
    /// Time in ns after a fault of the cluster within which changes made during the fault may take
    /// effect late.
    pub(crate) recovery_ns: u64,
    /// Time in ns after a fault of a store or node within which minimums need not be delivered.
    pub(crate) store_recovery_ns: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct UnmetDemand {
    min: u64,
    demand: u64,
    demand_since: u64,
    /// Time in ns from which the minimum must be delivered; `u64::MAX` if it exceeds the reservable
    /// capacity.
    from: u64,
    delivered: u64,
}

/// Checks that a disk with demand gets its minimum, from 5 s after it was set, independent of
/// faults of etcd, the network, leaders and other nodes. Minimums set during a fault may be late.
pub(crate) struct ClusterMinimumChecker {
    locations: CheckerParameters,
    disks: Vec<UnmetDemand>,
    /// For each store: reservable capacity without the nodes' base reservations, and the part that
    /// minimums use.
    room: Vec<(u64, u64)>,
    /// Number of disks on each store whose minimum exceeded the reservable capacity.
    refused: Vec<u32>,
    /// End of the last pause of each node in ns.
    still_until: BTreeMap<u32, u64>,
    stores_until: u64,
    disturbed_until: u64,
    window: u64,
}

impl ClusterMinimumChecker {
    pub(crate) fn new(locations: &CheckerParameters, terms: &Parameters) -> Self {
        let available = |(capability, nodes): (&u64, &u64)| {
            let promisable = capability * GUARANTEED_PERCENT_MAX / 100;
            (promisable.saturating_sub(nodes * terms.base_reservation_iops), 0)
        };
        Self {
            disks: vec![UnmetDemand::default(); locations.disk_locations.len()],
            refused: vec![0; locations.capacities.len()],
            room: locations
                .capacities
                .iter()
                .zip(&locations.nodes_per_store)
                .map(available)
                .collect(),
            still_until: BTreeMap::new(),
            stores_until: 0,
            // At the start, the cluster elects leaders.
            disturbed_until: locations.recovery_ns,
            window: 0,
            locations: locations.clone(),
        }
    }

    fn unmet_since(&self, now: u64) -> u64 {
        now.max(self.disturbed_until) + JUDGED_NS
    }

    fn limit(&mut self, now: u64, disk: u32, min: u64) {
        let (node, store) = self.locations.disk_locations[disk as usize];
        let start = self.unmet_since(now);
        let (limit, promised) = self.room[store as usize];
        let unmet = &mut self.disks[disk as usize];
        let (before, was_owed) = (std::mem::replace(&mut unmet.min, min), unmet.from < u64::MAX);
        let previous_min = if was_owed { before } else { 0 };
        let new_sum = promised - previous_min + min;
        if min > previous_min && new_sum > limit {
            unmet.from = u64::MAX;
            self.refused[store as usize] += 1;
            self.room[store as usize].1 -= previous_min;
            // The cluster admits the pending minimums of a node on a store together or not at all.
            for (other, location) in self.disks.iter_mut().zip(&self.locations.disk_locations) {
                if *location == (node, store) && other.from > now && other.from < u64::MAX {
                    other.from = u64::MAX;
                    self.room[store as usize].1 -= other.min;
                }
            }
            return;
        }
        if min > previous_min {
            unmet.from = start;
        }
        self.room[store as usize].1 = new_sum;
        self.reconsider(store, start);
    }

    /// Admits minimums that exceeded the reservable capacity before, if all of them fit now.
    fn reconsider(&mut self, store: u32, start: u64) {
        if self.refused[store as usize] == 0 {
            return;
        }
        let (limit, promised) = self.room[store as usize];
        let unmet_demands = self.disks.iter_mut().zip(&self.locations.disk_locations);
        let mut waiting: Vec<&mut UnmetDemand> = unmet_demands
            .filter(|(unmet, (_, store_index))| *store_index == store && unmet.from == u64::MAX)
            .map(|(unmet, _)| unmet)
            .collect();
        let requested: u64 = waiting.iter().map(|unmet| unmet.min).sum();
        if promised + requested <= limit {
            self.refused[store as usize] = 0;
            waiting.iter_mut().for_each(|unmet| unmet.from = start);
            self.room[store as usize].1 += requested;
        }
    }

    fn judge(&mut self, now: u64, complaints: &mut Violations) {
        let (window_start, length) = (self.window, now - self.window);
        self.window = now;
        // Operations are reported at intervals, so only whole intervals in the window count.
        let length = length / self.locations.report_interval_ns * self.locations.report_interval_ns;
        let is_well = self.stores_until + self.locations.store_recovery_ns <= window_start;
        for (disk, unmet) in (0_u32..).zip(&mut self.disks) {
            let delivered = std::mem::take(&mut unmet.delivered);
            let (node, store) = self.locations.disk_locations[disk as usize];
            let stopped_until = self.still_until.get(&node).copied().unwrap_or_default();
            let stopped_until = if stopped_until > 0 {
                stopped_until + self.locations.store_recovery_ns
            } else {
                0
            };
            let is_quiet = stopped_until <= window_start
                && unmet.from <= window_start
                && unmet.demand_since <= window_start;
            if !is_well || !is_quiet || unmet.min == 0 || unmet.demand == 0 {
                continue;
            }
            complaints.checks += 1;
            let rate = u128::from(unmet.min.min(unmet.demand));
            let guaranteed = rate * u128::from(length) / u128::from(SECOND_NS);
            let min_delivered = (guaranteed * MET_PERCENT / 100) as u64;
            if delivered + 2 * self.locations.request_cost_max < min_delivered {
                let complaint = format!(
                    "disk {disk} of node {node} on store {store}: {delivered} operations \
                     delivered, {guaranteed} guaranteed"
                );
                complaints.add(Time::from_ns(now), "minimums", complaint);
            }
        }
    }
}

impl<F: AsDiskFact> Checker<F> for ClusterMinimumChecker {
    fn observe(&mut self, now: Time, fact: &F, complaints: &mut Violations) {
        let now = now.as_ns();
        if now >= self.window + JUDGED_NS {
            self.judge(now, complaints);
        }
        match fact.as_disk_fact() {
            Some(DiskFact::Limits { disk, min_iops, .. }) => self.limit(now, disk, min_iops),
            Some(DiskFact::Demand { disk, iops }) => {
                let unmet = &mut self.disks[disk as usize];
                (unmet.demand, unmet.demand_since) = (iops, now + SECOND_NS);
            }
            Some(DiskFact::OperationsCompleted { disk, operations }) => {
                self.disks[disk as usize].delivered += operations;
            }
            Some(DiskFact::StoresDisturbed { until_ns }) => {
                self.stores_until = self.stores_until.max(until_ns);
            }
            Some(DiskFact::NodeLimitWaitChanged { .. }) | None => {}
        }
        match fact.as_cluster_fact() {
            Some(ClusterFact::Disturbed { until_ns }) => {
                self.disturbed_until =
                    self.disturbed_until.max(until_ns + self.locations.recovery_ns);
                let quiet_from = self.disturbed_until + JUDGED_NS;
                // Minimums that were due before the disturbance must still be delivered.
                for unmet in
                    self.disks.iter_mut().filter(|unmet| unmet.from > now && unmet.from < u64::MAX)
                {
                    unmet.from = quiet_from;
                }
            }
            Some(ClusterFact::NodePaused { node, until_ns }) => {
                let until = self.still_until.entry(*node).or_default();
                *until = (*until).max(*until_ns);
            }
            _ => {}
        }
    }
}

#[derive(Clone, Debug, Default)]
struct Usage {
    /// Base reservation and completed operations of each node.
    nodes: BTreeMap<u32, (u64, u64)>,
    /// Nodes with waiting disks, each with the time in ns since which it waits.
    waiting: BTreeMap<u32, u64>,
    since: u64,
    waited: u64,
    /// Time in ns before which nothing is evaluated.
    quiet_from: u64,
}

impl Usage {
    fn disturb(&mut self, until: u64) {
        self.quiet_from = self.quiet_from.max(until);
    }
}

/// Checks that, while disks wait for their node's limit, 95 % of the capacity is used, or 95 % of
/// what disks demand within their maximums if that is less. Two amounts may remain unused: idle
/// reservations of other nodes, which cannot be lent; and one eighth of the rate of each node that
/// does not wait, because its current demand does not predict the next second.
pub(crate) struct UnusedCapacityChecker {
    locations: CheckerParameters,
    floor: u64,
    minimums: Vec<u64>,
    maximums: Vec<u64>,
    demand: Vec<u64>,
    /// Usable capacity of each store at the start of the window, in normalised operations per
    /// second.
    usable: Vec<u64>,
    stores: Vec<Usage>,
    window: u64,
}

impl UnusedCapacityChecker {
    pub(crate) fn new(locations: &CheckerParameters, terms: &Parameters) -> Self {
        let usage = Usage { quiet_from: locations.recovery_ns, ..Usage::default() };
        let mut stores = vec![usage; locations.capacities.len()];
        for (node, store) in &locations.disk_locations {
            stores[*store as usize].nodes.insert(*node, (terms.base_reservation_iops, 0));
        }
        Self {
            floor: terms.base_reservation_iops,
            minimums: vec![0; locations.disk_locations.len()],
            maximums: vec![u64::MAX; locations.disk_locations.len()],
            demand: vec![0; locations.disk_locations.len()],
            usable: vec![0; locations.capacities.len()],
            stores,
            window: 0,
            locations: locations.clone(),
        }
    }

    fn judge(&mut self, now: u64, complaints: &mut Violations) {
        let (window_start, length) = (self.window, now - self.window);
        self.window = now;
        let usable = self.usable();
        let before = std::mem::replace(&mut self.usable, usable.clone());
        for (store, usage) in (0_usize..).zip(&mut self.stores) {
            if !usage.waiting.is_empty() {
                usage.waited += now - usage.since.max(window_start);
            }
            usage.since = now;
            let waited_ns = std::mem::take(&mut usage.waited);
            let (mut used, mut idle) = (0, 0);
            for (node, (reserved, delivered)) in &mut usage.nodes {
                let delivered = std::mem::take(delivered);
                used += delivered;
                if !usage.waiting.contains_key(node) {
                    idle += delivered / 8;
                }
                let reserved = (*reserved).max(self.floor) * (length / 1_000_000) / 1000;
                idle += reserved.saturating_sub(delivered);
            }
            if usage.quiet_from > window_start || waited_ns * 100 < length * WAITED_PERCENT {
                continue;
            }
            complaints.checks += 1;
            let usable = usable[store].min(before[store]);
            let capacity =
                self.locations.capacities[store].min(usable) * (length / 1_000_000) / 1000;
            let min_used = capacity.saturating_sub(idle) * USED_PERCENT / 100;
            if used < min_used {
                let complaint = format!(
                    "store {store}: {used} operations while requests were queued; {capacity} are \
                     possible and {idle} may be unused"
                );
                complaints.add(Time::from_ns(now), "spare", complaint);
            }
        }
    }

    /// Returns, for each store, the sum over its disks of the lower of demand and maximum.
    fn usable(&self) -> Vec<u64> {
        let mut usable = vec![0_u64; self.locations.capacities.len()];
        for ((_, store), (demand, max)) in
            self.locations.disk_locations.iter().zip(self.demand.iter().zip(&self.maximums))
        {
            let usable_iops = &mut usable[*store as usize];
            *usable_iops = usable_iops.saturating_add(*demand.min(max));
        }
        usable
    }

    fn disturb(&mut self, until: u64) {
        self.stores.iter_mut().for_each(|usage| usage.disturb(until));
    }
}

impl<F: AsDiskFact> Checker<F> for UnusedCapacityChecker {
    fn observe(&mut self, now: Time, fact: &F, complaints: &mut Violations) {
        let now = now.as_ns();
        if now >= self.window + JUDGED_NS {
            self.judge(now, complaints);
        }
        match fact.as_disk_fact() {
            Some(DiskFact::Limits { disk, min_iops, max_iops }) => {
                self.maximums[disk as usize] = max_iops;
                let (node, store) = self.locations.disk_locations[disk as usize];
                let before = std::mem::replace(&mut self.minimums[disk as usize], min_iops);
                let usage = &mut self.stores[store as usize];
                if let Some((reserved, _)) = usage.nodes.get_mut(&node) {
                    *reserved = *reserved + min_iops - before;
                }
                usage.disturb(now + JUDGED_NS);
            }
            Some(DiskFact::Demand { disk, iops }) => {
                let store = self.locations.disk_locations[disk as usize].1 as usize;
                let before = std::mem::replace(&mut self.demand[disk as usize], iops);
                if before.abs_diff(iops) > self.locations.capacities[store] / LITTLE {
                    self.stores[store].disturb(now + JUDGED_NS);
                }
            }
            Some(DiskFact::OperationsCompleted { disk, operations }) => {
                let (node, store) = self.locations.disk_locations[disk as usize];
                if let Some((_, delivered)) = self.stores[store as usize].nodes.get_mut(&node) {
                    *delivered += operations;
                }
            }
            Some(DiskFact::NodeLimitWaitChanged { node, store, is_so: is_waiting }) => {
                let usage = &mut self.stores[store as usize];
                if !usage.waiting.is_empty() {
                    usage.waited += now - usage.since.max(self.window);
                }
                usage.since = now;
                if is_waiting {
                    usage.waiting.insert(node, now);
                } else {
                    usage.waiting.remove(&node);
                }
            }
            Some(DiskFact::StoresDisturbed { until_ns }) => {
                self.disturb(until_ns + CLIMB_NS);
            }
            None => {}
        }
        if let Some(
            ClusterFact::Disturbed { until_ns } | ClusterFact::NodePaused { until_ns, .. },
        ) = fact.as_cluster_fact()
        {
            self.disturb(until_ns + self.locations.recovery_ns);
        }
    }
}
