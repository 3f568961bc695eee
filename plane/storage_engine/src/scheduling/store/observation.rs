//! Statistics and status of a store on a worker.

use suimon_quantity::Time;
use suimon_storage_qos::{DiskQosStatus, DiskSlot, SAMPLE_INTERVAL, StoreEvent};

use crate::scheduling::store::status::{StoreRole, WorkerStoreStatus};
use crate::scheduling::store::{SchedulingMode, WorkerStore};
use crate::shared_budget::state::SamplingState;

impl WorkerStore {
    pub(crate) fn is_busy(&self) -> bool {
        let in_flight = match &self.mode {
            SchedulingMode::Sole(_) => self.in_flight,
            // The exchange with the budget samples the operations of a shared store.
            SchedulingMode::Shared(_) | SchedulingMode::Replacing => return false,
        };
        self.sampling.has_new_requests || in_flight > 0 || self.waiting > 0
    }

    /// Samples the delivered operations of a store that only this worker uses, if a sample is due.
    /// Returns events of the scheduler.
    pub(crate) fn sample_if_due(&mut self, now: Time) -> Vec<StoreEvent> {
        if now < self.sampling.sampled_at + SAMPLE_INTERVAL || !self.is_busy() {
            return Vec::new();
        }
        self.sampling = SamplingState { sampled_at: now, has_new_requests: false };
        match &mut self.mode {
            SchedulingMode::Sole(scheduler) => scheduler.observe(now),
            SchedulingMode::Shared(_) | SchedulingMode::Replacing => Vec::new(),
        }
    }

    /// Returns the status of the store on this worker, and the state of the disks in these slots,
    /// on any worker.
    pub(crate) fn status(
        &self,
        now: Time,
        slots: &[DiskSlot],
    ) -> (WorkerStoreStatus, Vec<DiskQosStatus>) {
        let (role, (figures, flows)) = match &self.mode {
            SchedulingMode::Sole(scheduler) => {
                let flows = slots.iter().filter_map(|slot| scheduler.view(now, *slot)).collect();
                let figures = (
                    scheduler.in_flight(),
                    scheduler.queue_depth_limit(),
                    scheduler.device_latency_ns(),
                    scheduler.estimate(),
                );
                (StoreRole::Sole, (figures, flows))
            }
            SchedulingMode::Shared(sharing) => {
                let read = sharing.budget.with_budget(|budget| {
                    (
                        budget.in_device(),
                        budget.queue_depth_limit(),
                        budget.device_latency_ns(),
                        budget.estimate(),
                    )
                });
                let flows = sharing.budget.flows_for_worker(now, slots).unwrap_or_default();
                (StoreRole::Shared, (read.unwrap_or_default(), flows))
            }
            SchedulingMode::Replacing => (StoreRole::Shared, Default::default()),
        };
        let (in_flight, depth, latency_ns, estimate) = figures;
        let (waiting, in_flight_of_worker) = (self.waiting, self.in_flight);
        let status = WorkerStoreStatus {
            role,
            waiting,
            in_flight_of_worker,
            in_flight_of_all_workers: in_flight,
            depth_limit: depth,
            mean_latency_ns: latency_ns,
            estimate,
        };
        (status, flows)
    }
}
