//! Sharing of a store's scheduling with other workers: beginning, exchanges and end.

use std::sync::Arc;

use suimon_ports::Waker;
use suimon_quantity::{Time, WorkerId};
use suimon_recording::RecordSink;
use suimon_storage_qos::{Borrower, StoreEvent};

use crate::scheduling::store::{BudgetAccess, SchedulingMode, WorkerStore};
use crate::shared_budget::SharedBudget;

/// Worker that uses a store: its identifier, and the waker that is called when it has grants to
/// fetch.
pub(crate) type BudgetUser<'a> = (WorkerId, Option<&'a Arc<dyn Waker>>);

impl WorkerStore {
    /// Reports this worker's requests to the budget, and applies the grants of the budget. Returns
    /// events of the scheduler.
    pub(crate) fn exchange_with_budget(&mut self, now: Time) -> Vec<StoreEvent> {
        let SchedulingMode::Shared(sharing) = &mut self.mode else { return Vec::new() };
        let events = sharing.membership.exchange(now, &mut sharing.borrower);
        if self.becomes_sole_user {
            self.settle(now);
        }
        events
    }

    /// Makes this worker the only user of the store if all grants are returned: replaces the budget
    /// by the worker's own scheduler.
    fn settle(&mut self, now: Time) {
        let SchedulingMode::Shared(sharing) = &mut self.mode else { return };
        let Some((budget, observation)) =
            sharing.membership.take_budget_if_settled(&sharing.borrower, self.in_flight)
        else {
            return;
        };
        let borrower =
            core::mem::replace(&mut sharing.borrower, Borrower::new(self.spec.normalization, 0));
        self.mode = SchedulingMode::Sole(Box::new(budget.into_scheduler(now, borrower)));
        self.sampling = observation;
        self.becomes_sole_user = false;
    }

    /// Ends the sharing of the store as soon as all grants are returned. Returns events of the
    /// scheduler.
    pub(crate) fn end_sharing(&mut self, now: Time) -> Vec<StoreEvent> {
        if let SchedulingMode::Shared(sharing) = &mut self.mode {
            self.becomes_sole_user = true;
            sharing.borrower.set_draining(true);
        }
        self.exchange_with_budget(now)
    }

    /// Returns the budget of the store, for other workers. Converts the worker's own scheduler to a
    /// budget if there is none. `None` while the mode is replaced.
    pub(crate) fn share(&mut self, now: Time, user: BudgetUser<'_>) -> Option<SharedBudget> {
        self.becomes_sole_user = false;
        self.report_completions(now);
        self.mode = match core::mem::replace(&mut self.mode, SchedulingMode::Replacing) {
            SchedulingMode::Sole(scheduler) => {
                let mut borrower = self.new_borrower();
                let budget = scheduler.into_shared_budget(now, user.0, &mut borrower);
                let budget = SharedBudget::new(now, budget, self.sampling);
                SchedulingMode::Shared(Box::new(sharing(budget, user, borrower)))
            }
            SchedulingMode::Shared(mut sharing) => {
                sharing.borrower.set_draining(self.is_leaving);
                SchedulingMode::Shared(sharing)
            }
            SchedulingMode::Replacing => SchedulingMode::Replacing,
        };
        if let SchedulingMode::Shared(sharing) = &self.mode {
            Some(sharing.budget.clone())
        } else {
            None
        }
    }

    /// Uses this budget, which other workers use, instead of the former scheduler or budget.
    pub(crate) fn join(&mut self, user: BudgetUser<'_>, budget: &SharedBudget) {
        self.becomes_sole_user = false;
        if let SchedulingMode::Shared(sharing) = &mut self.mode {
            if sharing.budget.is_same(budget) {
                sharing.borrower.set_draining(false);
                return;
            }
        }
        self.forget_former();
        self.mode =
            SchedulingMode::Shared(Box::new(sharing(budget.clone(), user, self.new_borrower())));
    }

    /// Uses a new scheduler, after the last other worker has left the store while this worker was
    /// leaving it.
    pub(crate) fn restart_as_sole_user(&mut self, now: Time, sink: Option<&Arc<dyn RecordSink>>) {
        if let SchedulingMode::Shared(_) = &self.mode {
            self.forget_former();
            self.mode = SchedulingMode::Sole(Box::new(self.new_scheduler(now, sink)));
        }
    }

    /// Ends the use of the former scheduler or budget. A store that leaves its worker has no disks
    /// there, so that only placeholders of requests that have started are queued. They are not
    /// charged any more, and must not be counted by the next scheduler.
    fn forget_former(&mut self) {
        self.mode.flush_recording();
        self.mode = SchedulingMode::Replacing;
        self.clear_placeholders();
    }

    /// Prepares the removal of the store from this worker: its grants are returned.
    pub(crate) fn leave(&mut self) {
        self.is_leaving = true;
        if let SchedulingMode::Shared(sharing) = &mut self.mode {
            sharing.borrower.set_draining(true);
        }
    }

    /// Ends the use of the budget if this worker has no disks, requests or grants of the store
    /// left. Returns true if the store can be removed.
    pub(crate) fn try_finish_leaving(&mut self) -> bool {
        if self.disks > 0 || self.waiting > 0 || self.in_flight > 0 {
            return false;
        }
        match &mut self.mode {
            SchedulingMode::Shared(sharing) => {
                sharing.borrower.is_drained()
                    && !sharing.membership.needs_exchange()
                    && sharing.membership.try_leave()
            }
            SchedulingMode::Sole(_) | SchedulingMode::Replacing => true,
        }
    }
}

/// Passes the last report of a worker that ends or uses another budget.
impl Drop for BudgetAccess {
    fn drop(&mut self) {
        self.membership.end(&mut self.borrower);
    }
}

fn sharing(
    budget: SharedBudget,
    (worker, waker): BudgetUser<'_>,
    borrower: Borrower,
) -> BudgetAccess {
    let client = budget.join(worker, waker.cloned());
    BudgetAccess { budget, membership: client, borrower }
}
