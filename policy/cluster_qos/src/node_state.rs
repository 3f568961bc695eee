//! Leader's state for one node.

use core::time::Duration;
use std::collections::VecDeque;

use suimon_quantity::Time;

use crate::load::LoadReport;
use crate::{AdmissionCheck, GrantId, ReportId};

/// Maximum number of unacknowledged grants whose times the leader records per node.
const UNACKNOWLEDGED_MAX: usize = 32;

/// Leader's state for one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeState {
    /// Last report of the node, with lists of bounded length, and the time of its receipt.
    pub(crate) report: Option<(LoadReport, Time)>,
    /// Identifier of the newest report for which the node received a grant.
    pub(crate) last_answered_report: Option<ReportId>,
    /// Grants after the last acknowledged one, oldest first, each with the time at which it was
    /// given.
    pub(crate) unacknowledged: VecDeque<(GrantId, Time)>,
    /// Time at which the last acknowledged grant was given; `None` before the first
    /// acknowledgement.
    pub(crate) acknowledged_at: Option<Time>,
    /// Admitted reservation of the node, in normalised operations per second.
    pub(crate) admitted: u64,
    pub(crate) admitted_fallback: u64,
    /// Reservation that was requested and rejected, in normalised operations per second, with the
    /// admission calculation; `None` if nothing is rejected.
    pub(crate) refused: Option<(u64, AdmissionCheck)>,
    pub(crate) is_silent: bool,
}

impl NodeState {
    /// Records that the node has applied a grant. Removes it and those before it.
    pub(crate) fn acknowledge(&mut self, grant_id: GrantId) {
        while let Some((id, granted_at)) =
            self.unacknowledged.front().copied().filter(|(id, _)| *id <= grant_id)
        {
            if id == grant_id {
                self.acknowledged_at = Some(granted_at);
            }
            self.unacknowledged.pop_front();
        }
    }

    /// Records a grant that answers a report.
    pub(crate) fn record_grant(&mut self, id: GrantId, now: Time, answers: ReportId) {
        if self.unacknowledged.len() >= UNACKNOWLEDGED_MAX {
            self.unacknowledged.pop_front();
        }
        self.unacknowledged.push_back((id, now));
        self.last_answered_report = Some(answers);
    }

    /// Returns the last report of the node, or `None` if it was received `max_age` or longer ago.
    pub(crate) fn current(&self, now: Time, max_age: Duration) -> Option<&LoadReport> {
        let (report, received_at) = self.report.as_ref()?;
        (now.since(*received_at) < max_age).then_some(report)
    }
}
