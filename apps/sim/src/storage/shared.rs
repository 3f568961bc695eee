//! Node of a store shared with other nodes. As in `plane/node`, its scheduler receives the node's
//! limit (`Change::Cap`) and the covered minimums, and the cluster receives the loads of the node's
//! disks.

use std::collections::{BTreeMap, VecDeque};

use suimon_cluster_qos::{Coverage, DiskKey, DiskLoad};
use suimon_quantity::{Cap, DiskId, Iops, Time};
use suimon_storage_qos::{Change, Done, FlowSlot, Holder, Limits};

use crate::cluster::{HeldTo, Plant};
use crate::storage::node::Node;

/// Number of samples over which loads are reported, as in `plane/node`.
const LOOKS: usize = 2;

/// Desired limits, and the minimum in effect.
#[derive(Clone, Copy, Debug)]
struct Wanted {
    holder: Holder,
    limits: Limits,
    min_iops: u64,
}

/// Shared store on one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shared {
    limits: BTreeMap<u32, Limits>,
    flows: BTreeMap<FlowSlot, Wanted>,
    reserved_iops: u64,
    looks: VecDeque<(Time, BTreeMap<u32, Done>)>,
}

impl Shared {
    /// Sets the limits of a disk.
    pub(crate) fn limit(&mut self, disk: u32, limits: Limits) {
        self.limits.insert(disk, limits);
    }

    /// Returns the changes for the scheduler, with the minimums that are then covered.
    pub(crate) fn covered(&mut self, change: Change) -> Vec<Change> {
        let mut set = None;
        let mut told = Vec::new();
        match change {
            Change::Flow { flow, holder, limits } => {
                let of = self.flows.entry(flow).or_insert(Wanted { holder, limits, min_iops: 0 });
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
        let min = |of: &Wanted| of.limits.min_iops.map_or(0, Iops::per_second);
        let coverage = Coverage::new(self.reserved_iops, self.flows.values().map(min));
        for (flow, of) in &mut self.flows {
            let covered = coverage.of(min(of), of.min_iops);
            if covered != of.min_iops || set == Some(*flow) {
                of.min_iops = covered;
                let limits = Limits { min_iops: Iops::new(covered), ..of.limits };
                told.push(Change::Flow { flow: *flow, holder: of.holder, limits });
            }
        }
        told
    }

    /// Appends the recent loads of all disks, given the current totals.
    fn loads(&mut self, now: Time, done: BTreeMap<u32, Done>, into: &mut Vec<DiskLoad>) {
        let before = self.looks.front().cloned();
        for (disk, limits) in &self.limits {
            let before = before.as_ref().and_then(|(at, of)| Some((*at, *of.get(disk)?)));
            let did = before
                .zip(done.get(disk))
                .map(|((at, before), after)| after.rates(&before, now.since(at)));
            let did = did.unwrap_or_default();
            into.push(DiskLoad {
                disk: DiskKey(u64::from(*disk)),
                policy: None,
                min_iops: limits.min_iops.map_or(0, |min| min.per_second()),
                max_iops: limits.max_iops.map(|max| max.per_second()),
                fallback_iops: None,
                weight: u32::from(limits.weight.number()),
                demanded_iops: did.demanded_iops,
                delivered_iops: did.delivered_iops,
                waits_for_grant: did.waits_for_cap,
                waits_for_store: did.waits_for_device,
                is_busy: did.is_busy,
            });
        }
        self.looks.push_back((now, done));
        if self.looks.len() > LOOKS {
            self.looks.pop_front();
        }
    }
}

/// Nodes of a run as seen by the cluster. There is one store.
pub(crate) struct SharedStore<'n>(pub(crate) &'n mut [Node]);

impl Plant for SharedStore<'_> {
    fn loads(&mut self, now: Time, node: u32, _store: u32, into: &mut Vec<DiskLoad>) -> u64 {
        let of = &mut self.0[node as usize];
        let Some(mut shared) = of.shared.take() else { return 0 };
        let done = shared.limits.keys().filter_map(|disk| {
            let slot = of.store.slot(DiskId(*disk))?;
            Some((*disk, of.view(now, slot)?.done))
        });
        let done = done.collect();
        shared.loads(of.clock(now), done, into);
        of.shared = Some(shared);
        of.scheduler.own().latency_ns()
    }

    fn hold(&mut self, now: Time, node: u32, _store: u32, to: HeldTo) {
        let of = &mut self.0[node as usize];
        if of.shared.is_some() {
            let when = |iops: u64, ns: u64| (iops > 0).then(|| (iops, of.clock(Time::from_ns(ns))));
            let cap = Cap {
                leased: when(to.leased_iops, to.leased_until_ns),
                reserved_iops: to.reserved_iops,
                late: when(to.late_iops, to.late_from_ns),
            };
            of.apply(now, Change::Cap(Some(cap)));
        }
    }

    fn stop(&mut self, _now: Time, node: u32, until: Time) {
        let of = &mut self.0[node as usize];
        of.still_until = of.still_until.max(until);
    }
}
