//! Accounting of time in which the worker's thread was runnable but not running.
//!
//! The runtime reports this time directly before the iteration in which the worker runs again. No
//! request changed its state meanwhile, so requests in flight were in flight for all of it. If a
//! disk had no requests in flight and its queue has some in this iteration, they were in the queue
//! meanwhile.

use core::time::Duration;

use suimon_storage_qos::DiskUnscheduledTime;

use crate::disk::qos_slot::EngineDiskSlot;
use crate::engine::StorageEngine;
use crate::scheduling::unscheduled_time::UnscheduledTime;

impl StorageEngine {
    /// Accounts for `span`, which has just ended, during which the worker's thread was runnable but
    /// not running. Must be called before [`StorageEngine::poll`]. Visits each queue.
    pub fn handle_unscheduled(&mut self, span: Duration) {
        self.unscheduled.ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    }

    /// Reports the time to the stores of requests in flight, before requests change their state in
    /// this iteration.
    pub(crate) fn account_unscheduled_before_poll(&mut self) {
        if self.unscheduled.ns == 0 {
            return;
        }
        let Self {
            unscheduled: UnscheduledTime { ns, busy_disks: busy }, queues, stores, now, ..
        } = self;
        busy.clear();
        for queue_state in queues.numbers().filter_map(|number| queues.get(number)) {
            let Some(index) = queue_state.qos_slot else { continue };
            if queue_state.requests_in_progress() == 0 {
                continue;
            }
            busy.push(index);
            let in_flight = queue_state
                .requests_in_progress()
                .saturating_sub(queue_state.queued as usize) as u64;
            let in_flight_ns = ns.saturating_mul(in_flight);
            if let Some(store) = stores.get_mut(index.store_number).filter(|_| in_flight > 0) {
                let disk = index.slot;
                store.handle_unscheduled(
                    *now,
                    DiskUnscheduledTime { disk, in_flight_ns, unserviced_ns: 0 },
                );
            }
        }
        busy.sort_unstable();
        busy.dedup();
    }

    /// Reports the time to the stores of requests that were in queues during it, after the queues
    /// were read in this iteration.
    pub(crate) fn account_unscheduled_after_poll(&mut self) {
        let unserviced_ns = core::mem::take(&mut self.unscheduled.ns);
        if unserviced_ns == 0 {
            return;
        }
        let Self {
            unscheduled: UnscheduledTime { busy_disks: busy, .. }, queues, stores, now, ..
        } = self;
        let known_len = busy.len();
        for queue_state in queues.numbers().filter_map(|number| queues.get(number)) {
            let Some(index) =
                queue_state.qos_slot.filter(|_| queue_state.requests_in_progress() > 0)
            else {
                continue;
            };
            let was_busy =
                busy.get(..known_len).is_some_and(|indices| indices.binary_search(&index).is_ok());
            if !was_busy {
                busy.push(index);
            }
        }
        // Each disk counts once, regardless of how many of its queues have requests.
        let mut untaken: Vec<EngineDiskSlot> = busy.split_off(known_len);
        untaken.sort_unstable();
        untaken.dedup();
        for EngineDiskSlot { store_number: store, slot: disk } in untaken {
            if let Some(store) = stores.get_mut(store) {
                store.handle_unscheduled(
                    *now,
                    DiskUnscheduledTime { disk, in_flight_ns: 0, unserviced_ns },
                );
            }
        }
    }
}
