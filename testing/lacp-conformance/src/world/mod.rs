//! What the suite needs from the outside: frames, time and links.

mod packets;
mod socket;

use std::time::Duration;

use anyhow::Result;

pub(crate) use packets::Packets;

/// A frame that arrived.
#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    /// Which of the suite's interfaces.
    pub(crate) interface: usize,
    /// Since the world began.
    pub(crate) at: Duration,
    /// Without FCS.
    pub(crate) frame: Vec<u8>,
}

/// The far ends of the device's members. Unit tests have one in virtual time, with a
/// device of their own at the other end.
pub(crate) trait World {
    /// How many interfaces there are.
    fn interfaces(&self) -> usize;
    /// Since the world began.
    fn now(&self) -> Duration;
    /// Sends a frame, if the link is up.
    ///
    /// # Errors
    /// The interface is gone.
    fn send(&mut self, interface: usize, frame: &[u8]) -> Result<()>;
    /// The next frame, at `until` at the latest.
    ///
    /// # Errors
    /// An interface is gone.
    fn receive(&mut self, until: Duration) -> Result<Option<Arrival>>;
    /// Takes a link down or up, so that the device sees its carrier go or come.
    ///
    /// # Errors
    /// The command that does it failed.
    fn set_link(&mut self, interface: usize, up: bool) -> Result<()>;
}
