//! Fluid model of the disks of a store on a node.
//!
//! - A disk has a demand w (0, a rate, or unlimited), a minimum m (0 for none), a maximum and a
//!   weight g.
//! - With the node's limit C, a disk first gets r = min(w, m, remaining limit). The rest after all
//!   minimums is divided by weight among disks with further demand, so that r / g is equal for all
//!   disks with r < w.
//! - A store delivers the limits of all its nodes, since their sum does not exceed its capacity:
//!   the model has no queues and no latency. Slow stores are therefore not modelled.
//! - Rates change only when w, m or C changes, or when C expires. The completed operations are r ·
//!   t.
//!
//! The only parameters are those drawn by the scenario. A minimum is in effect as soon as the
//! node's reservation covers it and all other minimums.

use suimon_cluster_qos::{DiskKey, DiskLoad, ReservationCoverage};
use suimon_sim_kernel::SECOND_NS;

use crate::cluster::NodeLimit;

/// Disk of the fluid model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FluidDisk {
    pub(crate) demand_iops: u64,
    pub(crate) min_iops: u64,
    pub(crate) max_iops: Option<u64>,
    pub(crate) weight: u32,
    /// Part of the minimum that the node's reservation covers, in normalised operations per second.
    reserved_minimum: u64,
    rate: u64,
    /// Operations completed since the last report, times 10⁹.
    delivered: u64,
}

impl FluidDisk {
    pub(crate) const fn new(min: u64, max: Option<u64>) -> Self {
        Self {
            demand_iops: 0,
            min_iops: min,
            max_iops: max,
            weight: 100,
            reserved_minimum: 0,
            rate: 0,
            delivered: 0,
        }
    }

    fn demand(&self) -> u64 {
        self.demand_iops.min(self.max_iops.unwrap_or(u64::MAX))
    }

    fn lacks(&self) -> bool {
        self.rate + self.rate / 100 + 1 < self.demand()
    }
}

/// Disks of a store on a node.
#[derive(Clone, Debug)]
pub(crate) struct NodeStoreDisks {
    pub(crate) disks: Vec<FluidDisk>,
    to: NodeLimit,
    at: u64,
    still_until: u64,
    reported: u64,
    /// True if the last reported state is that a disk waits for the node's limit.
    pub(crate) is_reported_waiting: bool,
}

impl NodeStoreDisks {
    pub(crate) fn new(disks: Vec<FluidDisk>) -> Self {
        Self {
            disks,
            to: NodeLimit::default(),
            at: 0,
            still_until: 0,
            reported: 0,
            is_reported_waiting: false,
        }
    }

    /// Advances the model to the time `now` in ns.
    fn pass(&mut self, now: u64) {
        while self.at < now {
            let is_still = self.at < self.still_until;
            let ends =
                if is_still { Some(self.still_until) } else { self.to.next_change_after(self.at) };
            let until = ends.map_or(now, |end| end.min(now));
            let ns = until - self.at;
            for disk in &mut self.disks {
                disk.delivered += disk.rate * ns;
            }
            self.at = until;
            if ends == Some(until) {
                self.divide();
            }
        }
    }

    /// Changes disks at the time `now` in ns and recomputes all rates.
    pub(crate) fn change(&mut self, now: u64, change: impl FnOnce(&mut [FluidDisk])) {
        self.pass(now);
        change(&mut self.disks);
        self.divide();
    }

    pub(crate) fn set_limit(&mut self, now: u64, limit: NodeLimit) {
        self.pass(now);
        self.to = limit;
        self.divide();
    }

    pub(crate) fn pause(&mut self, now: u64, until: u64) {
        self.pass(now);
        self.still_until = self.still_until.max(until);
        self.divide();
    }

    /// Returns true if the node's limit keeps a disk below its demand.
    pub(crate) fn is_limited_by_node(&self) -> bool {
        self.at >= self.still_until && self.disks.iter().any(FluidDisk::lacks)
    }

    fn divide(&mut self) {
        let is_still = self.at < self.still_until;
        let mut remaining = if is_still { 0 } else { self.to.iops_at(self.at) };
        let minimums = self.disks.iter().map(|disk| disk.min_iops);
        let coverage = ReservationCoverage::new(self.to.reserved_iops, minimums);
        for disk in &mut self.disks {
            disk.reserved_minimum =
                coverage.minimum_in_effect(disk.min_iops, disk.reserved_minimum);
            disk.rate = disk.demand().min(disk.reserved_minimum).min(remaining);
            remaining -= disk.rate;
        }
        // Each round satisfies the demand of at least one disk, or ends the loop.
        for _ in 0..self.disks.len() {
            let hungry = |disk: &&mut FluidDisk| disk.rate < disk.demand();
            let weights: u64 =
                self.disks.iter_mut().filter(hungry).map(|disk| u64::from(disk.weight)).sum();
            if weights == 0 || remaining == 0 {
                return;
            }
            let spare = remaining;
            for disk in self.disks.iter_mut().filter(hungry) {
                let lacks = disk.demand() - disk.rate;
                let extra = (spare * u64::from(disk.weight) / weights).min(lacks);
                disk.rate += extra;
                remaining -= extra;
            }
        }
    }

    /// Appends the load of each disk since the last call, and calls `report_done` with the number
    /// of each disk and its completed operations. `first` is the number of the first disk.
    pub(crate) fn append_loads(
        &mut self,
        now: u64,
        first: u32,
        loads: &mut Vec<DiskLoad>,
        mut report_done: impl FnMut(u32, u64),
    ) {
        self.pass(now);
        let ns = (now - self.reported).max(1);
        self.reported = now;
        for (disk, fluid_disk) in (first..).zip(&mut self.disks) {
            let operations = fluid_disk.delivered / SECOND_NS;
            let delivered = fluid_disk.delivered / ns;
            fluid_disk.delivered -= operations * SECOND_NS;
            report_done(disk, operations);
            let lacks = fluid_disk.lacks();
            loads.push(DiskLoad {
                disk: DiskKey(u64::from(disk)),
                policy: None,
                min_iops: fluid_disk.min_iops,
                max_iops: fluid_disk.max_iops,
                fallback_iops: None,
                weight: fluid_disk.weight,
                demand_iops: if lacks { delivered } else { fluid_disk.demand() },
                delivered_iops: delivered,
                waits_for_grant: lacks,
                waits_for_store: false,
                is_fully_utilised: lacks,
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node_limit(iops: u64, until: u64, reserved: u64) -> NodeLimit {
        let leased_until_ns = until * SECOND_NS;
        NodeLimit {
            leased_iops: iops,
            leased_until_ns,
            reserved_iops: reserved,
            ..NodeLimit::default()
        }
    }

    #[test]
    fn minimums_are_served_first_and_the_rest_by_weight_until_the_lease_expires() {
        let disk = |min, demand, weight| FluidDisk {
            demand_iops: demand,
            weight,
            ..FluidDisk::new(min, None)
        };
        let disks = vec![disk(300, u64::MAX, 100), disk(0, u64::MAX, 300), disk(0, 50, 100)];
        let mut pool = NodeStoreDisks::new(disks);
        pool.set_limit(0, node_limit(850, 10, 364));
        assert_eq!([0, 1, 2].map(|index| pool.disks[index].rate), [425, 375, 50]);
        let mut loads = Vec::new();
        let mut delivered = 0;
        pool.append_loads(20 * SECOND_NS, 7, &mut loads, |_, operations| delivered += operations);
        // Ten seconds with the lease, ten without.
        assert!((delivered as i64 - (850 + 364) * 10).abs() < 600, "{delivered}");
        assert!(loads[0].waits_for_grant && loads[1].waits_for_grant && pool.is_limited_by_node());
        assert_eq!((loads[2].disk.0, pool.disks[0].rate), (9, 300 + 64 / 5));
        pool.pause(20 * SECOND_NS, 30 * SECOND_NS);
        let mut delivered = 0;
        pool.append_loads(30 * SECOND_NS, 7, &mut loads, |_, operations| delivered += operations);
        assert!(delivered <= 3, "{delivered}");
    }
}
