//! Grants that a worker receives late, because it was blocked.

use suimon_quantity::Time;

use crate::borrower::Borrower;
use crate::queued_requests::RequestCharge;
use crate::{DiskSlot, GrantKind, RequestedGrant, ReturnedGrant, WorkerGrant};

impl Borrower {
    /// Applies a grant that is older than [`GRANT_AGE_MAX`](crate::GRANT_AGE_MAX). One of the
    /// granted requests may be dispatched if the disk has no other granted request: a worker whose
    /// rounds take longer than that age would otherwise dispatch nothing. All further requests are
    /// declined: they are reported again, and what they were charged is refunded.
    pub fn handle_late_grant(&mut self, now: Time, grant: WorkerGrant) {
        let disk = grant.disk;
        let Some(queue) = self.queues.get(disk.0 as usize) else { return };
        match grant.kind {
            GrantKind::QueuedRequests(requests) if queue.granted == 0 && requests > 0 => {
                self.handle_grant(now, WorkerGrant { kind: GrantKind::QueuedRequests(1), ..grant });
                self.decline(disk, requests - 1);
            }
            GrantKind::QueuedRequests(requests) => self.decline(disk, requests),
            GrantKind::Loan(bytes) => {
                let cost = self.normalization.cost(bytes);
                self.report.returned_grants.push(ReturnedGrant { disk, requests: 1, cost, bytes });
                self.handle_grant(now, WorkerGrant { kind: GrantKind::LoanRefused, ..grant });
            }
            GrantKind::LoanRefused | GrantKind::QueuedRequestRefused(_) => {
                self.handle_grant(now, grant);
            }
        }
    }

    /// Declines a grant for `requests` queued requests. The refund is that of the requests that are
    /// reported again, so that a request is never refunded without being charged later.
    fn decline(&mut self, disk: DiskSlot, requests: u32) {
        let Some(queue) = self.queues.get(disk.0 as usize).filter(|_| requests > 0) else { return };
        let waiting = self.records.units(&queue.fifo).skip(queue.granted as usize);
        let mut sum = RequestCharge::default();
        for units in waiting.take(requests as usize) {
            sum.cost = sum.cost.saturating_add(units.cost);
            sum.bytes = sum.bytes.saturating_add(units.bytes);
            self.report.queued_requests.push(RequestedGrant { disk, bytes: units.bytes });
        }
        let RequestCharge { cost, bytes } = sum;
        self.report.returned_grants.push(ReturnedGrant { disk, requests, cost, bytes });
    }
}
