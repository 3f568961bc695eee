//! Start and end of borrowing: transfer of queued requests and requests in flight between a
//! scheduler and a borrower.

use suimon_quantity::Time;

use crate::borrower::Borrower;
use crate::phase::Phases;
use crate::queued_requests::RequestCharge;
use crate::{DiskSlot, WorkerReport};

impl Borrower {
    /// Adds a queued request that the budget has already counted.
    pub(crate) fn push_counted_request(&mut self, disk: DiskSlot, tag: u32, units: RequestCharge) {
        let Some(queue) = self.queues.get_mut(disk.0 as usize) else { return };
        self.records.push(&mut queue.fifo, tag, units);
        queue.waiting += 1;
    }

    /// Takes over the requests in flight of a disk from the budget's scheduler, which accounted for
    /// them up to `now`.
    pub(crate) fn adopt_in_flight(
        &mut self,
        now: Time,
        disk: DiskSlot,
        in_flight: u32,
        phases: Phases,
    ) {
        let Some(queue) = self.queues.get_mut(disk.0 as usize) else { return };
        queue.local.adopt_in_flight(now, in_flight, phases);
        queue.account(now, disk, &mut self.changed);
    }

    /// Returns the phases of a disk's requests in flight at this worker.
    pub(crate) fn phases(&self, disk: DiskSlot) -> Phases {
        self.queues.get(disk.0 as usize).map(|queue| queue.local.phases()).unwrap_or_default()
    }

    /// Returns a report with the request times that were not reported yet. Call it when the worker
    /// becomes the only user of the store.
    pub fn take_time_report(&mut self, now: Time) -> WorkerReport {
        self.report_times(now, true);
        WorkerReport { times: core::mem::take(&mut self.report.times), ..WorkerReport::default() }
    }

    /// Removes a disk's oldest queued request and returns its tag, or `None` if there is none. The
    /// scheduler then has the request in its queue.
    pub(crate) fn pop_queued(&mut self, disk: DiskSlot) -> Option<u32> {
        let queue = self.queues.get_mut(disk.0 as usize)?;
        queue.waiting = queue.waiting.saturating_sub(1);
        self.records.pop(&mut queue.fifo).map(|record| record.tag)
    }
}
