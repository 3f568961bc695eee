//! Budget that limits moves of queues because of load.

use core::time::Duration;

use suimon_quantity::Time;

use crate::thresholds::{MOVE_BURST_MIN, MOVE_BURST_PER_QUEUE, MOVE_INTERVAL};

/// Token bucket of moves, stored as a duration: one move costs [`MOVE_INTERVAL`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct MoveBudget {
    saved: Duration,
    updated_at: Time,
    saved_max: Duration,
}

impl MoveBudget {
    /// Creates a full budget; its maximum depends on the number of queues.
    pub(crate) fn full(queues: usize, now: Time) -> Self {
        let saved_max = saved_max(queues);
        Self { saved: saved_max, updated_at: now, saved_max }
    }

    /// Adapts the maximum of the budget to the number of queues. A new queue adds its share at
    /// once.
    pub(crate) fn resize(&mut self, queues: usize, now: Time) {
        self.save(now);
        let saved_max = saved_max(queues);
        self.saved = (self.saved + saved_max.saturating_sub(self.saved_max)).min(saved_max);
        self.saved_max = saved_max;
    }

    /// Deducts `moves` from the budget. Returns false, without deducting, if fewer are available.
    pub(crate) fn take(&mut self, moves: u32, now: Time) -> bool {
        self.save(now);
        match self.saved.checked_sub(MOVE_INTERVAL.saturating_mul(moves)) {
            Some(remaining) => {
                self.saved = remaining;
                true
            }
            None => false,
        }
    }

    /// Returns when `moves` will be available if none are deducted before; [`Time::NEVER`] if they
    /// exceed the maximum.
    pub(crate) fn ready_at(&self, moves: u32, now: Time) -> Time {
        let due = MOVE_INTERVAL.saturating_mul(moves);
        if due > self.saved_max {
            return Time::NEVER;
        }
        now.max(self.updated_at + due.saturating_sub(self.saved))
    }

    fn save(&mut self, now: Time) {
        self.saved = self.saved.saturating_add(now.since(self.updated_at)).min(self.saved_max);
        self.updated_at = self.updated_at.max(now);
    }
}

fn saved_max(queues: usize) -> Duration {
    let queues = u32::try_from(queues).unwrap_or(u32::MAX);
    MOVE_INTERVAL.saturating_mul(queues.saturating_mul(MOVE_BURST_PER_QUEUE).max(MOVE_BURST_MIN))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_move_a_minute_after_the_saved_ones() {
        let start = Time::from_ns(5);
        let mut allowance = MoveBudget::full(3, start);
        assert!(allowance.take(18, start));
        assert!(!allowance.take(1, start + (MOVE_INTERVAL - Duration::from_nanos(1))));
        assert_eq!(allowance.ready_at(1, start), start + MOVE_INTERVAL);
        assert!(allowance.take(1, start + MOVE_INTERVAL));
        let year = start + Duration::from_secs(31_536_000);
        assert!(!allowance.take(19, year));
        assert_eq!(allowance.ready_at(19, year), Time::NEVER);
        assert!(allowance.take(18, year));
        // A clock that goes backwards adds nothing.
        assert!(!allowance.take(1, start));
        assert!(!allowance.take(1, year));
        allowance.resize(4, year);
        assert!(allowance.take(6, year) && !allowance.take(1, year));
    }
}
