//! Implementation of the cluster's interface to disks by the nodes of a run.

use suimon_cluster_qos::DiskLoad;
use suimon_quantity::{DiskId, Time, TimedRateLimit};
use suimon_storage_qos::ConfigStep;

use crate::cluster::{DiskModel, NodeLimit};
use crate::storage::node_store::NodeStore;

/// Nodes of a run, as the cluster accesses them. All use the same store.
pub(crate) struct SharedStore<'n>(pub(crate) &'n mut [NodeStore]);

impl DiskModel for SharedStore<'_> {
    fn append_loads(
        &mut self,
        now: Time,
        node: u32,
        _store: u32,
        loads: &mut Vec<DiskLoad>,
    ) -> u64 {
        let node_state = &mut self.0[node as usize];
        let Some(mut shared) = node_state.shared.take() else { return 0 };
        let completed = shared.disks().filter_map(|disk| {
            let slot = node_state.store.slot(DiskId(disk))?;
            Some((disk, node_state.disk_flow(now, slot)?.counters))
        });
        let completed = completed.collect();
        shared.append_loads(node_state.local_time(now), completed, loads);
        node_state.shared = Some(shared);
        node_state.scheduler.production().device_latency_ns()
    }

    fn set_limit(&mut self, now: Time, node: u32, _store: u32, limit: NodeLimit) {
        let node_state = &mut self.0[node as usize];
        if node_state.shared.is_some() {
            let at_time = |iops: u64, ns: u64| {
                (iops > 0).then(|| (iops, node_state.local_time(Time::from_ns(ns))))
            };
            let cap = TimedRateLimit {
                leased_iops_until: at_time(limit.leased_iops, limit.leased_until_ns),
                reserved_iops: limit.reserved_iops,
                next_iops_from: at_time(limit.fallback_iops, limit.fallback_from_ns),
            };
            node_state.apply(now, ConfigStep::SetCap(Some(cap)));
        }
    }

    fn pause_node(&mut self, _now: Time, node: u32, until: Time) {
        let node_state = &mut self.0[node as usize];
        node_state.paused_until = node_state.paused_until.max(until);
    }
}
