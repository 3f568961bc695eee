//! How long processors poll before they sleep.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use suimon_quantity::Time;

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

/// So often who polls for answers gives way to others that wait for its CPU: threads of the
/// kernel on this very CPU may be those that bring the answers.
const GIVES_WAY_EVERY: Duration = Duration::from_micros(4);

/// Who has its CPU back later than that shares it with somebody who wants all of it. Threads
/// that bring answers take some ten microseconds.
const AWAY_MAX: Duration = Duration::from_micros(500);

/// Then it does not poll for so many times as long as it was away: so that costs it two
/// hundredths of its time. Beside others its CPU does not fall asleep, and waking is cheap.
const RESTS_TIMES: u32 = 50;
const RESTS_MAX: Duration = Duration::from_secs(1);

/// How long one processor polls for answers of files and devices: as long as they took when it
/// last slept before they came, and then some. A device that answers soon is not slept for; one
/// that takes longer than the longest polling is not polled for longer than rings are. Beside
/// somebody who wants its CPU, none is polled for.
#[derive(Debug, Default)]
pub(crate) struct Polling {
    for_answers: Duration,
    /// When it last gave way and had its CPU back.
    was_back: Time,
    rests_until: Time,
}

impl Polling {
    /// How long after the last work answers are polled for, where rings are for `patience`.
    pub(crate) fn for_answers(&self, now: Time, patience: Duration) -> Duration {
        if now < self.rests_until { Duration::ZERO } else { self.learned(patience) }
    }

    fn learned(&self, patience: Duration) -> Duration {
        self.for_answers.clamp(patience, longest(patience))
    }

    /// The processor slept while answers were to come, and had one so long after its last work.
    pub(crate) fn handle_slept(&mut self, idle: Duration, patience: Duration) {
        self.for_answers = if idle <= longest(patience) {
            idle.saturating_mul(2).min(longest(patience))
        } else {
            self.learned(patience) / 2
        };
    }

    /// Whether who polls for answers is to give way now.
    pub(crate) fn is_to_give_way(&self, now: Time) -> bool {
        now >= self.rests_until && now.since(self.was_back) >= GIVES_WAY_EVERY
    }

    /// It gave way at `gone`, and has its CPU back. Until when it rests, if it is not alone there.
    pub(crate) fn handle_back(&mut self, gone: Time, now: Time) -> Option<Time> {
        self.was_back = now;
        let away = now.since(gone);
        if away <= AWAY_MAX {
            return None;
        }
        self.rests_until = now + away.saturating_mul(RESTS_TIMES).min(RESTS_MAX);
        Some(self.rests_until)
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

    const NOW: Time = Time::from_ns(1 << 40);

    #[test]
    fn answers_that_come_soon_are_polled_for_and_those_that_do_not_are_not() {
        let mut polling = Polling::default();
        let polls_for = |polling: &Polling| polling.for_answers(NOW, PATIENCE);
        assert_eq!(polls_for(&polling), PATIENCE, "nothing is known");
        polling.handle_slept(us(60), PATIENCE);
        assert_eq!(polls_for(&polling), us(120));
        polling.handle_slept(us(180), PATIENCE);
        assert_eq!(polls_for(&polling), us(200), "not longer than four times");
        // One that takes long costs some of it, and they all of it.
        polling.handle_slept(us(8000), PATIENCE);
        assert_eq!(polls_for(&polling), us(100));
        polling.handle_slept(us(8000), PATIENCE);
        polling.handle_slept(us(8000), PATIENCE);
        assert_eq!(polls_for(&polling), PATIENCE);
    }

    #[test]
    fn who_does_not_poll_does_not_poll_for_answers() {
        let mut polling = Polling::default();
        polling.handle_slept(us(60), PATIENCE);
        assert_eq!(polling.for_answers(NOW, Duration::ZERO), Duration::ZERO);
        polling.handle_slept(us(60), Duration::ZERO);
        assert_eq!(polling.for_answers(NOW, PATIENCE), PATIENCE);
    }

    #[test]
    fn who_is_back_soon_goes_on_polling_and_gives_way_again() {
        let mut polling = Polling::default();
        assert!(polling.is_to_give_way(NOW));
        let back = NOW + us(60);
        assert_eq!(polling.handle_back(NOW, back), None);
        assert_eq!(polling.for_answers(back, PATIENCE), PATIENCE);
        assert!(!polling.is_to_give_way(back + us(3)));
        assert!(polling.is_to_give_way(back + us(4)));
    }

    #[test]
    fn who_is_back_late_rests_and_remembers_what_it_learned() {
        let mut polling = Polling::default();
        polling.handle_slept(us(60), PATIENCE);
        let back = NOW + us(3000);
        assert_eq!(polling.handle_back(NOW, back), Some(back + us(150_000)));
        let before = back + us(149_999);
        assert_eq!(polling.for_answers(before, PATIENCE), Duration::ZERO);
        assert!(!polling.is_to_give_way(before));
        let after = back + us(150_000);
        assert_eq!(polling.for_answers(after, PATIENCE), us(120));
        assert!(polling.is_to_give_way(after));
        // However long it was away: it stood still, perhaps, with the whole machine.
        let (gone, back) = (after, after + Duration::from_secs(3600));
        assert_eq!(polling.handle_back(gone, back), Some(back + RESTS_MAX));
        assert!(polling.is_to_give_way(back + RESTS_MAX));
    }
}
