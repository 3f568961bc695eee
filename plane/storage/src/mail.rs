//! Exchange of messages with workers that use the same store.

use suimon_quantity::{StoreId, WorkerId};
use suimon_storage_qos::{Grant, GrantKind, LoanReport, Return};

use crate::engine::StorageEngine;
use crate::store::Mode;
use crate::store_message::StoreMessage;

impl StorageEngine {
    /// Returns the next message for another worker. Called until `None` before the worker sleeps.
    pub fn poll_mail(&mut self) -> Option<(WorkerId, StoreMessage)> {
        self.outbox.mail.pop_front()
    }

    /// Queues a message of another worker for the next [`StorageEngine::poll`].
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
                    // This worker held the budget before, or will receive it. In the second case,
                    // the report returns here after the budget.
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

    /// Handles a message about a store that is no longer on this worker.
    fn redirect(&mut self, from: WorkerId, mail: StoreMessage) {
        let store = mail.store();
        // A forwarded report is not returned to the worker that forwarded it. The report's author
        // may be the next holder of the budget.
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
            // No worker uses the store.
            (StoreMessage::Budget { .. }, None) => {}
        }
    }

    /// Replies to the report of a worker that leaves a store without a budget. The worker's
    /// requests, and its wait for the budget, end with the reply.
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

    /// Returns grants of a store that is no longer on this worker.
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
