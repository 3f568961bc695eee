//! Line by which a ring signals the front-end: interrupts the guest (call), or reports a fault.

use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use suimon_eventfd::PeerEventFd;

/// Line from a ring to the front-end: an eventfd of the front-end, which can be replaced while the
/// ring runs. QEMU replaces it when a guest masks an interrupt. The ring therefore holds this line
/// and not the descriptor. Without an eventfd, signals have no effect, because the driver polls.
#[derive(Debug, Default)]
pub struct InterruptLine {
    fd: Mutex<Option<PeerEventFd>>,
    /// Additional eventfd of this process that every signal writes to.
    observer_fd: Option<Arc<OwnedFd>>,
}

impl InterruptLine {
    /// Creates a line without an eventfd of the front-end.
    pub const fn new() -> Self {
        Self { fd: Mutex::new(None), observer_fd: None }
    }

    /// Creates a line without an eventfd of the front-end. Every signal also writes to `watcher`, a
    /// non-blocking eventfd of this process, by which a thread detects a fault of a ring that
    /// another thread drives.
    pub const fn with_observer(watcher: Arc<OwnedFd>) -> Self {
        Self { fd: Mutex::new(None), observer_fd: Some(watcher) }
    }

    /// Sends later signals to the eventfd `fd`, or to none if it is `None`.
    pub fn connect(&self, fd: Option<PeerEventFd>) {
        let old = {
            let mut slot = self.fd.lock().unwrap_or_else(PoisonError::into_inner);
            core::mem::replace(&mut *slot, fd)
        };
        drop(old);
    }

    /// Signals the eventfds. A full eventfd remains readable. Never blocks on the front-end's
    /// eventfd.
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
