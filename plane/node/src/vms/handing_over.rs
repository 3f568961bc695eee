//! A VM that was handed over to another node: only that node knows whose it is.

use std::time::Duration;

use suimon_contract::{ApiError, Arrival, ArrivalState, ErrorCode, VmState};

use super::driver::Driver;
use super::leaving::{Leaving, Stage};
use super::records::StoredMove;
use super::texts;
use crate::control::Command;
use crate::moving::far_error;
use crate::operations::OperationHandle;
use crate::{FarError, FarNode};

impl Driver {
    /// Asks the other node to run the VM, until it says whose that is.
    pub(super) fn ask_whose(
        &mut self,
        leaving: &mut Leaving,
        is_told: bool,
    ) -> Result<Option<Duration>, ApiError> {
        let leave = &leaving.leave;
        let answer = match self.shared.far_node(&leave.to) {
            Ok(far) => activated(far.as_ref(), &leave.id),
            // Its user says that it is not there any more.
            Err(error) if error.code == ErrorCode::NotFound => {
                let text = "the node that was told to run it is not configured any more";
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
                let text = format!("node {} had given the VM up", leave.to);
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
                tracing::error!(vm = %self.entry.name, %error, "what is left of a VM stays");
            }
        }
        self.lost = None;
        self.save_moving(Some(StoredMove::Left(leave)));
        self.append(texts::left(&self.entry, to.as_str()));
        self.depart(leaving.operation.take());
    }

    /// Has the VM, its NICs and disks deleted here.
    pub(super) fn depart(&mut self, operation: Option<OperationHandle>) {
        let (text, with_file) = match &self.moving {
            Some(StoredMove::Left(leave)) => {
                (format!("it has moved to node {}", leave.to), leave.with_files)
            }
            _ => ("it did not arrive".to_owned(), true),
        };
        let mut view = self.entry.view();
        view.state = VmState::Stopped;
        view.running = None;
        view.reason = Some(text);
        drop(view);
        let operation = match operation {
            Some(operation) => operation,
            None => {
                let added = self.shared.operations.add("vm depart", &self.entry.label(), true);
                let Ok(operation) = added else { return };
                operation
            }
        };
        let vm = self.entry.name.clone();
        // If it takes no more it ends, and the next daemon does this.
        let _ = self.control.try_send(Command::Depart { operation, vm, with_file });
    }
}

/// Tells the other node to run the VM. One that refuses is told to give it up, so that it never
/// does.
fn activated(far: &dyn FarNode, id: &str) -> Result<Arrival, FarError> {
    match far.activate_arrival(id) {
        Err(FarError::Refused(errors)) => {
            let answer = far.abandon_arrival(id)?;
            if answer.state == ArrivalState::Abandoned {
                tracing::warn!(?errors, "the other node does not take the VM over");
            }
            Ok(answer)
        }
        answer => answer,
    }
}
