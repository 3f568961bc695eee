//! Wake-up of the team thread.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// Event counter of the kernel (eventfd). A wake-up before the wait makes the wait return at once.
pub(crate) struct WakeEvent(OwnedFd);

impl WakeEvent {
    /// Creates the eventfd.
    ///
    /// # Errors
    /// Fails if file descriptors are exhausted.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn wake(&self) {
        // Fails only if the counter is at its maximum, which wakes the thread, too.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// Clears pending wake-ups, so that the next one is reported.
    pub(crate) fn drain(&self) {
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for WakeEvent {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
