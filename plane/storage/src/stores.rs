//! Stores of a worker: operations of the control plane.

use std::sync::Arc;

use suimon_quantity::{StoreId, Time, WorkerId};
use suimon_recording::Sink;
use suimon_storage_qos::{Change, DiskFlow, DiskSlot, StoreSpec};

use crate::disk::DiskState;
use crate::disk_location::DiskIndex;
use crate::engine::StorageEngine;
use crate::store::{Mode, WorkerStore};
use crate::store_status::{StoreRole, StoreStatus};

/// Largest number of stores that have left this worker for which the holder of the budget is kept.
/// It is needed for messages that were in transit.
const FORMER_HOMES_MAX: usize = 64;

impl StorageEngine {
    /// Sets the worker's identifier; 0 by default. Must be called before stores are added.
    pub fn set_worker(&mut self, processor: WorkerId) {
        self.worker = processor;
    }

    /// Sets the sink for the recording of scheduler decisions. Must be called before stores are
    /// added.
    pub fn set_recording(&mut self, sink: Option<Arc<dyn Sink>>) {
        self.recording = sink;
    }

    /// Adds a store, or keeps one that is being removed. With [`StoreRole::Sole`] or
    /// [`StoreRole::Home`], a new budget is created on this worker; there must be no other. The
    /// caller gives consistent roles to all workers. Returns false if the store is on this worker
    /// already.
    pub fn add_store(
        &mut self,
        now: Time,
        store: StoreId,
        spec: StoreSpec,
        role: StoreRole,
    ) -> bool {
        if let Some(number) = self.store_number(store) {
            let left = self.stores.get_mut(number).filter(|of| of.is_leaving);
            let Some(of) = left else { return false };
            of.is_leaving = false;
            if !matches!(role, StoreRole::Away(_)) {
                of.begin_budget(now, self.worker, self.recording.as_ref());
            }
            of.set_role(now, role, self.worker, &mut self.outbox);
            return true;
        }
        self.former_homes.retain(|(of, _)| *of != store);
        let mut of = WorkerStore::new(now, store, spec, role, self.recording.as_ref());
        of.set_role(now, role, self.worker, &mut self.outbox);
        self.stores.insert(of);
        true
    }

    /// Changes the worker's role in a store. Charges are preserved, and queued requests remain
    /// queued.
    ///
    /// - To [`StoreRole::Home`] before another worker adds its first disk of the store with
    ///   [`StoreRole::Away`].
    /// - To [`StoreRole::Sole`] when no other worker has the store any more. Takes effect when
    ///   all grants have been returned.
    /// - From the holder of the budget to [`StoreRole::Away`]: the budget is sent to the given
    ///   worker, which holds it from its receipt on. The other workers get the same role.
    ///
    /// Returns false if the store is not on this worker.
    pub fn set_store_role(&mut self, now: Time, store: StoreId, role: StoreRole) -> bool {
        let Some(number) = self.store_number(store) else { return false };
        let Some(of) = self.stores.get_mut(number) else { return false };
        of.set_role(now, role, self.worker, &mut self.outbox);
        true
    }

    /// Removes a store: at once, or when its grants were returned and its disks' requests are
    /// charged; see [`StorageEngine::store_status`]. Must not be called for the holder of the
    /// budget while other workers have the store. Returns false if the store has disks on this
    /// worker, or is not on it.
    pub fn remove_store(&mut self, store: StoreId) -> bool {
        let number = self.store_number(store);
        let Some(of) = number.and_then(|number| self.stores.get_mut(number)) else { return false };
        if of.disks > 0 {
            return false;
        }
        of.leave();
        self.end_stores();
        true
    }

    /// Applies a step of a change of a store. Must be called on each worker that has the store. A
    /// disk that is removed while it has requests is not limited any more.
    pub fn apply(&mut self, now: Time, store: StoreId, change: Change) {
        self.now = self.now.max(now);
        let Some(number) = self.store_number(store) else { return };
        let Some(of) = self.stores.get_mut(number) else { return };
        of.apply(self.now, change);
        let Change::RemoveDisk(slot) = change else { return };
        let place = DiskIndex { store: number, slot };
        for disk in self.disks.numbers() {
            for is_mirror in [false, true] {
                let is_it = |of: &DiskState| of.place_of(is_mirror) == Some(place);
                if self.disks.get(disk).is_some_and(is_it) {
                    self.bypass_scheduler(disk, is_mirror, false);
                }
            }
        }
        self.resume_place(place);
    }

    /// Returns the status of a store on this worker.
    #[must_use]
    pub fn store_status(&self, store: StoreId) -> Option<StoreStatus> {
        let number = self.store_number(store)?;
        self.stores.get(number).map(WorkerStore::status)
    }

    /// Returns the state of a store's disk on any worker; `None` if another worker holds the
    /// budget.
    #[must_use]
    pub fn disk_view(&self, now: Time, store: StoreId, slot: DiskSlot) -> Option<DiskFlow> {
        self.stores.get(self.store_number(store)?)?.view(now, slot)
    }

    pub(crate) fn store_number(&self, store: StoreId) -> Option<usize> {
        let is_it = |number: &usize| self.stores.get(*number).is_some_and(|of| of.id == store);
        self.stores.numbers().find(is_it)
    }

    /// Removes leaving stores that have no disks, requests or grants on this worker any more.
    pub(crate) fn end_stores(&mut self) {
        for number in self.stores.numbers() {
            if !self.stores.get(number).is_some_and(|of| of.is_leaving && of.is_over()) {
                continue;
            }
            let Some(of) = self.stores.remove(number) else { continue };
            if let Mode::Away { home, .. } = of.mode {
                if self.former_homes.len() >= FORMER_HOMES_MAX {
                    self.former_homes.pop_front();
                }
                self.former_homes.push_back((of.id, home));
            }
        }
    }
}
