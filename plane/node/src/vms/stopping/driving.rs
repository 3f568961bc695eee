//! Stop of a VM, by its driver.

use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ErrorCode, StopMethod, StopVmRequest, VmState};
use suimon_ports::VmCommand;

use super::PendingStop;
use crate::operations::OperationHandle;
use crate::vms::driver::Driver;
use crate::vms::entry::vm_state;

/// Interval in which the operation is checked for cancellation.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

impl Driver {
    /// Requests a shutdown of the guest: through the guest agent, the ACPI power button, or by
    /// default the agent with the power button as fallback.
    pub(in crate::vms) fn request_stop(&mut self, stop_kind: StopMethod) -> Result<(), ApiError> {
        let has_agent = self.run.as_ref().is_some_and(|run| run.vm.status().has_agent);
        match stop_kind {
            StopMethod::Agent => return self.execute(&VmCommand::ShutDown),
            StopMethod::Auto if has_agent => match self.execute(&VmCommand::ShutDown) {
                Ok(()) => return Ok(()),
                Err(error) => {
                    tracing::info!(vm = %self.entry.name, %error, "press the VM's power button");
                }
            },
            StopMethod::Auto | StopMethod::PowerButton => {}
        }
        self.execute(&VmCommand::PowerButton)
    }

    /// Starts waiting for the guest's power-off, after a shutdown request was sent.
    pub(in crate::vms) fn begin_stopping(
        &mut self,
        request: StopVmRequest,
        operation: Option<OperationHandle>,
    ) {
        if let Some(operation) = &operation {
            operation.report_progress(0, 1, "wait until the guest has shut down");
        }
        let now = Instant::now();
        let (look_at, until) = (now + POLL_INTERVAL, now + Duration::from_secs(request.timeout_s));
        self.pending_stop = Some(PendingStop { operation, next_poll_at: look_at, until, request });
        self.fail_awaited_writes();
        self.publish(VmState::Stopping);
    }

    /// Ends the stop if it was cancelled or its timeout has expired. A stop with `force` then kills
    /// the VM.
    pub(in crate::vms) fn poll_stopping(&mut self, now: Instant) {
        let Some(stopping) = &mut self.pending_stop else { return };
        if stopping.next_poll_at <= now {
            stopping.next_poll_at = now + POLL_INTERVAL;
        }
        let request = stopping.request;
        if stopping.operation.as_ref().is_some_and(OperationHandle::is_cancelled) {
            let text = "the command stopped waiting; the guest was requested to shut down and may \
                        still do so";
            return self.continue_stop(self.error(ErrorCode::Cancelled, text));
        }
        if stopping.until > now {
            return;
        }
        if request.force {
            // The end of the VM completes the operation.
            if let Err(error) = self.kill() {
                self.continue_stop(error);
            }
            return;
        }
        let text = format!(
            "the guest has not shut down in {} s and is still running; `suimon vm kill {}` ends it",
            request.timeout_s, self.entry.name
        );
        self.continue_stop(self.error(ErrorCode::HostError, &text));
    }

    fn continue_stop(&mut self, error: ApiError) {
        if let Some(run) = &self.run {
            let state = vm_state(run.vm.status().state);
            self.publish(state);
        }
        self.end_stopping(&Err(error));
    }

    /// Ends the pending stop, if there is one, and completes its operation with `result`.
    pub(in crate::vms) fn end_stopping(&mut self, result: &Result<(), ApiError>) {
        let Some(stopping) = self.pending_stop.take() else { return };
        self.fail_awaited_writes();
        if let Some(operation) = stopping.operation {
            operation.end(result);
        }
    }
}
