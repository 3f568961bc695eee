//! Disk copies (mirror jobs) on the disk's worker.

use std::sync::Arc;

use crate::disk::dirty_map::DirtyMap;
use crate::disk::qos_slot::{EngineDiskSlot, StoreDiskSlot};
use crate::engine::StorageEngine;

impl StorageEngine {
    /// Sets or ends the copy of a disk. `location` is the slot of the copy's requests in the disk's
    /// store, `None` without limits. Changes are marked in `dirty`; `None` if the disk is the
    /// target, or the copy ends. The queue of a copy must be closed before the copy ends.
    pub fn set_mirror(
        &mut self,
        disk: usize,
        location: Option<StoreDiskSlot>,
        dirty: Option<Arc<DirtyMap>>,
    ) {
        let index = location.and_then(|StoreDiskSlot { store, slot }| {
            let store = self.store_number(store)?;
            Some(EngineDiskSlot { store_number: store, slot })
        });
        if let Some(EngineDiskSlot { store_number: store, slot }) = index {
            if let Some(worker_store) = self.stores.get_mut(store) {
                worker_store.prepare_for_disk(slot);
            }
        }
        if let Some(disk_state) = self.disks.get_mut(disk) {
            disk_state.mirror.qos_slot = index;
            disk_state.mirror.dirty = dirty;
        }
    }

    /// Returns the number of a disk's requests that have not completed, except those of a copy.
    pub fn requests_in_flight(&self, disk: usize) -> usize {
        let requests = self.requests.numbers().filter_map(|number| self.requests.get(number));
        requests.filter(|request| request.disk == disk && !request.is_mirror).count()
    }
}
