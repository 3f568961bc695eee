//! Network device of the host that a daemon creates, and leaves when it ends.

use anyhow::Result;

use crate::command::run;
use crate::rig::Rig;

/// The host's NIC on an internal switch. Dropping it deletes the device; it must outlive the
/// daemon.
#[derive(Debug)]
pub struct HostDevice(String);

impl HostDevice {
    /// Chooses a name; the daemon creates the device.
    pub fn new(rig: &Rig) -> Self {
        Self(rig.device("h"))
    }

    /// Assigns an address, and a route to one behind the switch. Both are single addresses, so that
    /// no network of the machine is hidden.
    ///
    /// # Errors
    /// The device does not exist.
    pub fn address(&self, own_address: &str, peer: &str) -> Result<()> {
        run(&["ip", "address", "add", &format!("{own_address}/32"), "dev", &self.0])?;
        run(&["ip", "route", "add", &format!("{peer}/32"), "dev", &self.0])?;
        Ok(())
    }

    /// Returns the name of the device.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Drop for HostDevice {
    fn drop(&mut self) {
        // The device does not exist if its switch was deleted.
        let _ = run(&["ip", "link", "delete", &self.0]);
    }
}
