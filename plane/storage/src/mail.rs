//! Messages between workers that use the same store.

use std::collections::VecDeque;

use suimon_quantity::{StoreId, WorkerId};
use suimon_recording::Recorded;
use suimon_storage_qos::{Grant, GrantKind, LoanReport, Return, StoreBudget};

use crate::store::Mode;
use crate::work::StorageEngine;

/// Message of one worker's engine to another. The caller carries messages; between two workers they
/// are delivered in order and without loss.
#[derive(Debug)]
pub enum StoreMessage {
    /// Report of a worker to the budget.
    Report {
        /// Store that the message concerns.
        store: StoreId,
        /// Worker that made the report. The report may arrive by way of the former holder of the
        /// budget.
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
        /// Budget with its scheduler.
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

/// Messages not yet fetched by the caller.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    mail: VecDeque<(WorkerId, StoreMessage)>,
    grants: Vec<Vec<Grant>>,
    reports: Vec<LoanReport>,
}

impl Outbox {
    pub(crate) fn send(&mut self, to: WorkerId, mail: StoreMessage) {
        self.mail.push_back((to, mail));
    }

    /// Sends a grant. Grants to the same worker that were not fetched are merged into one message.
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

    /// Sends a report. Reports of the same worker that were not fetched are merged into one
    /// message.
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

    fn keep_grants(&mut self, mut grants: Vec<Grant>) {
        grants.clear();
        if self.grants.len() < SPENT_MAX {
            self.grants.push(grants);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.mail.is_empty()
    }
}

impl StorageEngine {
    /// Returns the next message for another worker. Called until `None` before the worker sleeps.
    pub fn poll_mail(&mut self) -> Option<(WorkerId, StoreMessage)> {
        self.outbox.mail.pop_front()
    }

    /// Queues a message of another worker for the next poll.
    pub fn handle_mail(&mut self, from: WorkerId, mail: StoreMessage) {
        self.inbox.push_back((from, mail));
    }

    /// Processes received messages. Returns true if there were any.
    pub(crate) fn read_mail(&mut self) -> bool {
        let any = !self.inbox.is_empty();
        while let Some((from, mail)) = self.inbox.pop_front() {
            match self.store_number(mail.store()) {
                Some(number) => self.read(number, from, mail),
                None => self.redirect(from, mail),
            }
        }
        any
    }

    fn read(&mut self, number: usize, from: WorkerId, mail: StoreMessage) {
        let Some(of) = self.stores.get_mut(number) else { return };
        match mail {
            StoreMessage::Report { store, of: whose, report, spent } => {
                self.outbox.keep_grants(spent);
                match &mut of.mode {
                    Mode::Home { budget, .. } => {
                        budget.handle_report(self.now, whose, &report);
                        self.outbox.keep_report(report);
                    }
                    // The budget was held by this worker, or will be. In the second case, the
                    // report comes back after the budget.
                    Mode::Away { home, .. } => self.outbox.report(*home, store, whose, report),
                    Mode::Sole(_) | Mode::Between => {}
                }
            }
            StoreMessage::Grants { grants, spent, .. } => {
                self.outbox.keep_report(spent);
                if let Mode::Home { own, .. } | Mode::Away { own, .. } = &mut of.mode {
                    grants.iter().for_each(|grant| own.handle_grant(self.now, *grant));
                }
                self.outbox.keep_grants(grants);
            }
            StoreMessage::Budget { store, budget } => match of.next_home(from) {
                Some(home) => self.outbox.send(home, StoreMessage::Budget { store, budget }),
                None => of.take_budget(budget),
            },
        }
    }

    /// Handles a message for a store that is not on this worker any more.
    fn redirect(&mut self, from: WorkerId, mail: StoreMessage) {
        let store = mail.store();
        // A report that was forwarded is not returned to the worker that forwarded it. Its author may
        // be the next home.
        let author = if let StoreMessage::Report { of, .. } = &mail { Some(*of) } else { None };
        let may_be_home = |home: WorkerId| home != from || author == Some(from);
        let mut homes = self.former_homes.iter().rev();
        let home = homes.find(|(of, home)| *of == store && may_be_home(*home));
        match (mail, home.map(|(_, home)| *home)) {
            (StoreMessage::Grants { grants, spent, .. }, _) => {
                self.return_grants(from, store, grants, spent);
            }
            (StoreMessage::Report { of, report, spent, .. }, Some(home)) => {
                self.outbox.keep_grants(spent);
                self.outbox.report(home, store, of, report);
            }
            (StoreMessage::Report { of, report, spent, .. }, None) => {
                self.outbox.keep_grants(spent);
                self.release(of, store, report);
            }
            (StoreMessage::Budget { budget, .. }, Some(home)) => {
                self.outbox.send(home, StoreMessage::Budget { store, budget });
            }
            // No worker uses the store any more.
            (StoreMessage::Budget { .. }, None) => {}
        }
    }

    /// Answers a report of a worker that leaves a store whose budget has ended, so that its requests
    /// and its wait for the budget end, too.
    fn release(&mut self, processor: WorkerId, store: StoreId, report: LoanReport) {
        if processor == self.worker {
            return self.outbox.keep_report(report);
        }
        let waiting = report.loan_demand.iter().map(|want| (want.disk, GrantKind::Waiting(1)));
        let ahead = report.loan_requests.iter().map(|want| (want.disk, GrantKind::Nothing));
        for (disk, of) in waiting.chain(ahead) {
            self.outbox.grant(store, Grant { worker: processor, disk, of });
        }
        self.outbox.keep_report(report);
    }

    /// Returns grants for a store that is not on this worker any more.
    fn return_grants(
        &mut self,
        to: WorkerId,
        store: StoreId,
        grants: Vec<Grant>,
        mut report: LoanReport,
    ) {
        let returns = grants.iter().filter_map(|grant| match grant.of {
            GrantKind::Waiting(requests) => {
                Some(Return { disk: grant.disk, requests, cost: 0, bytes: 0 })
            }
            _ => None,
        });
        report.clear();
        report.returns.extend(returns);
        self.outbox.keep_grants(grants);
        if !report.is_empty() {
            self.outbox.report(to, store, self.worker, report);
        }
    }
}
