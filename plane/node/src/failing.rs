//! What does not work, and when it is tried again.

use std::time::{Duration, Instant};

/// A failure after this long without one counts as the first again.
const CALM: Duration = Duration::from_secs(60);

/// Why something is not as desired, and when to try again.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) reason: String,
    pub(crate) retry_at: Instant,
}

/// The failures of one port or disk.
#[derive(Debug, Default)]
pub(crate) struct Failing {
    /// The present one.
    pub(crate) now: Option<Failure>,
    count: u32,
    last: Option<Instant>,
}

impl Failing {
    /// Notes a failure and when to try again: after `first`, then twice as long
    /// each time, 30 times `first` at most.
    pub(crate) fn fail(&mut self, now: Instant, first: Duration, reason: String) {
        let calm = self.last.is_none_or(|at| now.duration_since(at) > CALM + first * 30);
        self.count = if calm { 1 } else { self.count.saturating_add(1) };
        self.last = Some(now);
        let factor = 1_u32.checked_shl(self.count - 1).unwrap_or(u32::MAX).min(30);
        self.now = Some(Failure { reason, retry_at: now + first * factor });
    }

    /// Sets the time of the next attempt of the present failure, if there is one.
    pub(crate) fn reschedule(&mut self, retry_at: Instant) {
        if let Some(failure) = &mut self.now {
            failure.retry_at = retry_at;
        }
    }

    /// Whether it is to be tried again.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.now.as_ref().is_some_and(|failure| failure.retry_at <= now)
    }
}

#[cfg(test)]
#[path = "failing_tests.rs"]
mod tests;
