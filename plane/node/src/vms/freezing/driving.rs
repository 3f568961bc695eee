//! Freezing of a guest's file systems, by the driver of its VM.

use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ErrorCode, FreezeVmRequest};
use suimon_ports::{VmCommand, VmErrorKind};

use super::GuestFreeze;
use crate::vms::driver::Driver;
use crate::vms::texts;
use crate::vms::texts::FreezeEnd;

/// Interval between attempts to thaw a guest after a failure.
const THAW_AGAIN: Duration = Duration::from_secs(5);

impl Driver {
    /// Freezes the guest's file systems for at most `request.seconds`.
    pub(in crate::vms) fn freeze(&mut self, request: FreezeVmRequest) -> Result<(), ApiError> {
        let Some(run) = &mut self.run else { return Err(self.not_running_error()) };
        if run.frozen.is_some() {
            let text = format!(
                "the file systems of its guest are already frozen; `suimon vm thaw {}` thaws them",
                self.entry.name
            );
            return Err(self.error(ErrorCode::Conflict, &text));
        }
        // Recorded first: if the daemon is killed from here on, the next one thaws the guest.
        run.stored.is_frozen = true;
        self.save_run();
        let Some(run) = &mut self.run else { return Ok(()) };
        if !run.is_recorded {
            run.stored.is_frozen = false;
            let text = "the state directory cannot be written, and after a restart of the daemon \
                        the guest would stay frozen; `suimon host show` shows the reason";
            return Err(self.error(ErrorCode::HostError, text));
        }
        let result = run.vm.execute(&VmCommand::Freeze);
        let time = match &result {
            Ok(()) => Some(Duration::from_secs(request.thaw_after_s)),
            // A refusal leaves the guest unfrozen. A guest agent without a response may still
            // freeze it.
            Err(error) if error.kind == VmErrorKind::Refused => None,
            Err(_) => Some(Duration::ZERO),
        };
        run.frozen = time.map(GuestFreeze::lasting);
        run.stored.is_frozen = run.frozen.is_some();
        if run.frozen.is_none() {
            self.save_run();
        }
        self.publish_again();
        result.map_err(|error| self.api_error(&error))?;
        self.append(texts::frozen_event(&self.entry, request.thaw_after_s));
        Ok(())
    }

    /// Thaws the guest's file systems on request.
    pub(in crate::vms) fn thaw(&mut self) -> Result<(), ApiError> {
        let Some(run) = &self.run else { return Err(self.not_running_error()) };
        // Sent even if no freeze is recorded: another client of the guest agent may have frozen the
        // guest.
        run.vm.execute(&VmCommand::Thaw).map_err(|error| self.api_error(&error))?;
        self.end_freeze(FreezeEnd::Request);
        Ok(())
    }

    /// Thaws the guest if the duration of the freeze has expired.
    pub(in crate::vms) fn thaw_if_due(&mut self, now: Instant) {
        let Some(run) = &mut self.run else { return };
        let Some(frozen) = run.frozen.as_mut().filter(|frozen| frozen.thaw_at <= now) else {
            return;
        };
        match run.vm.execute(&VmCommand::Thaw) {
            Ok(()) => self.end_freeze(FreezeEnd::Timeout),
            Err(error) => {
                frozen.thaw_at = Instant::now() + THAW_AGAIN;
                if !std::mem::replace(&mut frozen.is_reported, true) {
                    self.append(texts::thaw_failed_event(&self.entry, &error.text));
                }
            }
        }
    }

    /// Handles the end of a freeze.
    pub(in crate::vms) fn end_freeze(&mut self, end: FreezeEnd) {
        let Some(run) = &mut self.run else { return };
        run.stored.is_frozen = false;
        if run.frozen.take().is_some() {
            self.save_run();
            self.publish_again();
            self.append(texts::thawed_event(&self.entry, end));
        }
    }
}
