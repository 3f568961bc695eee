//! What processors that use one store tell each other.

use std::collections::VecDeque;

use suimon_quantity::{ProcessorId, StoreId};
use suimon_recording::Recorded;
use suimon_storage_qos::{Grant, Lent, Report, Return, StoreBudget};

use crate::store::Mode;
use crate::work::StorageWork;

/// What one processor's disks tell another's. Whoever drives them carries it; between two
/// processors nothing is lost and nothing overtakes.
#[derive(Debug)]
pub enum StorageMail {
    /// What a processor tells the budget.
    Report {
        /// Which store's.
        store: StoreId,
        /// Whose report it is; it may come by way of the budget's former home.
        of: ProcessorId,
        /// What it is.
        report: Report,
        /// A list to use again.
        spent: Vec<Grant>,
    },
    /// What the budget lends the processor.
    Grants {
        /// Which store's.
        store: StoreId,
        /// What, in this order.
        grants: Vec<Grant>,
        /// Lists to use again.
        spent: Report,
    },
    /// The budget itself, which has its home here from now on.
    Budget {
        /// Which store's.
        store: StoreId,
        /// It.
        budget: Box<Recorded<StoreBudget>>,
    },
}

impl StorageMail {
    /// Which store it is about.
    #[must_use]
    pub const fn store(&self) -> StoreId {
        match self {
            Self::Report { store, .. }
            | Self::Grants { store, .. }
            | Self::Budget { store, .. } => *store,
        }
    }
}

/// Lists that are kept to be used again.
const SPENT_MAX: usize = 64;

/// Mail that was not fetched.
#[derive(Debug, Default)]
pub(crate) struct Outbox {
    mail: VecDeque<(ProcessorId, StorageMail)>,
    grants: Vec<Vec<Grant>>,
    reports: Vec<Report>,
}

impl Outbox {
    pub(crate) fn send(&mut self, to: ProcessorId, mail: StorageMail) {
        self.mail.push_back((to, mail));
    }

    /// Sends a grant, with others to the same processor that were not fetched either.
    pub(crate) fn grant(&mut self, store: StoreId, grant: Grant) {
        let last = self.mail.iter_mut().rev().find(|(to, _)| *to == grant.processor);
        if let Some((_, StorageMail::Grants { store: of, grants, .. })) = last {
            if *of == store {
                return grants.push(grant);
            }
        }
        let mut grants = self.grants.pop().unwrap_or_default();
        grants.push(grant);
        let spent = self.spent_report();
        self.send(grant.processor, StorageMail::Grants { store, grants, spent });
    }

    /// Sends a report, with another that was not fetched either.
    pub(crate) fn report(
        &mut self,
        to: ProcessorId,
        store: StoreId,
        whose: ProcessorId,
        mut report: Report,
    ) {
        let last = self.mail.iter_mut().rev().find(|(of, _)| *of == to);
        if let Some((_, StorageMail::Report { store: at, of, report: last, .. })) = last {
            if (*at, *of) == (store, whose) {
                last.append(&mut report);
                return self.keep_report(report);
            }
        }
        let spent = self.grants.pop().unwrap_or_default();
        self.send(to, StorageMail::Report { store, of: whose, report, spent });
    }

    /// A report whose memory is used again.
    pub(crate) fn spent_report(&mut self) -> Report {
        self.reports.pop().unwrap_or_default()
    }

    pub(crate) fn keep_report(&mut self, report: Report) {
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

impl StorageWork {
    /// Mail for another processor. To be carried before this one sleeps.
    pub fn poll_mail(&mut self) -> Option<(ProcessorId, StorageMail)> {
        self.outbox.mail.pop_front()
    }

    /// Mail from another processor. It is read with the next poll.
    pub fn handle_mail(&mut self, from: ProcessorId, mail: StorageMail) {
        self.inbox.push_back((from, mail));
    }

    /// Reads what has come; whether there was anything.
    pub(crate) fn read_mail(&mut self) -> bool {
        let any = !self.inbox.is_empty();
        while let Some((from, mail)) = self.inbox.pop_front() {
            match self.store_number(mail.store()) {
                Some(number) => self.read(number, mail),
                None => self.send_back(from, mail),
            }
        }
        any
    }

    fn read(&mut self, number: usize, mail: StorageMail) {
        let Some(of) = self.stores.get_mut(number) else { return };
        match mail {
            StorageMail::Report { store, of: whose, report, spent } => {
                self.outbox.keep_grants(spent);
                match &mut of.mode {
                    Mode::Home { budget, .. } => {
                        budget.handle_report(self.now, whose, &report);
                        self.outbox.keep_report(report);
                    }
                    // The budget's home was here, or will be. In the second case the
                    // report comes back behind the budget.
                    Mode::Away { home, .. } => self.outbox.report(*home, store, whose, report),
                    Mode::Sole(_) | Mode::Between => {}
                }
            }
            StorageMail::Grants { grants, spent, .. } => {
                self.outbox.keep_report(spent);
                if let Mode::Home { own, .. } | Mode::Away { own, .. } = &mut of.mode {
                    grants.iter().for_each(|grant| own.handle_grant(self.now, *grant));
                }
                self.outbox.keep_grants(grants);
            }
            StorageMail::Budget { budget, .. } => of.take_budget(budget),
        }
    }

    /// The store is not here any more: what is lent to it is returned.
    fn send_back(&mut self, from: ProcessorId, mail: StorageMail) {
        let StorageMail::Grants { store, grants, spent } = mail else { return };
        let mut report = spent;
        let returns = grants.iter().filter_map(|grant| match grant.of {
            Lent::Waiting(requests) => {
                Some(Return { disk: grant.disk, requests, cost: 0, bytes: 0 })
            }
            _ => None,
        });
        report.clear();
        report.returns.extend(returns);
        self.outbox.keep_grants(grants);
        if !report.is_empty() {
            self.outbox.report(from, store, self.processor, report);
        }
    }
}
