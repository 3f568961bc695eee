//! Limits on the costs that a peer causes by connecting, sending or failing repeatedly.
//!
//! No limit reads a clock: time is an argument.

use std::time::{Duration, Instant};

/// Duration below which a connection counts as short and causes a pause before the next one.
const SOON: Duration = Duration::from_secs(1);

/// Pause before the next peer of a device is served. It doubles from 5 ms to 100 ms with each
/// consecutive peer that violated the protocol or disconnected within a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReconnectPause(Duration);

impl ReconnectPause {
    const MIN: Duration = Duration::from_millis(5);
    const MAX: Duration = Duration::from_millis(100);

    /// Records that a connection has ended after `lasted`. `is_violation` is true if its peer
    /// violated the protocol.
    pub fn record_end(&mut self, lasted: Duration, is_violation: bool) {
        self.0 = match is_violation || lasted < SOON {
            true => (self.0 * 2).clamp(Self::MIN, Self::MAX),
            false => Duration::ZERO,
        };
    }

    /// Returns the time until the next peer may be served.
    #[must_use]
    pub const fn duration(self) -> Duration {
        self.0
    }
}

/// Rate limit for log entries that a peer can cause: at most one in [`INTERVAL_MIN`](Self::EVERY).
#[derive(Clone, Copy, Debug, Default)]
pub struct LogRateLimit {
    last: Option<Instant>,
    suppressed: u64,
}

impl LogRateLimit {
    /// Minimum interval between two log entries.
    pub const INTERVAL_MIN: Duration = Duration::from_secs(10);

    /// If a log entry may be written at `now`, returns the number of entries omitted since the last
    /// one. Otherwise counts the entry as omitted and returns `None`.
    pub fn try_log(&mut self, now: Instant) -> Option<u64> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < Self::INTERVAL_MIN) {
            self.suppressed = self.suppressed.saturating_add(1);
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }
}

/// Rate limit for connections that are accepted only to close them: at most [`MAX`](Self::MAX) in
/// [`PERIOD`](Self::PERIOD). Further connections remain in the socket's backlog, which delays only
/// their peers.
#[derive(Clone, Copy, Debug, Default)]
pub struct RejectionRateLimit {
    began: Option<Instant>,
    count: u32,
}

impl RejectionRateLimit {
    /// Maximum number of connections rejected in a period.
    pub const MAX: u32 = 4;
    /// Length of a period of the rate limit.
    pub const PERIOD: Duration = Duration::from_millis(100);

    /// Returns the time until the next connection may be accepted; zero if one may be accepted now.
    #[must_use]
    pub fn delay(&self, now: Instant) -> Duration {
        match self.began {
            Some(period_start) if self.count >= Self::MAX => {
                (period_start + Self::PERIOD).saturating_duration_since(now)
            }
            _ => Duration::ZERO,
        }
    }

    /// Records a connection that was rejected by closing it.
    pub fn record(&mut self, now: Instant) {
        let is_over =
            |period_start: Instant| now.saturating_duration_since(period_start) >= Self::PERIOD;
        if self.began.is_none_or(is_over) {
            (self.began, self.count) = (Some(now), 0);
        }
        self.count = self.count.saturating_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_that_leave_soon_are_followed_by_pauses_and_one_that_stays_ends_them() {
        let mut pause = ReconnectPause::default();
        let mut next = |lasted, is_violation| {
            pause.record_end(lasted, is_violation);
            pause.duration().as_millis()
        };
        let short = Duration::from_millis(999);
        let pauses: Vec<_> = (0..7).map(|index| next(short, index % 2 == 0)).collect();
        assert_eq!(pauses, [5, 10, 20, 40, 80, 100, 100]);
        assert_eq!(next(SOON, false), 0);
        assert_eq!(next(SOON, true), 5);
    }

    #[test]
    fn lines_are_left_out_and_counted() {
        let (mut pace, start) = (LogRateLimit::default(), Instant::now());
        assert_eq!(pace.try_log(start), Some(0));
        assert!((0..2000).all(|ms| pace.try_log(start + Duration::from_millis(ms)).is_none()));
        assert_eq!(pace.try_log(start + LogRateLimit::INTERVAL_MIN), Some(2000));
        assert_eq!(pace.try_log(start + 3 * LogRateLimit::INTERVAL_MIN), Some(0));
    }

    #[test]
    fn connections_are_closed_a_few_at_a_time() {
        let (mut pace, start) = (RejectionRateLimit::default(), Instant::now());
        let mut now = start;
        for _ in 0..40 {
            now += pace.delay(now);
            pace.record(now);
        }
        assert_eq!(now - start, 9 * RejectionRateLimit::PERIOD);
        assert_eq!(pace.delay(now + RejectionRateLimit::PERIOD), Duration::ZERO);
    }
}
