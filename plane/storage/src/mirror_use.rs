//! Disks that are copied, on their processor.

use std::sync::Arc;

use crate::dirty::DirtyMap;
use crate::disk::{DiskPlace, Place};
use crate::work::StorageWork;

impl StorageWork {
    /// A disk is copied, or not any more: by a queue whose requests have this place in its
    /// store, or no limits; what changes is marked in `dirty`. Such a queue is given back
    /// before.
    pub(crate) fn set_mirror(
        &mut self,
        disk: usize,
        place: Option<DiskPlace>,
        dirty: Option<Arc<DirtyMap>>,
    ) {
        let place = place.and_then(|DiskPlace { store, slot }| {
            let store = self.store_number(store)?;
            Some(Place { store, slot })
        });
        if let Some(Place { store, slot }) = place {
            if let Some(of) = self.stores.get_mut(store) {
                of.expect(slot);
            }
        }
        if let Some(of) = self.disks.get_mut(disk) {
            of.mirror.place = place;
            of.mirror.dirty = dirty;
        }
    }

    /// Requests of a disk that were taken and not answered, but those of its being copied.
    pub(crate) fn under_way(&self, disk: usize) -> usize {
        let requests = self.requests.numbers().filter_map(|number| self.requests.get(number));
        requests.filter(|request| request.disk == disk && !request.is_mirror).count()
    }
}
