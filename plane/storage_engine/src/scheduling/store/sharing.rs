//! Sharing of a store's scheduling with other workers: beginning, exchanges and end.

use std::sync::Arc;

use suimon_ports::Waker;
use suimon_quantity::{Time, WorkerId};
use suimon_recording::Sink;
use suimon_storage_qos::{Borrower, StoreEvent};

use crate::scheduling::store::{Mode, Sharing, WorkerStore};
use crate::shared_budget::SharedBudget;

/// Worker that uses a store: its identifier, and the waker that is called when it has grants to
/// fetch.
pub(crate) type User<'a> = (WorkerId, Option<&'a Arc<dyn Waker>>);

impl WorkerStore {
    /// Reports this worker's requests to the budget, and applies the grants of the budget. Returns
    /// events of the scheduler.
    pub(crate) fn exchange(&mut self, now: Time) -> Vec<StoreEvent> {
        let Mode::Shared(sharing) = &mut self.mode else { return Vec::new() };
        let events = sharing.client.exchange(now, &mut sharing.own);
        if self.is_to_be_sole {
            self.settle(now);
        }
        events
    }

    /// Makes this worker the only user of the store if all grants are returned: replaces the budget
    /// by the worker's own scheduler.
    fn settle(&mut self, now: Time) {
        let Mode::Shared(sharing) = &mut self.mode else { return };
        let Some((budget, observation)) = sharing.client.take_settled(&sharing.own, self.in_flight)
        else {
            return;
        };
        let borrower =
            core::mem::replace(&mut sharing.own, Borrower::new(self.spec.normalization, 0));
        self.mode = Mode::Sole(Box::new(budget.unshare(now, borrower)));
        self.observation = observation;
        self.is_to_be_sole = false;
    }

    /// Ends the sharing of the store as soon as all grants are returned. Returns events of the
    /// scheduler.
    pub(crate) fn end_sharing(&mut self, now: Time) -> Vec<StoreEvent> {
        if let Mode::Shared(sharing) = &mut self.mode {
            self.is_to_be_sole = true;
            sharing.own.set_settling(true);
        }
        self.exchange(now)
    }

    /// Returns the budget of the store, for other workers. Converts the worker's own scheduler to a
    /// budget if there is none. `None` while the mode is replaced.
    pub(crate) fn share(&mut self, now: Time, user: User<'_>) -> Option<SharedBudget> {
        self.is_to_be_sole = false;
        self.report_completions(now);
        self.mode = match core::mem::replace(&mut self.mode, Mode::Replacing) {
            Mode::Sole(scheduler) => {
                let mut borrower = self.borrower();
                let budget = scheduler.share(now, user.0, &mut borrower);
                let budget = SharedBudget::new(now, budget, self.observation);
                Mode::Shared(Box::new(sharing(budget, user, borrower)))
            }
            Mode::Shared(mut sharing) => {
                sharing.own.set_settling(self.is_leaving);
                Mode::Shared(sharing)
            }
            Mode::Replacing => Mode::Replacing,
        };
        if let Mode::Shared(sharing) = &self.mode { Some(sharing.budget.clone()) } else { None }
    }

    /// Uses this budget, which other workers use, instead of the former scheduler or budget.
    pub(crate) fn join(&mut self, user: User<'_>, budget: &SharedBudget) {
        self.is_to_be_sole = false;
        if let Mode::Shared(sharing) = &mut self.mode {
            if sharing.budget.is_same(budget) {
                sharing.own.set_settling(false);
                return;
            }
        }
        self.forget_former();
        self.mode = Mode::Shared(Box::new(sharing(budget.clone(), user, self.borrower())));
    }

    /// Uses a new scheduler, after the last other worker has left the store while this worker was
    /// leaving it.
    pub(crate) fn begin_again(&mut self, now: Time, sink: Option<&Arc<dyn Sink>>) {
        if let Mode::Shared(_) = &self.mode {
            self.forget_former();
            self.mode = Mode::Sole(Box::new(self.new_scheduler(now, sink)));
        }
    }

    /// Ends the use of the former scheduler or budget. A store that leaves its worker has no disks
    /// there, so that only placeholders of requests that have started are queued. They are not
    /// charged any more, and must not be counted by the next scheduler.
    fn forget_former(&mut self) {
        self.mode.flush();
        self.mode = Mode::Replacing;
        self.clear_placeholders();
    }

    /// Prepares the removal of the store from this worker: its grants are returned.
    pub(crate) fn leave(&mut self) {
        self.is_leaving = true;
        if let Mode::Shared(sharing) = &mut self.mode {
            sharing.own.set_settling(true);
        }
    }

    /// Ends the use of the budget if this worker has no disks, requests or grants of the store
    /// left. Returns true if the store can be removed.
    pub(crate) fn try_end(&mut self) -> bool {
        if self.disks > 0 || self.waiting > 0 || self.in_flight > 0 {
            return false;
        }
        match &mut self.mode {
            Mode::Shared(sharing) => {
                sharing.own.is_settled() && !sharing.client.is_pending() && sharing.client.leave()
            }
            Mode::Sole(_) | Mode::Replacing => true,
        }
    }
}

/// Passes the last report of a worker that ends or uses another budget.
impl Drop for Sharing {
    fn drop(&mut self) {
        self.client.end(&mut self.own);
    }
}

fn sharing(budget: SharedBudget, (worker, waker): User<'_>, borrower: Borrower) -> Sharing {
    let client = budget.join(worker, waker.cloned());
    Sharing { budget, client, own: borrower }
}
