//! Report and other data that a worker keeps between its exchanges with the budget of a store.

use std::sync::Arc;

use suimon_ports::Waker;
use suimon_quantity::Time;
use suimon_storage_qos::{Borrower, WorkerReport};

/// Report and other data that a worker keeps between its exchanges with a budget.
pub(crate) struct PendingReport {
    /// Report of the worker's borrower that was not passed to the budget yet.
    pub(crate) report: WorkerReport,
    /// Empty report, kept for reuse of its memory.
    spent: WorkerReport,
    /// Time of the budget's next grant or observation, as of the last exchange.
    pub(crate) next_budget_deadline: Time,
    /// Wakers of workers with grants or changes to fetch, to be called after the lock is released.
    pub(crate) to_wake: Vec<Arc<dyn Waker>>,
}

impl Default for PendingReport {
    fn default() -> Self {
        let (report, spent_report) = (WorkerReport::default(), WorkerReport::default());
        Self { report, spent: spent_report, next_budget_deadline: Time::NEVER, to_wake: Vec::new() }
    }
}

impl PendingReport {
    /// Adds the borrower's new report to `report`.
    pub(crate) fn collect(&mut self, now: Time, borrower: &mut Borrower) {
        match borrower.poll_report(now, core::mem::take(&mut self.spent)) {
            Ok(mut report) if self.report.is_empty() => {
                core::mem::swap(&mut self.report, &mut report);
                self.spent = report;
            }
            Ok(mut report) => {
                self.report.append(&mut report);
                self.spent = report;
            }
            Err(spent_report) => self.spent = spent_report,
        }
    }

    /// Takes the last report of a worker that ends, and the list of workers to be woken. The report
    /// returns the borrower's loans. It contains no requests, because the worker will not dispatch
    /// them. Without `borrower`, only the report that was collected before is taken.
    pub(crate) fn take_last(
        &mut self,
        now: Time,
        borrower: Option<&mut Borrower>,
    ) -> (WorkerReport, &mut Vec<Arc<dyn Waker>>) {
        if let Some(borrower) = borrower {
            borrower.set_draining(true);
            self.collect(now, borrower);
        }
        let mut last = core::mem::take(&mut self.report);
        last.queued_requests.clear();
        last.loan_requests.clear();
        (last, &mut self.to_wake)
    }
}
