//! Results of saving the state of a member.

use suimon_cluster_qos::DurableState;
use suimon_ports::StateStoreError;

use super::SharedStore;
use super::actions::StoreAction;
use crate::cluster::events;
use crate::events::EventDraft;

impl SharedStore {
    /// Handles the result of saving the member's state `durable`. After a failure, the state is
    /// saved again before the member's other actions are executed. Returns the event of the
    /// failure, unless it was reported before.
    pub(in crate::cluster) fn handle_save_result(
        &mut self,
        durable: DurableState,
        saved: Result<(), StateStoreError>,
    ) -> Option<EventDraft> {
        let Err(error) = saved else {
            self.durable = durable;
            self.unsaved_reservation.record_success();
            return None;
        };
        self.requeue_failed_action(StoreAction::SaveState(durable));
        let is_new = self.unsaved_reservation.record_failure(&error);
        is_new.then(|| events::record_not_saved_event(&self.name, "reservation", &error))
    }
}
