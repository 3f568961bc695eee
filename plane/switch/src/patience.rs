//! How long processors poll before they sleep.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// About what a wake-up costs both sides.
const PATIENCE_DEFAULT: Duration = Duration::from_micros(50);

/// A processor polls its rings this long after the last work before it arms notifications.
/// All processors share one, which only those read that have nothing to do.
pub(crate) struct Patience {
    ns: AtomicU64,
}

impl Default for Patience {
    fn default() -> Self {
        let patience = Self { ns: AtomicU64::new(0) };
        patience.set(PATIENCE_DEFAULT);
        patience
    }
}

impl Patience {
    pub(crate) fn get(&self) -> Duration {
        Duration::from_nanos(self.ns.load(Relaxed))
    }

    pub(crate) fn set(&self, patience: Duration) {
        self.ns.store(u64::try_from(patience.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }
}

/// Answers that are sure to come may be polled for so many times as long.
const ANSWERS_TIMES: u32 = 4;

/// How long one processor polls for answers of files and devices: as long as they took when it
/// last slept before they came, and then some. A device that answers soon is not slept for; one
/// that takes longer than the longest polling is not polled for longer than rings are.
#[derive(Debug, Default)]
pub(crate) struct Polling {
    for_answers: Duration,
}

impl Polling {
    /// How long after the last work answers are polled for, where rings are for `patience`.
    pub(crate) fn for_answers(&self, patience: Duration) -> Duration {
        self.for_answers.clamp(patience, longest(patience))
    }

    /// The processor slept while answers were to come, and woke so long after its last work.
    pub(crate) fn handle_slept(&mut self, idle: Duration, patience: Duration) {
        self.for_answers = if idle <= longest(patience) {
            idle.saturating_mul(2).min(longest(patience))
        } else {
            self.for_answers(patience) / 2
        };
    }
}

fn longest(patience: Duration) -> Duration {
    patience.saturating_mul(ANSWERS_TIMES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENCE: Duration = Duration::from_micros(50);

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    #[test]
    fn answers_that_come_soon_are_polled_for_and_those_that_do_not_are_not() {
        let mut polling = Polling::default();
        assert_eq!(polling.for_answers(PATIENCE), PATIENCE, "nothing is known");
        polling.handle_slept(us(60), PATIENCE);
        assert_eq!(polling.for_answers(PATIENCE), us(120));
        polling.handle_slept(us(180), PATIENCE);
        assert_eq!(polling.for_answers(PATIENCE), us(200), "not longer than four times");
        // One that takes long costs some of it, and they all of it.
        polling.handle_slept(us(8000), PATIENCE);
        assert_eq!(polling.for_answers(PATIENCE), us(100));
        polling.handle_slept(us(8000), PATIENCE);
        polling.handle_slept(us(8000), PATIENCE);
        assert_eq!(polling.for_answers(PATIENCE), PATIENCE);
    }

    #[test]
    fn who_does_not_poll_does_not_poll_for_answers() {
        let mut polling = Polling::default();
        polling.handle_slept(us(60), PATIENCE);
        assert_eq!(polling.for_answers(Duration::ZERO), Duration::ZERO);
        polling.handle_slept(us(60), Duration::ZERO);
        assert_eq!(polling.for_answers(PATIENCE), PATIENCE);
    }
}
