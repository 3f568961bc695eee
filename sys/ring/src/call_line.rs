//! Interrupt line of a ring: the eventfd that interrupts the guest (call) or reports an error.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

/// Eventfd of the front-end, or none if the driver polls. The eventfd can be replaced while the
/// ring runs: QEMU does so when a guest masks an interrupt. The ring therefore holds this line and
/// not the descriptor.
#[derive(Debug, Default)]
pub struct CallLine {
    fd: Mutex<Option<OwnedFd>>,
    /// Second eventfd that is signalled too, independent of the front-end's descriptor.
    watcher: Option<Arc<OwnedFd>>,
}

impl CallLine {
    /// Returns a line without a front-end eventfd.
    pub const fn new() -> Self {
        Self { fd: Mutex::new(None), watcher: None }
    }

    /// Returns a line without a front-end eventfd that always signals `watcher`, a non-blocking
    /// eventfd of this process. A thread that polls `watcher` detects a fault of a ring that
    /// another thread drives.
    pub const fn watched(watcher: Arc<OwnedFd>) -> Self {
        Self { fd: Mutex::new(None), watcher: Some(watcher) }
    }

    /// Sends later interrupts to `fd`, or to no descriptor if `None`. Writes to the descriptor must
    /// not block.
    pub fn connect(&self, fd: Option<OwnedFd>) {
        let old = {
            let mut slot = self.fd.lock().unwrap_or_else(PoisonError::into_inner);
            core::mem::replace(&mut *slot, fd)
        };
        drop(old);
    }

    /// Interrupts the guest. A full eventfd already holds an interrupt. Other errors are caused by
    /// the front-end, affect only its guest, and are ignored.
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
