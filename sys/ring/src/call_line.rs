//! Interrupt line of a ring: the eventfd that interrupts the guest (call) or reports an error.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use suimon_eventfd::PeerEventFd;

/// Eventfd of the front-end, or none if the driver polls. The eventfd can be replaced while the
/// ring runs: QEMU does so when a guest masks an interrupt. The ring therefore holds this line and
/// not the descriptor.
#[derive(Debug, Default)]
pub struct InterruptLine {
    fd: Mutex<Option<PeerEventFd>>,
    /// Second eventfd that is signalled too, independent of the front-end's descriptor.
    observer_fd: Option<Arc<OwnedFd>>,
}

impl InterruptLine {
    /// Returns a line without a front-end eventfd.
    pub const fn new() -> Self {
        Self { fd: Mutex::new(None), observer_fd: None }
    }

    /// Returns a line without a front-end eventfd that always signals `observer_fd`, a non-blocking
    /// eventfd of this process. A thread that polls `observer_fd` detects a fault of a ring that
    /// another thread drives.
    pub const fn with_observer(watcher: Arc<OwnedFd>) -> Self {
        Self { fd: Mutex::new(None), observer_fd: Some(watcher) }
    }

    /// Sends later interrupts to `fd`, or to no descriptor if `None`.
    pub fn connect(&self, fd: Option<PeerEventFd>) {
        let old = {
            let mut slot = self.fd.lock().unwrap_or_else(PoisonError::into_inner);
            core::mem::replace(&mut *slot, fd)
        };
        drop(old);
    }

    /// Interrupts the guest. A full eventfd already holds an interrupt. Never blocks on the
    /// front-end's descriptor.
    pub fn signal(&self) {
        let slot = self.fd.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(fd) = slot.as_ref() {
            fd.signal();
        }
        drop(slot);
        if let Some(watcher) = &self.observer_fd {
            let _ = rustix::io::write(&**watcher, &1_u64.to_ne_bytes());
        }
    }
}
