//! Final phase of an outgoing migration: only the destination node knows which node owns the VM.

use std::time::Duration;

use suimon_contract::{ApiError, ErrorCode, IncomingMigration, IncomingMigrationState, VmState};

use super::driver::Driver;
use super::outgoing::{OutgoingMigration, Stage};
use super::records::StoredMigrationState;
use super::texts;
use crate::remote_nodes::peer_error;
use crate::{PeerError, PeerNode};

impl Driver {
    /// Requests the destination node to activate the VM. Repeated until the destination reports
    /// which node owns the VM. `is_reported` is true if an event has reported the destination as
    /// unresponsive.
    ///
    /// Returns the time until the next request, or `None` if the VM belongs to the destination.
    ///
    /// # Errors
    /// The VM stays on this node: the destination has abandoned it or is no longer configured.
    pub(super) fn request_activation(
        &mut self,
        outgoing: &mut OutgoingMigration,
        is_reported: bool,
    ) -> Result<Option<Duration>, ApiError> {
        if outgoing.store_markers.is_empty() {
            // The marks were created by the previous daemon and must be created again: without them
            // the destination refuses the activation.
            let marked = self.shared.create_store_markers(&outgoing.migration.stores);
            outgoing.store_markers = marked.unwrap_or_else(|error| {
                tracing::warn!(vm = %self.entry.name, %error, "cannot create a test file in a store");
                Vec::new()
            });
        }
        let migration = &outgoing.migration;
        let answer = match self.shared.peer_node(&migration.destination_node) {
            Ok(peer) => activated(peer.as_ref(), &migration.id),
            // By deleting the node, the operator declares that it will never run the VM.
            Err(error) if error.code == ErrorCode::NotFound => {
                let text = "the destination node was deleted from the configuration";
                return Err(self.error(ErrorCode::Conflict, text));
            }
            Err(error) => Err(PeerError::Unreachable(error.message)),
        };
        match answer {
            Ok(IncomingMigration { state: IncomingMigrationState::Active, .. }) => {
                self.leave(outgoing);
                Ok(None)
            }
            Ok(_) => {
                let text = format!("node {} cancelled the migration", migration.destination_node);
                Err(self.error(ErrorCode::HostError, &text))
            }
            Err(error) => {
                let error = peer_error(&migration.destination_node, error);
                if !is_reported {
                    self.append(texts::handed_over_event(
                        &self.entry,
                        &migration.destination_node,
                        &error.message,
                    ));
                }
                let mut view = self.entry.view();
                view.state = VmState::HandedOver;
                view.reason = Some(error.message);
                drop(view);
                outgoing.stage = Stage::HandedOver { is_reported: true };
                Ok(Some(self.peer_request_interval))
            }
        }
    }

    /// Handles the activation of the VM on the destination: kills the local process, then has the
    /// VM deleted here. The record of the run stays until then, so that the next daemon kills a
    /// process that is left.
    fn leave(&mut self, outgoing: &mut OutgoingMigration) {
        let migration = outgoing.migration.clone();
        let to = migration.destination_node.clone();
        self.save_migration_record(Some(StoredMigrationState::Migrated(migration)));
        self.append(texts::migrated_event(&self.entry, to.as_str()));
        self.begin_source_cleanup(outgoing.operation.take());
    }
}

/// Requests the destination to activate the VM. If the destination rejects that, requests it to
/// abandon the migration, so that the VM can never be activated there later.
fn activated(peer: &dyn PeerNode, id: &str) -> Result<IncomingMigration, PeerError> {
    match peer.activate_incoming_migration(id) {
        Err(PeerError::Rejected(errors)) => {
            let answer = peer.abandon_incoming_migration(id)?;
            if answer.state == IncomingMigrationState::Abandoned {
                tracing::warn!(?errors, "the destination node does not take over the VM");
            }
            Ok(answer)
        }
        answer => answer,
    }
}
