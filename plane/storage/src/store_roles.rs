//! Roles of a worker in a store: sharing of the store's budget, moves of the budget between
//! workers, and return to a single worker.

use std::sync::Arc;

use suimon_quantity::{Time, WorkerId};
use suimon_recording::{Recorded, Sink};
use suimon_storage_qos::StoreBudget;

use crate::StoreRole;
use crate::store::{Mode, WorkerStore};
use crate::store_message::{Outbox, StoreMessage};

impl WorkerStore {
    /// Reports this worker's requests to the budget, and applies the grants of the budget.
    pub(crate) fn exchange(&mut self, now: Time, me: WorkerId, outbox: &mut Outbox) {
        match &mut self.mode {
            Mode::Sole(_) | Mode::Between => return,
            Mode::Away { home, own } => {
                let spent = outbox.spent_report();
                return match own.poll_report(now, spent) {
                    Ok(report) => outbox.report(*home, self.id, me, report),
                    Err(spent) => outbox.keep_report(spent),
                };
            }
            Mode::Home { budget, own } => loop {
                let spent = outbox.spent_report();
                let reported = own.poll_report(now, spent);
                if let Ok(report) = &reported {
                    budget.handle_report(now, me, report);
                }
                outbox.keep_report(reported.unwrap_or_else(|spent| spent));
                let mut has_grants = false;
                while let Some(grant) = budget.poll_grant(now) {
                    if grant.worker == me {
                        own.handle_grant(now, grant);
                        has_grants = true;
                    } else {
                        outbox.grant(self.id, grant);
                    }
                }
                if !has_grants {
                    break;
                }
            },
        }
        self.settle(now);
    }

    /// Ends the sharing of the store if no other worker has requests or grants.
    fn settle(&mut self, now: Time) {
        if !self.is_to_be_sole {
            return;
        }
        match core::mem::replace(&mut self.mode, Mode::Between) {
            Mode::Home { budget, own } if budget.is_settled(&own, self.in_flight) => {
                self.mode = Mode::Sole(Box::new(budget.unshare(now, *own)));
                self.is_to_be_sole = false;
            }
            other => self.mode = other,
        }
    }

    /// Sets the worker's role in the store.
    pub(crate) fn set_role(
        &mut self,
        now: Time,
        role: StoreRole,
        me: WorkerId,
        outbox: &mut Outbox,
    ) {
        self.is_to_be_sole = role == StoreRole::Sole;
        self.report_completions(now);
        if role == StoreRole::Sole {
            if let Mode::Home { own, .. } | Mode::Away { own, .. } = &mut self.mode {
                own.set_settling(true);
            }
            return self.exchange(now, me, outbox);
        }
        if let Mode::Home { own, .. } | Mode::Away { own, .. } = &mut self.mode {
            own.set_settling(self.is_leaving);
        }
        self.share(now, me);
        let StoreRole::Away(to) = role else { return };
        // Reports this worker's requests and completions before the budget moves.
        self.exchange(now, me, outbox);
        self.mode = match core::mem::replace(&mut self.mode, Mode::Between) {
            Mode::Home { budget, own } => {
                outbox.send(to, StoreMessage::Budget { store: self.id, budget });
                Mode::Away { home: to, own }
            }
            Mode::Away { own, .. } => Mode::Away { home: to, own },
            other => other,
        };
    }

    /// Makes this worker the holder of a received budget.
    pub(crate) fn take_budget(&mut self, budget: Box<Recorded<StoreBudget>>) {
        self.mode = match core::mem::replace(&mut self.mode, Mode::Between) {
            Mode::Away { own, .. } => Mode::Home { budget, own },
            // A store has one budget, so the existing one is kept.
            other => other,
        };
    }

    /// Returns the worker that a budget received from `from` must be forwarded to, because this
    /// worker has left the store since the budget was sent. `None`: the budget is for this worker.
    pub(crate) fn next_home(&self, from: WorkerId) -> Option<WorkerId> {
        match self.mode {
            Mode::Away { home, .. } if self.is_leaving && home != from => Some(home),
            _ => None,
        }
    }

    /// Creates a new budget on a worker that borrowed from a budget which has ended with its last
    /// other user.
    pub(crate) fn begin_budget(&mut self, now: Time, me: WorkerId, sink: Option<&Arc<dyn Sink>>) {
        self.mode = match core::mem::replace(&mut self.mode, Mode::Between) {
            Mode::Away { mut own, .. } => {
                own.forget_budget();
                let begins = (now, &*self.id.0.to_string());
                let scheduler = Recorded::scheduler(sink, begins, self.spec.clone());
                let budget = Box::new(scheduler.share(now, me, &mut own));
                Mode::Home { budget, own }
            }
            other => other,
        };
    }

    /// Converts the worker's own scheduler to a budget from which other workers can borrow.
    fn share(&mut self, now: Time, me: WorkerId) {
        self.mode = match core::mem::replace(&mut self.mode, Mode::Between) {
            Mode::Sole(scheduler) => {
                let mut own = self.borrower();
                let budget = scheduler.share(now, me, &mut own);
                Mode::Home { budget: Box::new(budget), own }
            }
            other => other,
        };
    }

    /// Prepares the removal of the store from this worker.
    pub(crate) fn leave(&mut self) {
        self.is_leaving = true;
        if let Mode::Home { own, .. } | Mode::Away { own, .. } = &mut self.mode {
            own.set_settling(true);
        }
    }

    /// Returns true if this worker has no disks, requests or grants of the store left.
    pub(crate) fn is_over(&self) -> bool {
        let is_settled = match &self.mode {
            Mode::Away { own, .. } => own.is_settled(),
            Mode::Sole(_) | Mode::Home { .. } | Mode::Between => true,
        };
        self.disks == 0 && self.waiting == 0 && self.in_flight == 0 && is_settled
    }
}
