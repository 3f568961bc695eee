//! Limits of the time for which the control plane waits for replies of workers.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Maximum time for which the first disk of a store on a second worker waits until the only worker
/// that uses the store so far has moved its scheduling to the shared budget. Other changes of the
/// store are queued meanwhile; leases of the cluster must not expire in that time. Once the time
/// has passed without a reply of that worker, no operation waits for it again before it replies.
pub(crate) const SHARE_WAIT_MAX: Duration = Duration::from_secs(1);

/// Maximum time for which a command waits for a worker that does not respond. The caller may hold
/// the lock of a disk and locks of other crates meanwhile.
pub(crate) const COMMAND_WAIT_MAX: Duration = Duration::from_secs(1);

/// Fraction (one in this number) of a command's wait that is reserved for the reply of a worker
/// that has just taken the command.
const TAKEN_SHARE: u32 = 10;

/// Time within which workers reply that are neither blocked nor overloaded.
const PROMPT: Duration = Duration::from_millis(20);

/// Limits of the time to wait for replies of workers.
pub(crate) struct WaitLimits {
    /// Maximum wait for the scheduler of the only worker that uses a store.
    pub(crate) share_wait_max: Duration,
    /// Maximum wait for the execution of a command.
    pub(crate) command_wait_max: Duration,
    /// Maximum wait for the reply of a worker that has taken a command; part of `command`.
    pub(crate) taken_reply_wait_max: Duration,
    /// Limits of the waits that ended without a reply, oldest first.
    #[cfg(test)]
    expired: std::sync::Mutex<Vec<Duration>>,
}

impl WaitLimits {
    pub(crate) fn new(share: Duration, command: Duration) -> Self {
        Self {
            share_wait_max: share,
            command_wait_max: command,
            taken_reply_wait_max: command / TAKEN_SHARE,
            #[cfg(test)]
            expired: std::sync::Mutex::default(),
        }
    }

    /// Blocks until a reply arrives, for up to `at_most`.
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

    /// Blocks as [`WaitLimits::receive`] does, and calls `on_delay` if there is no reply within
    /// [`PROMPT`].
    pub(crate) fn receive_with_delay_hook<T>(
        &self,
        reply: &Receiver<T>,
        at_most: Duration,
        on_delay: impl FnOnce(),
    ) -> Result<T, RecvTimeoutError> {
        let until = Instant::now() + at_most;
        let mut received = reply.recv_timeout(at_most.min(PROMPT));
        if matches!(received, Err(RecvTimeoutError::Timeout)) {
            on_delay();
            received = reply.recv_timeout(until.saturating_duration_since(Instant::now()));
        }
        received.inspect_err(|error| {
            if *error == RecvTimeoutError::Timeout {
                self.note_expired(at_most);
            }
        })
    }

    #[cfg(test)]
    fn note_expired(&self, at_most: Duration) {
        crate::sync::lock(&self.expired).push(at_most);
    }

    #[cfg(not(test))]
    fn note_expired(&self, _at_most: Duration) {}

    /// Removes and returns the limits of the waits that ended without a reply.
    #[cfg(test)]
    pub(crate) fn take_expired(&self) -> Vec<Duration> {
        core::mem::take(&mut crate::sync::lock(&self.expired))
    }
}
