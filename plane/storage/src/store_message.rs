//! Messages between workers that use the same store, and the queue of those that the caller has not
//! fetched.

use std::collections::VecDeque;

use suimon_quantity::{StoreId, WorkerId};
use suimon_recording::Recorded;
use suimon_storage_qos::{Grant, LoanReport, StoreBudget};

/// Message of one worker's engine to another. The caller delivers messages in order and without
/// loss between any two workers.
#[derive(Debug)]
pub enum StoreMessage {
    /// Report of a worker to the budget.
    Report {
        /// Store that the message concerns.
        store: StoreId,
        /// Author of the report. The previous holder of the budget may have forwarded it.
        of: WorkerId,
        /// Requests, completions and time of the worker.
        report: LoanReport,
        /// Empty list for reuse of its memory.
        spent: Vec<Grant>,
    },
    /// Grants of the budget to the worker.
    Grants {
        /// Store that the message concerns.
        store: StoreId,
        /// Grants in the order of their decision.
        grants: Vec<Grant>,
        /// Empty lists for reuse of their memory.
        spent: LoanReport,
    },
    /// Budget of a store, which the receiving worker holds from now on.
    Budget {
        /// Store that the message concerns.
        store: StoreId,
        /// Budget of the store, with its scheduler.
        budget: Box<Recorded<StoreBudget>>,
    },
}

impl StoreMessage {
    /// Returns the store that the message concerns.
    #[must_use]
    pub const fn store(&self) -> StoreId {
        match self {
            Self::Report { store, .. }
            | Self::Grants { store, .. }
            | Self::Budget { store, .. } => *store,
        }
    }
}

/// Largest number of empty lists that are kept for reuse.
const SPENT_MAX: usize = 64;

/// Messages that the caller has not fetched yet.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    pub(crate) mail: VecDeque<(WorkerId, StoreMessage)>,
    pub(crate) grants: Vec<Vec<Grant>>,
    pub(crate) reports: Vec<LoanReport>,
}

impl Outbox {
    pub(crate) fn send(&mut self, to: WorkerId, mail: StoreMessage) {
        self.mail.push_back((to, mail));
    }

    /// Adds a grant. Unfetched grants to the same worker are merged into one message.
    pub(crate) fn grant(&mut self, store: StoreId, grant: Grant) {
        let last = self.mail.iter_mut().rev().find(|(to, _)| *to == grant.worker);
        if let Some((_, StoreMessage::Grants { store: of, grants, .. })) = last {
            if *of == store {
                return grants.push(grant);
            }
        }
        let mut grants = self.grants.pop().unwrap_or_default();
        grants.push(grant);
        let spent = self.spent_report();
        self.send(grant.worker, StoreMessage::Grants { store, grants, spent });
    }

    /// Adds a report. Unfetched reports of the same worker are merged into one message.
    pub(crate) fn report(
        &mut self,
        to: WorkerId,
        store: StoreId,
        whose: WorkerId,
        mut report: LoanReport,
    ) {
        let last = self.mail.iter_mut().rev().find(|(of, _)| *of == to);
        if let Some((_, StoreMessage::Report { store: at, of, report: last, .. })) = last {
            if (*at, *of) == (store, whose) {
                last.append(&mut report);
                return self.keep_report(report);
            }
        }
        let spent = self.grants.pop().unwrap_or_default();
        self.send(to, StoreMessage::Report { store, of: whose, report, spent });
    }

    /// Returns an empty report, with reused memory if there is any.
    pub(crate) fn spent_report(&mut self) -> LoanReport {
        self.reports.pop().unwrap_or_default()
    }

    pub(crate) fn keep_report(&mut self, report: LoanReport) {
        if self.reports.len() < SPENT_MAX {
            self.reports.push(report);
        }
    }

    pub(crate) fn keep_grants(&mut self, mut grants: Vec<Grant>) {
        grants.clear();
        if self.grants.len() < SPENT_MAX {
            self.grants.push(grants);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mail.is_empty()
    }
}
