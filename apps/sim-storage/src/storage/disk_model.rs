//! Nodes of a run as the cluster's model of disks.

use suimon_cluster_qos::DiskLoad;
use suimon_quantity::{DiskId, Time, TimedRateLimit};
use suimon_storage_qos::Change;

use crate::cluster::{DiskModel, NodeLimit};
use crate::storage::node::Node;

/// Nodes of a run as seen by the cluster. There is one store.
pub(crate) struct SharedStore<'n>(pub(crate) &'n mut [Node]);

impl DiskModel for SharedStore<'_> {
    fn loads(&mut self, now: Time, node: u32, _store: u32, into: &mut Vec<DiskLoad>) -> u64 {
        let of = &mut self.0[node as usize];
        let Some(mut shared) = of.shared.take() else { return 0 };
        let done = shared.disks().filter_map(|disk| {
            let slot = of.store.slot(DiskId(disk))?;
            Some((disk, of.view(now, slot)?.done))
        });
        let done = done.collect();
        shared.loads(of.clock(now), done, into);
        of.shared = Some(shared);
        of.scheduler.own().latency_ns()
    }

    fn set_limit(&mut self, now: Time, node: u32, _store: u32, to: NodeLimit) {
        let of = &mut self.0[node as usize];
        if of.shared.is_some() {
            let when = |iops: u64, ns: u64| (iops > 0).then(|| (iops, of.clock(Time::from_ns(ns))));
            let cap = TimedRateLimit {
                leased: when(to.leased_iops, to.leased_until_ns),
                reserved_iops: to.reserved_iops,
                later: when(to.late_iops, to.late_from_ns),
            };
            of.apply(now, Change::Cap(Some(cap)));
        }
    }

    fn stop(&mut self, _now: Time, node: u32, until: Time) {
        let of = &mut self.0[node as usize];
        of.still_until = of.still_until.max(until);
    }
}
