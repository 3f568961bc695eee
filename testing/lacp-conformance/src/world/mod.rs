//! External resources of the suite: interfaces, clock and link control.

mod packets;
mod socket;

use std::time::Duration;

use anyhow::Result;

pub(crate) use packets::Packets;

/// A received frame.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// Index of the interface.
    pub(crate) interface: usize,
    /// Time since the world was created.
    pub(crate) time: Duration,
    /// The frame without FCS.
    pub(crate) frame: Vec<u8>,
}

/// The interfaces at the far ends of the device's members. Unit tests use an implementation in
/// virtual time with a virtual device.
pub(crate) trait World {
    /// Returns the number of interfaces.
    fn interfaces(&self) -> usize;
    /// Returns the time since the world was created.
    fn now(&self) -> Duration;
    /// Sends a frame. It is lost if the link is down.
    ///
    /// # Errors
    /// The interface does not exist any more.
    fn send(&mut self, interface: usize, frame: &[u8]) -> Result<()>;
    /// Waits for the next frame until the time `until`.
    ///
    /// # Errors
    /// An interface does not exist any more.
    fn receive(&mut self, until: Duration) -> Result<Option<Arrival>>;
    /// Sets a link down or up, so that the device's carrier changes.
    ///
    /// # Errors
    /// The command that changes the link failed.
    fn set_link(&mut self, interface: usize, up: bool) -> Result<()>;
}
