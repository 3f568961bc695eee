//! Ingress queues without a guest end. The worker polls them; they never notify.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use suimon_frame::FrameBatch;
use suimon_ports::{ArmResult, FrameSource, QueueFault};

/// Generator of the frames of a queue.
pub trait Supply: Send + Sized + 'static {
    /// Appends frames to `batch` and returns their number; see [`FrameSource::receive`].
    ///
    /// # Errors
    /// The queue has failed or is closed.
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault>;

    /// Returns whether no further frame follows, so that the worker may sleep.
    fn is_over(&self) -> bool {
        false
    }

    /// See [`FrameSource::release`].
    fn release(&mut self) {}

    /// Converts the generator into a queue.
    ///
    /// # Panics
    /// The host has no eventfd left.
    fn source(self) -> Box<dyn FrameSource> {
        let never_readable = eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd");
        Box::new(Supplied { supply: self, never: never_readable })
    }
}

struct Supplied<S> {
    supply: S,
    never: OwnedFd,
}

impl<S: Supply> FrameSource for Supplied<S> {
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, QueueFault> {
        self.supply.fill(batch)
    }

    fn release(&mut self) {
        self.supply.release();
    }

    fn arm(&mut self) -> ArmResult {
        if self.supply.is_over() { ArmResult::Armed } else { ArmResult::Pending }
    }

    fn disarm(&mut self) {}

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.never.as_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        false
    }

    fn malformed_frames(&self) -> u64 {
        0
    }
}
