//! Delivered operations of each disk over time.

use suimon_sim_kernel::SECOND_NS;
use suimon_storage_qos::{LimitsOwner, StoreEvent};

use crate::cluster::{ClusterFact, StoreNotice};

/// Length in ns of the slices of time by which operations are recorded.
pub(crate) const SLICE_NS: u64 = SECOND_NS / 10;

/// Completed operations of one disk.
#[derive(Clone, Debug, Default)]
struct Account {
    /// Completed normalised operations in each slice of [`SLICE_NS`].
    operations: Vec<u64>,
    requests: Vec<u64>,
    latency_ns: Vec<u64>,
}

/// Record of completed operations and notices, for the report of a run.
#[derive(Clone, Debug)]
pub(crate) struct Ledger {
    disks: Vec<Account>,
    /// Notices to the operator: time in ns, node, and content.
    pub(crate) notices: Vec<(u64, u32, StoreEvent)>,
    /// Rejections of minimums by the cluster: time in ns, and node.
    pub(crate) rejections: Vec<(u64, u32)>,
}

impl Ledger {
    pub(crate) fn new(disks: usize) -> Self {
        Self { disks: vec![Account::default(); disks], notices: Vec::new(), rejections: Vec::new() }
    }

    /// Records a completed request of a disk.
    pub(crate) fn handle_completed(&mut self, at_ns: u64, disk: u32, cost: u32, latency_ns: u64) {
        let Some(account) = self.disks.get_mut(disk as usize) else { return };
        let slice = (at_ns / SLICE_NS) as usize;
        for figures in [&mut account.operations, &mut account.requests, &mut account.latency_ns] {
            if figures.len() <= slice {
                figures.resize(slice + 1, 0);
            }
        }
        account.operations[slice] += u64::from(cost);
        account.requests[slice] += 1;
        account.latency_ns[slice] += latency_ns;
    }

    /// Records a fact of the cluster, if it is a rejection of minimums.
    pub(crate) fn observe(&mut self, at_ns: u64, cluster_fact: &ClusterFact) {
        if let ClusterFact::StoreNotified { what: StoreNotice::ReservationRefused, node, .. } =
            cluster_fact
        {
            self.rejections.push((at_ns, *node));
        }
    }

    /// Returns the rate of a disk in a window, in normalised operations per second. The ends of the
    /// window are rounded to slices.
    pub(crate) fn iops(&self, disk: u32, from_ns: u64, until_ns: u64) -> f64 {
        let Some(account) = self.disks.get(disk as usize) else { return 0.0 };
        let seconds = (until_ns - from_ns) as f64 / SECOND_NS as f64;
        sum(&account.operations, from_ns, until_ns) as f64 / seconds
    }

    /// Returns the mean latency of the array in a window, in ms.
    pub(crate) fn latency_ms(&self, disk: u32, from_ns: u64, until_ns: u64) -> f64 {
        let Some(account) = self.disks.get(disk as usize) else { return 0.0 };
        let requests = sum(&account.requests, from_ns, until_ns).max(1);
        sum(&account.latency_ns, from_ns, until_ns) as f64 / requests as f64 / 1e6
    }

    /// Returns the time in ns of the first notice about an unmet minimum of a disk, at or after
    /// `from_ns`; `None` if there is none.
    pub(crate) fn unmet_notified_at(&self, disk: u32, from_ns: u64) -> Option<u64> {
        let is_unmet_of_disk = |event: &StoreEvent| {
            matches!(event, StoreEvent::MinimumUnmet(unmet)
                if matches!(unmet.owner, LimitsOwner::Disk(holder) if holder.0 == disk))
        };
        let notice = self
            .notices
            .iter()
            .find(|(notice_at, _, event)| *notice_at >= from_ns && is_unmet_of_disk(event));
        notice.map(|(notice_at, _, _)| *notice_at)
    }
}

fn sum(slices: &[u64], from_ns: u64, until_ns: u64) -> u64 {
    let (first_slice, until) = ((from_ns / SLICE_NS) as usize, (until_ns / SLICE_NS) as usize);
    let until = until.min(slices.len());
    slices.get(first_slice.min(until)..until).unwrap_or_default().iter().sum()
}
