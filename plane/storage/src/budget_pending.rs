//! Data that a worker keeps between its exchanges with a budget.

use std::sync::Arc;

use suimon_ports::Waker;
use suimon_quantity::Time;
use suimon_storage_qos::{Borrower, LoanReport};

/// Data that a worker keeps between its exchanges.
pub(crate) struct Pending {
    /// Report that was not handed over yet.
    pub(crate) report: LoanReport,
    /// Empty report for reuse of its memory.
    spent: LoanReport,
    /// Time of the budget's next action as of the last exchange.
    pub(crate) due: Time,
    /// Workers with news, to be woken after the lock is released.
    pub(crate) to_wake: Vec<Arc<dyn Waker>>,
}

impl Default for Pending {
    fn default() -> Self {
        let (report, spent_report) = (LoanReport::default(), LoanReport::default());
        Self { report, spent: spent_report, due: Time::NEVER, to_wake: Vec::new() }
    }
}

impl Pending {
    /// Adds the borrower's report to the one that was not handed over yet.
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
    /// them.
    pub(crate) fn take_last(
        &mut self,
        now: Time,
        borrower: Option<&mut Borrower>,
    ) -> (LoanReport, &mut Vec<Arc<dyn Waker>>) {
        if let Some(borrower) = borrower {
            borrower.set_settling(true);
            self.collect(now, borrower);
        }
        let mut last = core::mem::take(&mut self.report);
        last.loan_demand.clear();
        last.loan_requests.clear();
        (last, &mut self.to_wake)
    }
}
