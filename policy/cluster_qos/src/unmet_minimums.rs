//! Minimums that disks do not reach although they have demand, from the reports of the nodes.

use std::collections::BTreeMap;

use suimon_quantity::Time;

use crate::load::{LoadReport, REPORTED_DISKS_MAX, ReportedDisk};
use crate::notice::Notice;
use crate::{DiskKey, NodeId};

/// Maximum number of unmet minimums that the leader records per node.
const UNMET_PER_NODE_MAX: usize = 64;

/// Minimum that a disk does not reach although it has demand.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UnmetMinimum {
    /// Time of the first of the node's consecutive reports that name the disk.
    pub(crate) since: Time,
    /// Entry for the disk in the newest report that names it.
    pub(crate) last_entry: ReportedDisk,
    /// True if the leader has reported the minimum as unmet.
    pub(crate) is_reported: bool,
}

/// Unmet minimums by node and disk.
#[derive(Clone, Debug, Default)]
pub(crate) struct UnmetMinimums {
    pub(crate) minimums: BTreeMap<(NodeId, DiskKey), UnmetMinimum>,
}

impl UnmetMinimums {
    /// Updates the unmet minimums of the reporting node. Returns [`Notice::MinimumMet`] for each
    /// reported minimum that the node no longer names.
    ///
    /// A report names at most [`REPORTED_DISKS_MAX`] disks. If it names that many, disks that it
    /// does not name keep their state.
    pub(crate) fn handle_report(&mut self, now: Time, report: &LoadReport) -> Vec<Notice> {
        let node = report.node;
        let named_disks: Vec<&ReportedDisk> =
            report.disks_below_guarantee.iter().take(REPORTED_DISKS_MAX).collect();
        let is_complete = named_disks.len() < REPORTED_DISKS_MAX;
        let mut met = Vec::new();
        self.minimums.retain(|(reporter, disk), minimum| {
            let is_retained = *reporter != node
                || !is_complete
                || named_disks.iter().any(|unmet| unmet.disk == *disk);
            if !is_retained && minimum.is_reported {
                met.push(Notice::MinimumMet { node, disk: *disk });
            }
            is_retained
        });
        let mut space = UNMET_PER_NODE_MAX.saturating_sub(self.count(node));
        for unmet in named_disks {
            match self.minimums.get_mut(&(node, unmet.disk)) {
                Some(minimum) => minimum.last_entry = *unmet,
                None if space > 0 => {
                    let new = UnmetMinimum { since: now, last_entry: *unmet, is_reported: false };
                    self.minimums.insert((node, unmet.disk), new);
                    space -= 1;
                }
                None => {}
            }
        }
        met
    }

    /// Returns the number of unmet minimums of a node.
    fn count(&self, node: NodeId) -> usize {
        self.minimums.keys().filter(|(reporter, _)| *reporter == node).count()
    }

    /// Removes the unmet minimums of a node.
    pub(crate) fn forget(&mut self, node: NodeId) {
        self.minimums.retain(|(reporter, _), _| *reporter != node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: NodeId = NodeId(1);

    fn report(disks: &[u64]) -> LoadReport {
        let unmet = disks.iter().map(|disk| ReportedDisk {
            disk: DiskKey(*disk),
            guaranteed_iops: 100,
            demand_iops: 100,
            delivered_iops: 0,
        });
        LoadReport { disks_below_guarantee: unmet.collect(), ..LoadReport::empty(NODE) }
    }

    #[test]
    fn a_full_report_keeps_minimums_that_it_does_not_name() {
        let mut unmet = UnmetMinimums::default();
        let now = Time::default();
        assert!(unmet.handle_report(now, &report(&[1, 2, 3])).is_empty());
        unmet.minimums.values_mut().for_each(|minimum| minimum.is_reported = true);
        let full: Vec<u64> = (2..10).collect();
        assert!(unmet.handle_report(now, &report(&full)).is_empty(), "disk 1 may still be unmet");
        assert_eq!(unmet.count(NODE), 9);
        let met = unmet.handle_report(now, &report(&[2]));
        let disks = [1, 3].map(|disk| Notice::MinimumMet { node: NODE, disk: DiskKey(disk) });
        assert_eq!(met, disks);
    }

    #[test]
    fn unmet_minimums_of_a_node_are_bounded() {
        let mut unmet = UnmetMinimums::default();
        for first in (0..1000).step_by(8) {
            let disks: Vec<u64> = (first..first + 8).collect();
            unmet.handle_report(Time::default(), &report(&disks));
        }
        let disks: Vec<u64> = (5000..6000).collect();
        unmet.handle_report(Time::default(), &report(&disks));
        assert_eq!(unmet.count(NODE), UNMET_PER_NODE_MAX);
    }
}
