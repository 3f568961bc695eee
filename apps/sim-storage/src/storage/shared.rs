//! Node of a store shared with other nodes. As in `plane/node`, its scheduler receives the node's
//! limit (`Change::Cap`) and the covered minimums, and the cluster receives the loads of the node's
//! disks.

use std::collections::{BTreeMap, VecDeque};

use suimon_cluster_qos::{Coverage, DiskKey, DiskLoad};
use suimon_quantity::{Iops, Time};
use suimon_storage_qos::{Change, DiskQosCounters, FlowSlot, Limits, LimitsOwner};

/// Number of samples over which loads are reported, as in `plane/node`.
const LOAD_SAMPLES: usize = 2;

/// Desired limits, and the minimum in effect.
#[derive(Clone, Copy, Debug)]
struct DesiredLimits {
    holder: LimitsOwner,
    limits: Limits,
    min_iops: u64,
}

/// Shared store on one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    limits: BTreeMap<u32, Limits>,
    flows: BTreeMap<FlowSlot, DesiredLimits>,
    reserved_iops: u64,
    samples: VecDeque<(Time, BTreeMap<u32, DiskQosCounters>)>,
}

impl Shared {
    /// Sets the limits of a disk.
    pub(crate) fn limit(&mut self, disk: u32, limits: Limits) {
        self.limits.insert(disk, limits);
    }

    /// Returns the disks with limits.
    pub(crate) fn disks(&self) -> impl Iterator<Item = u32> {
        self.limits.keys().copied()
    }

    /// Returns the changes for the scheduler, with the minimums that are then covered.
    pub(crate) fn covered(&mut self, change: Change) -> Vec<Change> {
        let mut set = None;
        let mut told = Vec::new();
        match change {
            Change::Flow { flow, holder, limits } => {
                let of =
                    self.flows.entry(flow).or_insert(DesiredLimits { holder, limits, min_iops: 0 });
                (of.holder, of.limits, set) = (holder, limits, Some(flow));
            }
            Change::RemoveFlow(flow) => {
                self.flows.remove(&flow);
                told.push(change);
            }
            Change::Cap(cap) => {
                self.reserved_iops = cap.map_or(0, |cap| cap.reserved_iops);
                told.push(change);
            }
            _ => return vec![change],
        }
        let min = |of: &DesiredLimits| of.limits.min_iops.map_or(0, Iops::per_second);
        let coverage = Coverage::new(self.reserved_iops, self.flows.values().map(min));
        for (flow, of) in &mut self.flows {
            let covered = coverage.minimum_in_effect(min(of), of.min_iops);
            if covered != of.min_iops || set == Some(*flow) {
                of.min_iops = covered;
                let limits = Limits { min_iops: Iops::new(covered), ..of.limits };
                told.push(Change::Flow { flow: *flow, holder: of.holder, limits });
            }
        }
        told
    }

    /// Appends the recent loads of all disks, given the current totals.
    pub(crate) fn loads(
        &mut self,
        now: Time,
        done: BTreeMap<u32, DiskQosCounters>,
        into: &mut Vec<DiskLoad>,
    ) {
        let before = self.samples.front().cloned();
        for (disk, limits) in &self.limits {
            let before = before.as_ref().and_then(|(at, of)| Some((*at, *of.get(disk)?)));
            let did = before
                .zip(done.get(disk))
                .and_then(|((at, before), after)| after.rates(&before, now.since(at)));
            let did = did.unwrap_or_default();
            into.push(DiskLoad {
                disk: DiskKey(u64::from(*disk)),
                policy: None,
                min_iops: limits.min_iops.map_or(0, |min| min.per_second()),
                max_iops: limits.max_iops.map(|max| max.per_second()),
                fallback_iops: None,
                weight: u32::from(limits.weight.number()),
                demand_iops: did.demanded_iops,
                delivered_iops: did.delivered_iops,
                waits_for_grant: did.waits_for_cap,
                waits_for_store: did.waits_for_device,
                is_busy: did.is_busy,
            });
        }
        self.samples.push_back((now, done));
        if self.samples.len() > LOAD_SAMPLES {
            self.samples.pop_front();
        }
    }
}
