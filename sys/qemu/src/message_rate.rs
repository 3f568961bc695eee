//! Rate limits for messages on the monitor of one VM.

use std::time::{Duration, Instant};

/// Interval at which tokens are added to a bucket.
const PAUSE: Duration = Duration::from_millis(20);

/// Token bucket that limits the messages of a QEMU process, which a guest may control.
#[derive(Debug)]
pub(crate) struct MessageRateLimiter {
    /// Capacity of the bucket in units.
    at_once: u32,
    /// Units added per [`PAUSE`].
    per_pause: u32,
    remaining: u32,
    since: Instant,
}

impl MessageRateLimiter {
    /// Returns the limit of events, and of replies to no command: a burst of 200, then 50 per
    /// second. Observers may store each event.
    pub(crate) fn for_events(now: Instant) -> Self {
        Self::new(200, 1, now)
    }

    /// Returns the limit of received bytes: a burst of 4 MiB, which exceeds the longest line, then
    /// 1 MiB per second. It bounds the CPU time for parsing, which is not accounted to the VM.
    pub(crate) fn for_bytes(now: Instant) -> Self {
        Self::new(4 << 20, 21_000, now)
    }

    const fn new(at_once: u32, per_pause: u32, now: Instant) -> Self {
        Self { at_once, per_pause, remaining: at_once, since: now }
    }

    /// Removes `units` tokens. Returns the time for which the caller must stop reading; zero if
    /// there were enough.
    pub(crate) fn consume(&mut self, units: u32, now: Instant) -> Duration {
        let elapsed = now.saturating_duration_since(self.since);
        let pauses = u32::try_from(elapsed.as_millis() / PAUSE.as_millis()).unwrap_or(u32::MAX);
        if pauses > 0 {
            let refill = pauses.saturating_mul(self.per_pause);
            self.remaining = self.remaining.saturating_add(refill).min(self.at_once);
            self.since = now;
        }
        if self.remaining >= units {
            self.remaining -= units;
            return Duration::ZERO;
        }
        let missing = (units - self.remaining).div_ceil(self.per_pause);
        self.remaining = 0;
        PAUSE * missing
    }
}

#[cfg(test)]
mod tests {
    use super::{MessageRateLimiter, PAUSE};
    use std::time::{Duration, Instant};

    #[test]
    fn a_flood_is_received_at_the_limited_rate() {
        let start = Instant::now();
        let mut pace = MessageRateLimiter::for_events(start);
        for _ in 0..200 {
            assert_eq!(pace.consume(1, start), Duration::ZERO);
        }
        assert_eq!(pace.consume(1, start), PAUSE);
        assert_eq!(pace.consume(1, start + PAUSE), Duration::ZERO);
        assert_eq!(pace.consume(1, start + PAUSE), PAUSE);
        assert_eq!(pace.consume(1, start + Duration::from_secs(60)), Duration::ZERO);
    }

    #[test]
    fn the_pause_depends_on_the_number_of_bytes() {
        let start = Instant::now();
        let mut pace = MessageRateLimiter::for_bytes(start);
        assert_eq!(pace.consume(4 << 20, start), Duration::ZERO);
        assert_eq!(pace.consume(1, start), PAUSE);
        assert_eq!(pace.consume(64 << 10, start), 4 * PAUSE);
        assert_eq!(pace.consume(u32::MAX, start + Duration::MAX / 4), 204_323 * PAUSE);
    }
}
