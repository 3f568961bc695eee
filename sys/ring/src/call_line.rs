//! The line that interrupts the guest.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// An eventfd of the front-end's, or nothing if the driver polls. It can be
/// exchanged while the ring runs (a guest that masks an interrupt makes QEMU do
/// so), which is why the ring holds the line and not the descriptor.
#[derive(Debug, Default)]
pub struct CallLine {
    fd: Mutex<Option<OwnedFd>>,
    /// Is told too, whatever the front-end does with its own descriptor.
    watcher: Option<Arc<OwnedFd>>,
}

impl CallLine {
    /// A line that leads nowhere yet.
    pub const fn new() -> Self {
        Self { fd: Mutex::new(None), watcher: None }
    }

    /// A line that leads nowhere yet in the front-end, and always to `watcher`, an
    /// eventfd of ours that does not block: whoever waits on it learns of a fault
    /// in a ring that another thread drives.
    pub const fn watched(watcher: Arc<OwnedFd>) -> Self {
        Self { fd: Mutex::new(None), watcher: Some(watcher) }
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
        drop(slot);
        if let Some(watcher) = &self.watcher {
            let _ = rustix::io::write(&**watcher, &1_u64.to_ne_bytes());
        }
    }
}
