//! A guest whose agent holds writes to its file systems, and that goes on again whatever becomes of
//! who asked for it.

use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ErrorCode, FreezeVmRequest};
use suimon_ports::{VmCommand, VmErrorKind};

use super::driver::Driver;
use super::texts;

/// How often a guest that does not go on is told to again.
const THAW_AGAIN: Duration = Duration::from_secs(5);

/// See the module.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frozen {
    /// When it is told to go on, or told again.
    pub(super) until: Instant,
    /// Whether that it does not was told.
    is_told: bool,
}

impl Frozen {
    /// For so long.
    pub(super) fn for_time(time: Duration) -> Self {
        Self { until: Instant::now() + time, is_told: false }
    }
}

impl Driver {
    /// Has the guest hold writes.
    pub(super) fn freeze(&mut self, request: FreezeVmRequest) -> Result<(), ApiError> {
        let Some(run) = &mut self.run else {
            return Err(self.error(ErrorCode::Conflict, "the VM is not running"));
        };
        if run.frozen.is_some() {
            let text = format!(
                "the file systems of its guest are already frozen; `suimon vm thaw {}` thaws them",
                self.entry.name
            );
            return Err(self.error(ErrorCode::Conflict, &text));
        }
        // A daemon that is killed from here on leaves this to the next one.
        run.stored.is_frozen = true;
        self.save_run();
        let Some(run) = &mut self.run else { return Ok(()) };
        if !run.is_written {
            run.stored.is_frozen = false;
            let text = "the state store cannot be written, and after a restart of the daemon the \
                        guest would stay frozen; see the daemon's log";
            return Err(self.error(ErrorCode::HostError, text));
        }
        let result = run.vm.tell(&VmCommand::Freeze);
        let time = match &result {
            Ok(()) => Some(Duration::from_secs(request.seconds)),
            // What refuses has frozen nothing; what does not answer may yet do so.
            Err(error) if error.kind == VmErrorKind::Refused => None,
            Err(_) => Some(Duration::ZERO),
        };
        run.frozen = time.map(Frozen::for_time);
        run.stored.is_frozen = run.frozen.is_some();
        if run.frozen.is_none() {
            self.save_run();
        }
        self.publish_again();
        result.map_err(|error| self.told(&error))?;
        self.append(texts::frozen(&self.entry, request.seconds));
        Ok(())
    }

    /// Has it write again.
    pub(super) fn thaw(&mut self) -> Result<(), ApiError> {
        let Some(run) = &self.run else {
            return Err(self.error(ErrorCode::Conflict, "the VM is not running"));
        };
        // Also if it is not known to be frozen: somebody else may have done that.
        run.vm.tell(&VmCommand::Thaw).map_err(|error| self.told(&error))?;
        self.end_freeze(true);
        Ok(())
    }

    /// Whether the time is over for which it was frozen.
    pub(super) fn look_at_freeze(&mut self, now: Instant) {
        let Some(run) = &mut self.run else { return };
        let Some(frozen) = run.frozen.as_mut().filter(|frozen| frozen.until <= now) else { return };
        match run.vm.tell(&VmCommand::Thaw) {
            Ok(()) => self.end_freeze(false),
            Err(error) => {
                frozen.until = Instant::now() + THAW_AGAIN;
                if !std::mem::replace(&mut frozen.is_told, true) {
                    self.append(texts::not_thawed(&self.entry, &error.text));
                }
            }
        }
    }

    /// It writes again: it was told to, or was started anew.
    pub(super) fn end_freeze(&mut self, is_asked_for: bool) {
        let Some(run) = &mut self.run else { return };
        run.stored.is_frozen = false;
        if run.frozen.take().is_some() {
            self.save_run();
            self.publish_again();
            self.append(texts::thawed(&self.entry, is_asked_for));
        }
    }
}
