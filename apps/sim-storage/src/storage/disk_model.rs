//! Implementation of the cluster's interface to disks by the nodes of a run.

use suimon_cluster_qos::DiskLoad;
use suimon_quantity::{DiskId, Time, TimedRateLimit};
use suimon_storage_qos::Change;

use crate::cluster::{DiskModel, NodeLimit};
use crate::storage::node::Node;

/// Nodes of a run, as the cluster accesses them. All use the same store.
pub(crate) struct SharedStore<'n>(pub(crate) &'n mut [Node]);

impl DiskModel for SharedStore<'_> {
    fn loads(&mut self, now: Time, node: u32, _store: u32, loads: &mut Vec<DiskLoad>) -> u64 {
        let node_state = &mut self.0[node as usize];
        let Some(mut shared) = node_state.shared.take() else { return 0 };
        let completed = shared.disks().filter_map(|disk| {
            let slot = node_state.store.slot(DiskId(disk))?;
            Some((disk, node_state.view(now, slot)?.done))
        });
        let completed = completed.collect();
        shared.loads(node_state.clock(now), completed, loads);
        node_state.shared = Some(shared);
        node_state.scheduler.own().latency_ns()
    }

    fn set_limit(&mut self, now: Time, node: u32, _store: u32, limit: NodeLimit) {
        let node_state = &mut self.0[node as usize];
        if node_state.shared.is_some() {
            let at_time = |iops: u64, ns: u64| {
                (iops > 0).then(|| (iops, node_state.clock(Time::from_ns(ns))))
            };
            let cap = TimedRateLimit {
                leased: at_time(limit.leased_iops, limit.leased_until_ns),
                reserved_iops: limit.reserved_iops,
                later: at_time(limit.fallback_iops, limit.late_from_ns),
            };
            node_state.apply(now, Change::Cap(Some(cap)));
        }
    }

    fn stop(&mut self, _now: Time, node: u32, until: Time) {
        let node_state = &mut self.0[node as usize];
        node_state.still_until = node_state.still_until.max(until);
    }
}
