//! Queues that cost nothing, to see what the switch itself costs.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use suimon_frame::{Frame, FrameBatch, Offloads, VnetHeader};
use suimon_ports::{FrameSink, FrameSource, PortFault, Sent, Wakeup};

/// Always has another batch of the same frame.
pub struct Endless {
    bytes: [u8; 64],
    never: OwnedFd,
}

impl Endless {
    /// A source of this frame.
    ///
    /// # Panics
    /// The host has no eventfd left.
    pub fn new(bytes: [u8; 64]) -> Self {
        Self { bytes, never: eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd") }
    }
}

impl FrameSource for Endless {
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, PortFault> {
        let before = batch.len();
        while let Some(frame) = batch.spare() {
            frame.space_mut()[..64].copy_from_slice(&self.bytes);
            frame.set_len(64);
            if frame.admit(&VnetHeader::default(), Offloads::TCP).is_ok() {
                batch.commit();
            }
        }
        Ok(batch.len() - before)
    }

    fn arm(&mut self) -> Wakeup {
        Wakeup::Pending
    }

    fn disarm(&mut self) {}

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.never.as_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        false
    }

    fn malformed(&self) -> u64 {
        0
    }
}

/// Takes everything.
pub struct Bottomless;

impl FrameSink for Bottomless {
    fn transmit(&mut self, frame: &Frame) -> Result<Sent, PortFault> {
        std::hint::black_box(frame.wire());
        Ok(Sent::Accepted)
    }

    fn flush(&mut self) -> Result<(), PortFault> {
        Ok(())
    }

    fn offloads(&self) -> Offloads {
        Offloads::NONE
    }
}
