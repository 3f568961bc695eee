//! Limit of how often learned addresses may move to a port, counted by each replica on its own.
//!
//! Each move is announced to every other replica. Two guests that may use any source address could
//! otherwise cause an announcement with every frame, by sending from one address alternately.

/// Number of moves per tick (about 17 ms) in addition to the burst: about 240 per second.
const MOVES_PER_TICK: u32 = 4;
/// Minimum number of moves that a port may receive at once.
const BURST_MIN: u32 = 64;

/// Token bucket of the address moves to one port. The burst is the number of addresses that the
/// port may learn, so that all of them may move at once, as after a failover.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MoveBudget {
    used: u32,
    /// Tick of the last refill of the bucket.
    refilled: u32,
}

impl MoveBudget {
    /// Deducts one move at `tick` from the budget of a port that may learn `learned_max` addresses.
    /// Returns false if the budget is used up.
    pub(crate) fn take(&mut self, tick: u32, learned_max: u32) -> bool {
        let ticks = crate::addresses::age_in_ticks(tick, self.refilled);
        if ticks > 0 || self.used == 0 {
            self.used = self.used.saturating_sub(ticks.saturating_mul(MOVES_PER_TICK));
            self.refilled = tick;
        }
        let is_left = self.used < learned_max.max(BURST_MIN);
        self.used += u32::from(is_left);
        is_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_then_a_few_per_tick() {
        for (learned_max, burst) in [(1024, 1024), (1, BURST_MIN)] {
            let mut budget = MoveBudget::default();
            for start in [u32::MAX - 5, 7_000_000] {
                let count = (0..5000).filter(|_| budget.take(start, learned_max)).count();
                assert_eq!(count, burst as usize);
                for tick in 1..10 {
                    let tick = start.wrapping_add(tick);
                    let count = (0..5000).filter(|_| budget.take(tick, learned_max)).count();
                    assert_eq!(count, MOVES_PER_TICK as usize);
                    // The clock of a worker may be behind that of another.
                    assert!(!budget.take(tick.wrapping_sub(1), learned_max));
                }
            }
        }
    }
}
