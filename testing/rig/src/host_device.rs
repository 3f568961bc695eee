//! A device of the host that a daemon makes, and leaves when it ends.

use anyhow::Result;

use crate::command::run;
use crate::rig::Rig;

/// The host's NIC on an internal switch. It is deleted with this, which has to outlive the daemon.
#[derive(Debug)]
pub struct HostDevice(String);

impl HostDevice {
    /// A name for one; the daemon makes it.
    pub fn new(rig: &Rig) -> Self {
        Self(rig.device("h"))
    }

    /// Gives it an address, and a route to one behind the switch: to single addresses, so that no network of the
    /// machine is hidden.
    ///
    /// # Errors
    /// The device is not there.
    pub fn address(&self, own: &str, peer: &str) -> Result<()> {
        run(&["ip", "address", "add", &format!("{own}/32"), "dev", &self.0])?;
        run(&["ip", "route", "add", &format!("{peer}/32"), "dev", &self.0])?;
        Ok(())
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Drop for HostDevice {
    fn drop(&mut self) {
        // It is not there if its switch was deleted.
        let _ = run(&["ip", "link", "delete", &self.0]);
    }
}
