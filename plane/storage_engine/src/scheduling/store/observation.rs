//! Statistics and status of a store on a worker.

use suimon_quantity::Time;
use suimon_storage_qos::{DiskFlow, DiskSlot, SAMPLE, StoreEvent};

use crate::scheduling::store::status::{StoreRole, WorkerStoreStatus};
use crate::scheduling::store::{Mode, WorkerStore};
use crate::shared_budget::state::Observation;

impl WorkerStore {
    pub(crate) fn is_busy(&self) -> bool {
        let in_flight = match &self.mode {
            Mode::Sole(_) => self.in_flight,
            // The exchange with the budget samples the operations of a shared store.
            Mode::Shared(_) | Mode::Replacing => return false,
        };
        self.observation.is_used || in_flight > 0 || self.waiting > 0
    }

    /// Samples the delivered operations of a store that only this worker uses, if a sample is due.
    /// Returns events of the scheduler.
    pub(crate) fn observe(&mut self, now: Time) -> Vec<StoreEvent> {
        if now < self.observation.time + SAMPLE || !self.is_busy() {
            return Vec::new();
        }
        self.observation = Observation { time: now, is_used: false };
        match &mut self.mode {
            Mode::Sole(scheduler) => scheduler.observe(now),
            Mode::Shared(_) | Mode::Replacing => Vec::new(),
        }
    }

    /// Returns the status of the store on this worker, and the state of the disks in these slots,
    /// on any worker.
    pub(crate) fn status(
        &self,
        now: Time,
        slots: &[DiskSlot],
    ) -> (WorkerStoreStatus, Vec<DiskFlow>) {
        let (role, (figures, flows)) = match &self.mode {
            Mode::Sole(scheduler) => {
                let flows = slots.iter().filter_map(|slot| scheduler.view(now, *slot)).collect();
                let figures = (
                    scheduler.in_flight(),
                    scheduler.depth(),
                    scheduler.latency_ns(),
                    scheduler.estimate(),
                );
                (StoreRole::Sole, (figures, flows))
            }
            Mode::Shared(sharing) => {
                let read = sharing.budget.with_budget(|budget| {
                    (budget.in_device(), budget.depth(), budget.latency_ns(), budget.estimate())
                });
                let flows = sharing.budget.flows_for_worker(now, slots).unwrap_or_default();
                (StoreRole::Shared, (read.unwrap_or_default(), flows))
            }
            Mode::Replacing => (StoreRole::Shared, Default::default()),
        };
        let (in_flight, depth, latency_ns, estimate) = figures;
        let (waiting, in_flight_of_worker) = (self.waiting, self.in_flight);
        let status = WorkerStoreStatus {
            role,
            waiting,
            in_flight_of_worker,
            in_flight,
            depth,
            latency_ns,
            estimate,
        };
        (status, flows)
    }
}
