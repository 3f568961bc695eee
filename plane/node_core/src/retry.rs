//! Failure state of a port or disk, and the time of its next retry.

use std::time::{Duration, Instant};

/// Time without a failure after which the retry delay starts again from its first value. The
/// longest retry delay is added.
const RESET_AFTER: Duration = Duration::from_secs(60);

/// Reason of a failure and time of the next retry.
#[derive(Clone, Debug)]
pub struct RetryFailure {
    /// Reason of the last failure.
    pub reason: String,
    /// Time of the next retry.
    pub retry_at: Instant,
}

/// Failures of one port or disk.
#[derive(Debug, Default)]
pub struct RetryState {
    /// Current failure; `None` while the object works.
    pub current_failure: Option<RetryFailure>,
    count: u32,
    last: Option<Instant>,
}

impl RetryState {
    /// Records a failure and schedules the retry: after `first`, then after twice the previous
    /// delay, up to 30 times `first`.
    pub fn fail(&mut self, now: Instant, first: Duration, reason: String) {
        let calm = self.last.is_none_or(|last| now.duration_since(last) > RESET_AFTER + first * 30);
        self.count = if calm { 1 } else { self.count.saturating_add(1) };
        self.last = Some(now);
        let factor = 1_u32.checked_shl(self.count - 1).unwrap_or(u32::MAX).min(30);
        self.current_failure = Some(RetryFailure { reason, retry_at: now + first * factor });
    }

    /// Changes the retry time of the current failure, if any.
    pub fn reschedule(&mut self, retry_at: Instant) {
        if let Some(failure) = &mut self.current_failure {
            failure.retry_at = retry_at;
        }
    }

    /// Returns true if the retry time of the current failure has passed.
    pub fn is_due(&self, now: Instant) -> bool {
        self.current_failure.as_ref().is_some_and(|failure| failure.retry_at <= now)
    }
}

#[cfg(test)]
#[path = "retry_tests.rs"]
mod tests;
