//! Statistics and status of a store on a worker.

use suimon_quantity::{Time, WorkerId};
use suimon_storage_qos::{DiskFlow, DiskSlot, Event, SAMPLE};

use crate::store::{Mode, WorkerStore};
use crate::store_status::{StoreRole, StoreStatus};

impl WorkerStore {
    pub(crate) fn is_busy(&self) -> bool {
        let in_flight = match &self.mode {
            Mode::Sole(_) => self.in_flight,
            // The exchange with the budget includes the observation.
            Mode::Shared(_) | Mode::Between => return false,
        };
        self.is_used || in_flight > 0 || self.waiting > 0
    }

    /// Samples the delivered operations if due, and returns events of the scheduler.
    pub(crate) fn observe(&mut self, now: Time) -> Vec<Event> {
        if now < self.observed + SAMPLE || !self.is_busy() {
            return Vec::new();
        }
        self.observed = now;
        self.is_used = false;
        match &mut self.mode {
            Mode::Sole(scheduler) => scheduler.observe(now),
            Mode::Shared(_) | Mode::Between => Vec::new(),
        }
    }

    /// Returns the state of a disk; `None` if another worker reports it.
    pub(crate) fn view(&self, now: Time, me: WorkerId, slot: DiskSlot) -> Option<DiskFlow> {
        match &self.mode {
            Mode::Sole(scheduler) => scheduler.view(now, slot),
            Mode::Shared(of) => {
                of.budget.with_budget(
                    me,
                    |budget, is_first| {
                        if is_first { budget.view(now, slot) } else { None }
                    },
                )?
            }
            Mode::Between => None,
        }
    }

    pub(crate) fn status(&self, me: WorkerId) -> StoreStatus {
        let (role, budget) = match &self.mode {
            Mode::Sole(of) => {
                let of = (of.in_flight(), of.depth(), of.latency_ns(), of.estimate());
                (StoreRole::Sole, of)
            }
            Mode::Shared(of) => {
                let budget = of.budget.with_budget(me, |of, _| {
                    (of.in_device(), of.depth(), of.latency_ns(), of.estimate())
                });
                (StoreRole::Shared, budget.unwrap_or_default())
            }
            Mode::Between => (StoreRole::Shared, (0, 0, 0, None)),
        };
        let (in_flight, depth, latency_ns, estimate) = budget;
        let (waiting, under_way) = (self.waiting, self.in_flight);
        StoreStatus { role, waiting, under_way, in_flight, depth, latency_ns, estimate }
    }
}
