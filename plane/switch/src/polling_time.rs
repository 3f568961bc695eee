//! Adaptive polling: how long workers poll before they sleep.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use suimon_quantity::Time;

/// Default time to poll after the last work: about the cost of a wake-up for both sides.
const POLL_BUDGET_DEFAULT: Duration = Duration::from_micros(50);

/// Time that a worker polls its rings after the last work before it arms notifications. All workers
/// share one value, which only idle workers read.
pub(crate) struct PollingTime {
    ns: AtomicU64,
}

impl Default for PollingTime {
    fn default() -> Self {
        let polling_time = Self { ns: AtomicU64::new(0) };
        polling_time.set(POLL_BUDGET_DEFAULT);
        polling_time
    }
}

impl PollingTime {
    pub(crate) fn get(&self) -> Duration {
        Duration::from_nanos(self.ns.load(Relaxed))
    }

    pub(crate) fn set(&self, polling_time: Duration) {
        self.ns.store(u64::try_from(polling_time.as_nanos()).unwrap_or(u64::MAX), Relaxed);
    }
}

/// Longest time to poll for completions that are certain to arrive, as a multiple of the time to
/// poll rings.
const COMPLETION_POLL_FACTOR: u32 = 4;

/// Interval at which a worker that polls for completions yields its CPU. Kernel threads on the same
/// CPU may be the ones that produce the completions.
const YIELD_INTERVAL: Duration = Duration::from_micros(4);

/// Longest time from a yield until the worker runs again that does not count as competition for the
/// CPU. Kernel threads that produce completions take about ten microseconds.
const YIELD_COMPETITION_MIN: Duration = Duration::from_micros(500);

/// Length of the pause in polling, as a multiple of the time that the yield took: the other thread
/// then costs at most 2 % of the worker's time. While other threads use the CPU, it does not enter
/// idle states and wake-ups are cheap.
const BACKOFF_FACTOR: u32 = 50;
const BACKOFF_MAX: Duration = Duration::from_secs(1);

/// Adaptive polling of one worker for completions of files and devices. The time to poll is twice
/// the idle time before the last completion for which the worker slept, so that the worker does not
/// sleep for a device that completes soon. For a device slower than the longest time to poll, it
/// decreases to the time for rings. While other threads compete for the CPU, completions are not
/// polled.
#[derive(Debug, Default)]
pub(crate) struct CompletionPolling {
    completion_poll_budget: Duration,
    /// Time at which the worker last ran again after a yield.
    resumed_at: Time,
    backoff_until: Time,
}

impl CompletionPolling {
    /// Returns how long after the last work completions are polled; zero during a pause in polling.
    /// `polling_time`: time to poll rings.
    pub(crate) fn completion_poll_budget(&self, now: Time, polling_time: Duration) -> Duration {
        if now < self.backoff_until { Duration::ZERO } else { self.learned(polling_time) }
    }

    fn learned(&self, polling_time: Duration) -> Duration {
        self.completion_poll_budget.clamp(polling_time, longest(polling_time))
    }

    /// Adapts the time to poll after a sleep with requests in flight. `idle`: time from the last
    /// work to the first completion.
    pub(crate) fn handle_slept(&mut self, idle: Duration, polling_time: Duration) {
        self.completion_poll_budget = if idle <= longest(polling_time) {
            idle.saturating_mul(2).min(longest(polling_time))
        } else {
            self.learned(polling_time) / 2
        };
    }

    /// Returns true if a worker that polls for completions has to yield now.
    pub(crate) fn should_yield(&self, now: Time) -> bool {
        now >= self.backoff_until && now.since(self.resumed_at) >= YIELD_INTERVAL
    }

    /// Records a yield from `yielded_at` to `now`. If it took so long that other threads compete
    /// for the CPU, starts a pause in polling and returns its end.
    pub(crate) fn handle_yield_end(&mut self, yielded_at: Time, now: Time) -> Option<Time> {
        self.resumed_at = now;
        let absence = now.since(yielded_at);
        if absence <= YIELD_COMPETITION_MIN {
            return None;
        }
        self.backoff_until = now + absence.saturating_mul(BACKOFF_FACTOR).min(BACKOFF_MAX);
        Some(self.backoff_until)
    }
}

fn longest(polling_time: Duration) -> Duration {
    polling_time.saturating_mul(COMPLETION_POLL_FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    const POLL_BUDGET: Duration = Duration::from_micros(50);

    fn us(us: u64) -> Duration {
        Duration::from_micros(us)
    }

    const NOW: Time = Time::from_ns(1 << 40);

    #[test]
    fn fast_completions_are_polled_for_and_slow_ones_are_not() {
        let mut polling = CompletionPolling::default();
        let polls_for =
            |polling: &CompletionPolling| polling.completion_poll_budget(NOW, POLL_BUDGET);
        assert_eq!(polls_for(&polling), POLL_BUDGET, "nothing is known");
        polling.handle_slept(us(60), POLL_BUDGET);
        assert_eq!(polls_for(&polling), us(120));
        polling.handle_slept(us(180), POLL_BUDGET);
        assert_eq!(polls_for(&polling), us(200), "not longer than four times");
        // One slow completion halves the time to poll; several reduce it to the minimum.
        polling.handle_slept(us(8000), POLL_BUDGET);
        assert_eq!(polls_for(&polling), us(100));
        polling.handle_slept(us(8000), POLL_BUDGET);
        polling.handle_slept(us(8000), POLL_BUDGET);
        assert_eq!(polls_for(&polling), POLL_BUDGET);
    }

    #[test]
    fn completions_are_not_polled_without_a_poll_budget() {
        let mut polling = CompletionPolling::default();
        polling.handle_slept(us(60), POLL_BUDGET);
        assert_eq!(polling.completion_poll_budget(NOW, Duration::ZERO), Duration::ZERO);
        polling.handle_slept(us(60), Duration::ZERO);
        assert_eq!(polling.completion_poll_budget(NOW, POLL_BUDGET), POLL_BUDGET);
    }

    #[test]
    fn a_short_yield_continues_polling_and_yields_again() {
        let mut polling = CompletionPolling::default();
        assert!(polling.should_yield(NOW));
        let returned_at = NOW + us(60);
        assert_eq!(polling.handle_yield_end(NOW, returned_at), None);
        assert_eq!(polling.completion_poll_budget(returned_at, POLL_BUDGET), POLL_BUDGET);
        assert!(!polling.should_yield(returned_at + us(3)));
        assert!(polling.should_yield(returned_at + us(4)));
    }

    #[test]
    fn a_long_yield_pauses_polling_and_keeps_the_estimate() {
        let mut polling = CompletionPolling::default();
        polling.handle_slept(us(60), POLL_BUDGET);
        let returned_at = NOW + us(3000);
        assert_eq!(polling.handle_yield_end(NOW, returned_at), Some(returned_at + us(150_000)));
        let before = returned_at + us(149_999);
        assert_eq!(polling.completion_poll_budget(before, POLL_BUDGET), Duration::ZERO);
        assert!(!polling.should_yield(before));
        let after = returned_at + us(150_000);
        assert_eq!(polling.completion_poll_budget(after, POLL_BUDGET), us(120));
        assert!(polling.should_yield(after));
        // The pause is bounded even after a long absence, for example when the whole machine was
        // suspended.
        let (yielded_at, returned_at) = (after, after + Duration::from_secs(3600));
        assert_eq!(
            polling.handle_yield_end(yielded_at, returned_at),
            Some(returned_at + BACKOFF_MAX)
        );
        assert!(polling.should_yield(returned_at + BACKOFF_MAX));
    }
}
