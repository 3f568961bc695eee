//! Stores of a worker's engine: operations that the control plane requests.

use std::sync::Arc;

use suimon_ports::Waker;
use suimon_quantity::{StoreId, Time, WorkerId};
use suimon_recording::RecordSink;
use suimon_storage_qos::{ConfigStep, DiskQosStatus, DiskSlot, StoreEvent, StoreSpec};

use crate::disk::DiskState;
use crate::disk::qos_slot::EngineDiskSlot;
use crate::engine::StorageEngine;
use crate::engine::notices::StorageNotice;
use crate::scheduling::store::status::WorkerStoreStatus;
use crate::scheduling::store::{SchedulingMode, WorkerStore};
use crate::shared_budget::SharedBudget;

impl StorageEngine {
    /// Sets the identifier of the engine's worker; 0 by default. Must be called before stores are
    /// added.
    pub fn set_worker(&mut self, processor: WorkerId) {
        self.worker = processor;
    }

    /// Sets the waker of the engine's worker, for grants of budgets that it shares.
    pub fn set_waker(&mut self, waker: Arc<dyn Waker>) {
        self.waker = Some(waker);
    }

    /// Sets the sink for the recording of scheduler decisions. Must be called before stores are
    /// added.
    pub fn set_recording(&mut self, sink: Option<Arc<dyn RecordSink>>) {
        self.recording = sink;
    }

    /// Adds a store, or keeps one that is being removed. The engine uses `shared`, the budget of
    /// other workers, or a new scheduler; no other worker may have the store then. Returns false if
    /// the store is on this worker already.
    pub fn add_store(
        &mut self,
        now: Time,
        store: StoreId,
        spec: StoreSpec,
        shared: Option<&SharedBudget>,
    ) -> bool {
        if let Some(number) = self.store_number(store) {
            let leaving_store =
                self.stores.get_mut(number).filter(|worker_store| worker_store.is_leaving);
            let Some(worker_store) = leaving_store else { return false };
            worker_store.is_leaving = false;
            match shared {
                Some(budget) => worker_store.join((self.worker, self.waker.as_ref()), budget),
                None => worker_store.restart_as_sole_user(now, self.recording.as_ref()),
            }
            return true;
        }
        let mut worker_store = WorkerStore::new(now, store, spec, self.recording.as_ref());
        if let Some(budget) = shared {
            worker_store.join((self.worker, self.waker.as_ref()), budget);
        }
        self.stores.insert(worker_store);
        true
    }

    /// Returns the store's budget, for [`StorageEngine::add_store`] of other workers. Charges are
    /// preserved, and queued requests remain queued. `None` if the store is not on this worker.
    pub fn share_store(&mut self, now: Time, store: StoreId) -> Option<SharedBudget> {
        let worker_store = self.stores.get_mut(self.store_number(store)?)?;
        worker_store.share(now, (self.worker, self.waker.as_ref()))
    }

    /// Makes this worker the only user of the store as soon as all other workers have removed it
    /// and all grants have been returned. Returns false if the store is not on this worker.
    pub fn end_sharing(&mut self, now: Time, store: StoreId) -> bool {
        let number = self.store_number(store);
        let Some(worker_store) = number.and_then(|number| self.stores.get_mut(number)) else {
            return false;
        };
        let events = worker_store.end_sharing(now);
        self.push_store_events(store, events);
        true
    }

    pub(crate) fn push_store_events(&mut self, store: StoreId, events: Vec<StoreEvent>) {
        for event in events {
            self.notices.push(StorageNotice::Qos { store, event });
        }
    }

    /// Removes a store: at once, or when its grants were returned and its disks' requests are
    /// charged; see [`StorageEngine::store_status`]. Returns false if the store has disks on this
    /// worker, or is not on it.
    pub fn remove_store(&mut self, store: StoreId) -> bool {
        let number = self.store_number(store);
        let Some(worker_store) = number.and_then(|number| self.stores.get_mut(number)) else {
            return false;
        };
        if worker_store.disks > 0 {
            return false;
        }
        worker_store.leave();
        self.remove_leaving_stores();
        true
    }

    /// Applies a change of a store that only this worker uses. A disk that is removed while it has
    /// requests is not limited any more.
    pub fn apply_store_change(&mut self, now: Time, store: StoreId, change: ConfigStep) {
        self.change(now, store, change, false);
    }

    /// Adapts this worker's requests to a change that was applied to the store's budget. Must be
    /// called on each worker that has the store.
    pub fn handle_budget_change(&mut self, now: Time, store: StoreId, change: ConfigStep) {
        self.change(now, store, change, true);
    }

    fn change(&mut self, now: Time, store: StoreId, change: ConfigStep, is_in_budget: bool) {
        self.now = self.now.max(now);
        let Some(number) = self.store_number(store) else { return };
        let Some(worker_store) = self.stores.get_mut(number) else { return };
        worker_store.apply(self.now, change, is_in_budget);
        let ConfigStep::RemoveDisk(slot) = change else { return };
        let index = EngineDiskSlot { store_number: number, slot };
        for disk in self.disks.numbers() {
            for is_mirror in [false, true] {
                let has_index =
                    |disk_state: &DiskState| disk_state.qos_slot(is_mirror) == Some(index);
                if self.disks.get(disk).is_some_and(has_index) {
                    self.bypass_scheduler(disk, is_mirror, false);
                }
            }
        }
        self.resume_queues_of_slot(index);
    }

    /// Returns the status of a store on this worker; `None` if the store is not on it.
    #[must_use]
    pub fn store_status(&self, store: StoreId) -> Option<WorkerStoreStatus> {
        self.store_view(self.now, store, &[]).map(|(status, _)| status)
    }

    /// Returns the status of a store on this worker, and the state of the store's disks in these
    /// slots, on any worker; `None` if the store is not on this worker.
    #[must_use]
    pub fn store_view(
        &self,
        now: Time,
        store: StoreId,
        slots: &[DiskSlot],
    ) -> Option<(WorkerStoreStatus, Vec<DiskQosStatus>)> {
        let number = self.store_number(store)?;
        self.stores.get(number).map(|worker_store| worker_store.status(now, slots))
    }

    /// Returns true if this worker is or becomes the only user of the store, and therefore reports
    /// the state of the store's disks.
    pub fn reports_disks(&self, store: StoreId) -> bool {
        let worker_store = self.store_number(store).and_then(|number| self.stores.get(number));
        worker_store.is_some_and(|worker_store| {
            matches!(worker_store.mode, SchedulingMode::Sole(_)) || worker_store.becomes_sole_user
        })
    }

    /// Returns the state of a store's disk, on any worker; `None` if the store is not on this
    /// worker, or the slot has no disk.
    #[cfg(test)]
    pub(crate) fn disk_view(
        &self,
        now: Time,
        store: StoreId,
        slot: DiskSlot,
    ) -> Option<DiskQosStatus> {
        self.store_view(now, store, &[slot])?.1.pop()
    }

    pub(crate) fn store_number(&self, store: StoreId) -> Option<usize> {
        let is_store = |number: &usize| {
            self.stores.get(*number).is_some_and(|worker_store| worker_store.id == store)
        };
        self.stores.numbers().find(is_store)
    }

    /// Removes stores that are leaving this worker and have no disks, requests or grants on it any
    /// more.
    pub(crate) fn remove_leaving_stores(&mut self) {
        for number in self.stores.numbers() {
            if self.stores.get_mut(number).is_some_and(|worker_store| {
                worker_store.is_leaving && worker_store.try_finish_leaving()
            }) {
                self.stores.remove(number);
            }
        }
    }
}
