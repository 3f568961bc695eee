//! The line that interrupts the guest.

use std::os::fd::OwnedFd;
use std::sync::{Mutex, PoisonError};

/// An eventfd of the front-end's, or nothing if the driver polls. It can be
/// exchanged while the ring runs (a guest that masks an interrupt makes QEMU do
/// so), which is why the ring holds the line and not the descriptor.
#[derive(Debug, Default)]
pub struct CallLine {
    fd: Mutex<Option<OwnedFd>>,
}

impl CallLine {
    /// A line that leads nowhere yet.
    pub const fn new() -> Self {
        Self { fd: Mutex::new(None) }
    }

    /// From now on interrupts go to `fd`; nowhere if `None`. The descriptor must
    /// not block when written.
    pub fn connect(&self, fd: Option<OwnedFd>) {
        let old = {
            let mut slot = self.fd.lock().unwrap_or_else(PoisonError::into_inner);
            core::mem::replace(&mut *slot, fd)
        };
        drop(old);
    }

    /// Interrupts the guest. A full eventfd holds an interrupt already; any other
    /// error is the front-end's own doing and harms its guest only.
    pub fn ring(&self) {
        let slot = self.fd.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fd) = slot.as_ref() {
            let _ = rustix::io::write(fd, &1_u64.to_ne_bytes());
        }
    }
}
