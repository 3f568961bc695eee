//! Ingress queues without a far side: they are asked for frames and never wake anybody.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use suimon_frame::FrameBatch;
use suimon_ports::{FrameSource, PortFault, Wakeup};

/// Where the frames of a queue come from.
pub trait Supply: Send + Sized + 'static {
    /// Appends frames to `batch` and says how many: [`FrameSource::receive`].
    ///
    /// # Errors
    /// The queue is finished.
    fn fill(&mut self, batch: &mut FrameBatch) -> Result<usize, PortFault>;

    /// Whether no further frame comes, so that a processor may sleep.
    fn is_over(&self) -> bool {
        false
    }

    /// See [`FrameSource::release`].
    fn release(&mut self) {}

    /// The queue.
    ///
    /// # Panics
    /// The host has no eventfd left.
    fn source(self) -> Box<dyn FrameSource> {
        let never = eventfd(0, EventfdFlags::CLOEXEC).expect("an eventfd");
        Box::new(Supplied { supply: self, never })
    }
}

struct Supplied<S> {
    supply: S,
    never: OwnedFd,
}

impl<S: Supply> FrameSource for Supplied<S> {
    fn receive(&mut self, batch: &mut FrameBatch) -> Result<usize, PortFault> {
        self.supply.fill(batch)
    }

    fn release(&mut self) {
        self.supply.release();
    }

    fn arm(&mut self) -> Wakeup {
        if self.supply.is_over() { Wakeup::Armed } else { Wakeup::Pending }
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
