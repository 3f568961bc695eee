//! Waits of the control plane for replies of workers.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

/// Longest time for which the first disk of a store on a further worker waits for the only worker
/// that uses the store. Other changes of the store wait for that, too; leases of the cluster must not
/// expire meanwhile. Until the worker replies, no further operation waits for it, also not for its
/// other stores.
pub(crate) const SHARE_WAIT_MAX: Duration = Duration::from_secs(1);

/// Waits for replies of workers.
pub(crate) struct Waits {
    /// Longest wait for the scheduler of the only worker that uses a store.
    pub(crate) share: Duration,
    /// Waits that ended without a reply, oldest first.
    #[cfg(test)]
    expired: std::sync::Mutex<Vec<Duration>>,
}

impl Waits {
    pub(crate) fn new(share: Duration) -> Self {
        Self {
            share,
            #[cfg(test)]
            expired: std::sync::Mutex::default(),
        }
    }

    /// Waits for a reply for up to this time.
    pub(crate) fn receive<T>(
        &self,
        reply: &Receiver<T>,
        at_most: Duration,
    ) -> Result<T, RecvTimeoutError> {
        reply.recv_timeout(at_most).inspect_err(|error| {
            if *error == RecvTimeoutError::Timeout {
                self.note_expired(at_most);
            }
        })
    }

    #[cfg(test)]
    fn note_expired(&self, at_most: Duration) {
        crate::exclusion::lock(&self.expired).push(at_most);
    }

    #[cfg(not(test))]
    fn note_expired(&self, _at_most: Duration) {}

    /// Returns the waits that ended without a reply since the last call.
    #[cfg(test)]
    pub(crate) fn take_expired(&self) -> Vec<Duration> {
        core::mem::take(&mut crate::exclusion::lock(&self.expired))
    }
}
