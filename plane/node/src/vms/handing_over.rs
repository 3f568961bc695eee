//! Final phase of an outgoing migration: only the destination node knows which node owns the VM.

use std::time::{Duration, Instant};

use suimon_contract::{ApiError, Arrival, ArrivalState, ErrorCode, VmState};

use super::driver::Driver;
use super::leaving::{Leaving, Stage};
use super::records::StoredMove;
use super::texts;
use crate::control::Command;
use crate::moving::far_error;
use crate::operations::OperationHandle;
use crate::{FarError, FarNode};

/// Interval between requests to delete the remains of a migrated VM, in units of
/// `Driver::ask_far_again`.
const DEPART_AGAIN: u32 = 10;

impl Driver {
    /// Requests the destination node to activate the VM. Repeated until the destination reports
    /// which node owns the VM. `is_told` is true if an event has reported the destination as
    /// unresponsive.
    ///
    /// Returns the time until the next request, or `None` if the VM belongs to the destination.
    ///
    /// # Errors
    /// The VM stays on this node: the destination has abandoned it or is no longer configured.
    pub(super) fn ask_whose(
        &mut self,
        leaving: &mut Leaving,
        is_told: bool,
    ) -> Result<Option<Duration>, ApiError> {
        if leaving.marks.is_empty() {
            // The marks were created by the previous daemon and must be created again: without them
            // the destination refuses the activation.
            let marked = self.shared.mark_stores(&leaving.leave.stores);
            leaving.marks = marked.unwrap_or_else(|error| {
                tracing::warn!(vm = %self.entry.name, %error, "cannot mark a store");
                Vec::new()
            });
        }
        let leave = &leaving.leave;
        let answer = match self.shared.far_node(&leave.to) {
            Ok(far) => activated(far.as_ref(), &leave.id),
            // By deleting the node, the operator declares that it will never run the VM.
            Err(error) if error.code == ErrorCode::NotFound => {
                let text = "the destination node is not configured any more";
                return Err(self.error(ErrorCode::Conflict, text));
            }
            Err(error) => Err(FarError::Unreachable(error.message)),
        };
        match answer {
            Ok(Arrival { state: ArrivalState::Active, .. }) => {
                self.leave(leaving);
                Ok(None)
            }
            Ok(_) => {
                let text = format!("node {} cancelled the migration", leave.to);
                Err(self.error(ErrorCode::HostError, &text))
            }
            Err(error) => {
                let error = far_error(&leave.to, error);
                if !is_told {
                    self.append(texts::handed_over(&self.entry, &leave.to, &error.message));
                }
                let mut view = self.entry.view();
                view.state = VmState::HandedOver;
                view.reason = Some(error.message);
                drop(view);
                leaving.stage = Stage::HandedOver { is_told: true };
                Ok(Some(self.ask_far_again))
            }
        }
    }

    /// Handles the activation on the destination: kills the local process and has the VM deleted
    /// here.
    fn leave(&mut self, leaving: &mut Leaving) {
        let leave = leaving.leave.clone();
        let to = leave.to.clone();
        if let Some(run) = self.run.take() {
            if let Err(error) = self.shared.vms.parts.host.kill(&run.vm.identity()) {
                tracing::error!(vm = %self.entry.name, %error, "cannot remove the rest of a VM");
            }
        }
        self.lost = None;
        self.save_moving(Some(StoredMove::Left(leave)));
        self.append(texts::left(&self.entry, to.as_str()));
        self.depart(leaving.operation.take());
    }

    /// Requests the control thread to delete the VM, its NICs and its disks on this node, and to
    /// complete `waiting` afterwards. Repeated until the VM is deleted, because the change can be
    /// cancelled or fail.
    pub(super) fn depart(&mut self, waiting: Option<OperationHandle>) {
        let (text, with_file) = match &self.moving {
            Some(StoredMove::Left(leave)) => {
                (format!("it has migrated to node {}", leave.to), leave.with_files)
            }
            _ => ("the migration failed".to_owned(), true),
        };
        let mut view = self.entry.view();
        view.state = VmState::Stopped;
        view.running = None;
        view.reason = Some(text);
        drop(view);
        self.depart_again_at = Some(Instant::now() + self.ask_far_again * DEPART_AGAIN);
        match self.shared.operations.add("vm depart", &self.entry.label(), true) {
            Ok(operation) => {
                let vm = self.entry.name.clone();
                let command = Command::Depart { operation, waiting, vm, with_file };
                let _ = self.control.try_send(command);
            }
            // The VM has moved. Its remains are deleted when another operation can be registered.
            Err(_) => waiting.iter().for_each(|waiting| waiting.end(&Ok(()))),
        }
    }

    /// Repeats the deletion request if the VM still exists.
    pub(super) fn look_at_departing(&mut self, now: Instant) {
        if self.depart_again_at.is_some_and(|at| at <= now) {
            self.depart(None);
        }
    }
}

/// Activates the arrival on the destination. If the destination refuses, the arrival is abandoned,
/// so that it can never be activated later.
fn activated(far: &dyn FarNode, id: &str) -> Result<Arrival, FarError> {
    match far.activate_arrival(id) {
        Err(FarError::Refused(errors)) => {
            let answer = far.abandon_arrival(id)?;
            if answer.state == ArrivalState::Abandoned {
                tracing::warn!(?errors, "the destination node does not take over the VM");
            }
            Ok(answer)
        }
        answer => answer,
    }
}
