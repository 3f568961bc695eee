//! The stores of a processor, as the control plane sees them.

use std::sync::Arc;

use suimon_quantity::{ProcessorId, StoreId, Time};
use suimon_recording::Sink;
use suimon_storage_qos::{Change, DiskFlow, DiskSlot, StoreSpec};

use crate::disk::{Disk, Place};
use crate::store::{StoreRole, StoreStatus, StoreUse};
use crate::work::StorageWork;

impl StorageWork {
    /// Says which processor this is; 0 until then. To be said before there are stores.
    pub fn set_processor(&mut self, processor: ProcessorId) {
        self.processor = processor;
    }

    /// Where what stores' schedulers decide is recorded. To be said before there are stores.
    pub fn set_recording(&mut self, sink: Option<Arc<dyn Sink>>) {
        self.recording = sink;
    }

    /// Takes a store, or takes it again while it is being let go of. With [`StoreRole::Sole`] or [`StoreRole::Home`] its budget is new and
    /// here; there must be no other. All processors say the same of it. `false`: it is here
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
            of.set_role(now, role, self.processor, &mut self.outbox);
            return true;
        }
        let mut of = StoreUse::new(now, store, spec, role, self.recording.as_ref());
        of.set_role(now, role, self.processor, &mut self.outbox);
        self.stores.insert(of);
        true
    }

    /// Changes how the processor takes part in a store; nothing that was charged is
    /// forgotten, and what waits goes on waiting.
    ///
    /// - To [`StoreRole::Home`] before another processor takes its first disk of the
    ///   store, with [`StoreRole::Away`].
    /// - To [`StoreRole::Sole`] when no other processor has the store any more. It takes
    ///   effect when everything that was lent has come back.
    /// - From the home to [`StoreRole::Away`]: the budget goes to the processor that is
    ///   named, which becomes its home by receiving it. The others are told likewise.
    ///
    /// `false`: there is no such store here.
    pub fn set_store_role(&mut self, now: Time, store: StoreId, role: StoreRole) -> bool {
        let Some(number) = self.store_number(store) else { return false };
        let Some(of) = self.stores.get_mut(number) else { return false };
        of.set_role(now, role, self.processor, &mut self.outbox);
        true
    }

    /// Lets go of a store: at once, or when what it lent has been returned and what its
    /// disks owe is paid; [`StorageWork::store_status`] tells. Not from its home while other
    /// processors have it. `false`: it has disks here, or is not here.
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

    /// Carries out a step of a change of a store, on each processor that has the store. A
    /// disk that is removed while it has requests has no limits any more.
    pub fn apply(&mut self, now: Time, store: StoreId, change: Change) {
        self.now = self.now.max(now);
        let Some(number) = self.store_number(store) else { return };
        let Some(of) = self.stores.get_mut(number) else { return };
        of.apply(self.now, change);
        let Change::RemoveDisk(slot) = change else { return };
        let place = Place { store: number, slot };
        for disk in self.disks.numbers() {
            for is_mirror in [false, true] {
                let is_it = |of: &Disk| of.place_of(is_mirror) == Some(place);
                if self.disks.get(disk).is_some_and(is_it) {
                    self.let_through(disk, is_mirror, false);
                }
            }
        }
        self.resume_place(place);
    }

    /// What a store does here.
    #[must_use]
    pub fn store_status(&self, store: StoreId) -> Option<StoreStatus> {
        let number = self.store_number(store)?;
        self.stores.get(number).map(StoreUse::status)
    }

    /// What a disk gets of a store, whichever processor has it; `None` where the store's
    /// budget is not.
    #[must_use]
    pub fn disk_view(&self, now: Time, store: StoreId, slot: DiskSlot) -> Option<DiskFlow> {
        self.stores.get(self.store_number(store)?)?.view(now, slot)
    }

    pub(crate) fn store_number(&self, store: StoreId) -> Option<usize> {
        let is_it = |number: &usize| self.stores.get(*number).is_some_and(|of| of.id == store);
        self.stores.numbers().find(is_it)
    }

    /// Lets go of stores that are to be, and of which nothing is left here.
    pub(crate) fn end_stores(&mut self) {
        for number in self.stores.numbers() {
            if self.stores.get(number).is_some_and(|of| of.is_leaving && of.is_over()) {
                self.stores.remove(number);
            }
        }
    }
}
