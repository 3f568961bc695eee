//! Devices that guests have released on their own, by the driver of a VM.

use std::time::Instant;

use crate::vms::driver::Driver;

impl Driver {
    /// Plugs devices again whose delay after a release by the guest has passed.
    pub(in crate::vms) fn plug_self_released(&mut self, now: Instant) {
        if self.run.as_mut().is_some_and(|run| run.self_released.end_delays(now)) {
            self.reconcile();
        }
    }
}
