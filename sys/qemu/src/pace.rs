//! Rate limit for events of one VM.

use std::time::{Duration, Instant};

/// Events permitted in a burst.
const AT_ONCE: u32 = 200;
/// Interval between events beyond the burst.
const PAUSE: Duration = Duration::from_millis(20);

/// Token bucket for events. A QEMU process under a guest's control can send events without end, and
/// the observer stores each.
#[derive(Debug)]
pub(crate) struct Pace {
    left: u32,
    since: Instant,
}

impl Pace {
    pub(crate) fn new(now: Instant) -> Self {
        Self { left: AT_ONCE, since: now }
    }

    /// Counts an event. Returns the time for which the caller must stop reading.
    pub(crate) fn count(&mut self, now: Instant) -> Duration {
        let passed = now.saturating_duration_since(self.since);
        let back = u32::try_from(passed.as_millis() / PAUSE.as_millis()).unwrap_or(AT_ONCE);
        if back > 0 {
            self.left = self.left.saturating_add(back).min(AT_ONCE);
            self.since = now;
        }
        if self.left == 0 {
            return PAUSE;
        }
        self.left -= 1;
        Duration::ZERO
    }
}

#[cfg(test)]
mod tests {
    use super::{AT_ONCE, PAUSE, Pace};
    use std::time::{Duration, Instant};

    #[test]
    fn a_flood_is_heard_at_its_pace() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        for _ in 0..AT_ONCE {
            assert_eq!(pace.count(start), Duration::ZERO);
        }
        assert_eq!(pace.count(start), PAUSE);
        assert_eq!(pace.count(start + PAUSE), Duration::ZERO);
        assert_eq!(pace.count(start + PAUSE), PAUSE);
        assert_eq!(pace.count(start + Duration::from_secs(60)), Duration::ZERO);
    }
}
