//! Phases of requests, for the accounting in the scheduler of the requests' store.

use suimon_storage_qos::RequestPhase;

use crate::disk::DiskState;
use crate::engine::StorageEngine;

impl StorageEngine {
    /// Moves a request to a phase, and reports the change to its store's scheduler.
    #[inline]
    pub(crate) fn enter_phase(&mut self, number: usize, phase: RequestPhase) {
        let is_other = self.requests.get(number).is_some_and(|request| request.phase != phase);
        if is_other {
            self.change_phase(number, phase);
        }
    }

    #[inline(never)]
    fn change_phase(&mut self, number: usize, phase: RequestPhase) {
        let Some(request) = self.requests.get_mut(number) else { return };
        let previous = core::mem::replace(&mut request.phase, phase);
        let Some(index) = request.charged_slot else { return };
        if let Some(store) = self.stores.get_mut(index.store_number) {
            store.handle_phase(self.now, index.slot, previous, phase);
        }
    }
}

/// Returns the phase of a request that is parked on this disk.
pub(crate) fn parked_phase(disk: &DiskState) -> RequestPhase {
    let waits_for_metadata = disk.pending_discard.is_none() && disk.blocked_by.is_some();
    if waits_for_metadata { RequestPhase::Metadata } else { RequestPhase::Unmeasured }
}
