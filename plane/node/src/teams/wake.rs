//! Wakes the teams' thread from its wait for sockets.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};

/// An event counter of the kernel. Whoever is woken before it waits does not wait.
pub(crate) struct Wake(OwnedFd);

impl Wake {
    /// # Errors
    /// The process is out of descriptors.
    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?))
    }

    pub(crate) fn wake(&self) {
        // Refused only if the counter is full, and then it wakes already.
        let _ = rustix::io::write(&self.0, &1_u64.to_ne_bytes());
    }

    /// What was heard until now wakes no more.
    pub(crate) fn drain(&self) {
        let _ = rustix::io::read(&self.0, &mut [0_u8; 8]);
    }
}

impl AsFd for Wake {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
