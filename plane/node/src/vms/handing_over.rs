//! A VM that was handed over to another node: only that node knows whose it is.

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

/// What is left of a VM that is another node's is asked to be deleted again after so many of the
/// pauses in which other nodes are asked.
const DEPART_AGAIN: u32 = 10;

impl Driver {
    /// Asks the other node to run the VM, until it says whose that is.
    pub(super) fn ask_whose(
        &mut self,
        leaving: &mut Leaving,
        is_told: bool,
    ) -> Result<Option<Duration>, ApiError> {
        if leaving.marks.is_empty() {
            // The daemon before this one had made them. Without them the other node refuses.
            let marked = self.shared.mark_stores(&leaving.leave.stores);
            leaving.marks = marked.unwrap_or_else(|error| {
                tracing::warn!(vm = %self.entry.name, %error, "cannot mark a store");
                Vec::new()
            });
        }
        let leave = &leaving.leave;
        let answer = match self.shared.far_node(&leave.to) {
            Ok(far) => activated(far.as_ref(), &leave.id),
            // Its user says that it is not there any more.
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

    /// The VM is the other node's.
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

    /// Has the VM, its NICs and disks deleted here, and says so to who waits. It is asked for again
    /// until it was done: a change can be cancelled, or fail.
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
            // It has moved; what is left of it goes when there is room for another operation.
            Err(_) => waiting.iter().for_each(|waiting| waiting.end(&Ok(()))),
        }
    }

    /// Asks for it again, if it is still here.
    pub(super) fn look_at_departing(&mut self, now: Instant) {
        if self.depart_again_at.is_some_and(|at| at <= now) {
            self.depart(None);
        }
    }
}

/// Tells the other node to run the VM. One that refuses is told to give it up, so that it never
/// does.
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
