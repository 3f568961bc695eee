//! Limit of the rate of log entries that other nodes cause.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum interval between entries of the log about requests that cannot be read.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// Limit of the rate of log entries that a peer causes.
#[derive(Default)]
pub(crate) struct LogLimit(Mutex<Option<Instant>>);

impl LogLimit {
    /// Returns true if an entry may be written now. Then returns false for [`LOG_INTERVAL`].
    pub(super) fn try_acquire(&self, now: Instant) -> bool {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = last.is_none_or(|last| now.saturating_duration_since(last) >= LOG_INTERVAL);
        if is_due {
            *last = Some(now);
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_a_minimum_interval() {
        let (limit, now) = (LogLimit::default(), Instant::now());
        assert!(limit.try_acquire(now));
        assert!(!limit.try_acquire(now + LOG_INTERVAL / 2));
        assert!(limit.try_acquire(now + LOG_INTERVAL));
    }
}
