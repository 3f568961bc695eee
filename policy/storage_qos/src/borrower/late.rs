//! Grants that arrive after the worker was blocked.

use suimon_quantity::Time;

use crate::borrower::Borrower;
use crate::{Grant, GrantKind, RequestedGrant, Return};

impl Borrower {
    /// Declines a grant that is older than [`GRANT_AGE_MAX`](crate::GRANT_AGE_MAX). The granted
    /// requests are reported again. Their charge is not refunded, because the maximum was used up
    /// for them while other workers dispatched requests.
    pub fn decline_grant(&mut self, now: Time, grant: Grant) {
        let Some(queue) = self.queues.get_mut(grant.disk.0 as usize) else { return };
        let disk = grant.disk;
        match grant.of {
            GrantKind::Waiting(requests) => {
                self.report.returns.push(Return { disk, requests, cost: 0, bytes: 0 });
                let waiting = self.records.units(&queue.fifo).skip(queue.granted as usize);
                let again = waiting.take(requests as usize);
                let again = again.map(|units| RequestedGrant { disk, bytes: units.bytes });
                self.report.loan_demand.extend(again);
            }
            GrantKind::Ahead(_) => {
                queue.loans_requested = queue.loans_requested.saturating_sub(1);
                self.report.returns.push(Return { disk, requests: 1, cost: 0, bytes: 0 });
            }
            GrantKind::Nothing | GrantKind::Refused(_) => self.handle_grant(now, grant),
        }
    }
}
