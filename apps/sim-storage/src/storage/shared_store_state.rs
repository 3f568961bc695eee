//! Node of a store shared with other nodes. As in `plane/node`, its scheduler receives the node's
//! limit (`ConfigStep::SetCap`) and the covered minimums, and the cluster receives the loads of the
//! node's disks.

use std::collections::{BTreeMap, VecDeque};

use suimon_cluster_qos::{DiskKey, DiskLoad, ReservationCoverage};
use suimon_quantity::{Iops, Time};
use suimon_storage_qos::{ConfigStep, DiskQosCounters, FlowSlot, Limits, LimitsOwner};

/// Number of samples of counters over which loads are computed, as in `plane/node`.
const LOAD_SAMPLES: usize = 2;

/// Desired limits of one flow, and the minimum that is in effect.
#[derive(Clone, Copy, Debug)]
struct DesiredLimits {
    holder: LimitsOwner,
    limits: Limits,
    min_iops: u64,
}

/// State of a shared store on one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct SharedStoreState {
    limits: BTreeMap<u32, Limits>,
    flows: BTreeMap<FlowSlot, DesiredLimits>,
    reserved_iops: u64,
    samples: VecDeque<(Time, BTreeMap<u32, DiskQosCounters>)>,
}

impl SharedStoreState {
    /// Records the desired limits of a disk.
    pub(crate) fn record_limits(&mut self, disk: u32, limits: Limits) {
        self.limits.insert(disk, limits);
    }

    /// Returns the numbers of the disks with limits.
    pub(crate) fn disks(&self) -> impl Iterator<Item = u32> {
        self.limits.keys().copied()
    }

    /// Returns the changes for the scheduler that follow from `change`. Minimums in them are
    /// limited to those that the node's reservation covers.
    pub(crate) fn limit_to_reservation(&mut self, change: ConfigStep) -> Vec<ConfigStep> {
        let mut set = None;
        let mut changes = Vec::new();
        match change {
            ConfigStep::SetFlow { flow, owner: holder, limits } => {
                let desired =
                    self.flows.entry(flow).or_insert(DesiredLimits { holder, limits, min_iops: 0 });
                (desired.holder, desired.limits, set) = (holder, limits, Some(flow));
            }
            ConfigStep::RemoveFlow(flow) => {
                self.flows.remove(&flow);
                changes.push(change);
            }
            ConfigStep::SetCap(cap) => {
                self.reserved_iops = cap.map_or(0, |cap| cap.reserved_iops);
                changes.push(change);
            }
            _ => return vec![change],
        }
        let min = |desired: &DesiredLimits| desired.limits.min_iops.map_or(0, Iops::per_second);
        let coverage = ReservationCoverage::new(self.reserved_iops, self.flows.values().map(min));
        for (flow, desired) in &mut self.flows {
            let covered = coverage.minimum_in_effect(min(desired), desired.min_iops);
            if covered != desired.min_iops || set == Some(*flow) {
                desired.min_iops = covered;
                let limits = Limits { min_iops: Iops::new(covered), ..desired.limits };
                changes.push(ConfigStep::SetFlow { flow: *flow, owner: desired.holder, limits });
            }
        }
        changes
    }

    /// Appends the load of each disk over the last samples. `counters` are the current totals.
    pub(crate) fn append_loads(
        &mut self,
        now: Time,
        counters: BTreeMap<u32, DiskQosCounters>,
        loads: &mut Vec<DiskLoad>,
    ) {
        let before = self.samples.front().cloned();
        for (disk, limits) in &self.limits {
            let before = before
                .as_ref()
                .and_then(|(sampled_at, counters)| Some((*sampled_at, *counters.get(disk)?)));
            let rates = before.zip(counters.get(disk)).and_then(|((sampled_at, before), after)| {
                after.rates(&before, now.since(sampled_at))
            });
            let rates = rates.unwrap_or_default();
            loads.push(DiskLoad {
                disk: DiskKey(u64::from(*disk)),
                policy: None,
                min_iops: limits.min_iops.map_or(0, |min| min.per_second()),
                max_iops: limits.max_iops.map(|max| max.per_second()),
                fallback_iops: None,
                weight: u32::from(limits.weight.number()),
                demand_iops: rates.demanded_iops,
                delivered_iops: rates.delivered_iops,
                waits_for_grant: rates.waits_for_cap,
                waits_for_store: rates.waits_for_device,
                is_fully_utilised: rates.is_fully_utilised,
            });
        }
        self.samples.push_back((now, counters));
        if self.samples.len() > LOAD_SAMPLES {
            self.samples.pop_front();
        }
    }
}
