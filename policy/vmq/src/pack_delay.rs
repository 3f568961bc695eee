//! Adaptive delay before an under-used worker is emptied (packing).

use core::time::Duration;

use suimon_quantity::Time;

use crate::thresholds::{
    BACKOFF_RESET_AFTER, MOVE_INTERVAL, PACK_DELAY_MAX, PACK_DELAY_MIN, PACK_DELAY_STEP,
    PACK_DELAY_STEPS, WRONG_PACK_WINDOW_MIN,
};

/// Recent emptying of workers, which is a wrong decision if queues must be shed soon.
#[derive(Clone, Copy, Debug)]
struct Packed {
    at: Time,
    /// Time since which the emptied workers were under-used.
    low_since: Time,
    moves: u32,
}

/// Time for which a worker must be under-used before it is emptied.
///
/// The delay grows if queues had to be shed so soon after packing that such moves would exceed one
/// per minute: at first by small steps, then beyond the duration of the low load. It shrinks after
/// a long time without such moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackDelay {
    delay: Duration,
    /// Number of increases of the delay that [`PackDelay::handle_time`] has not undone.
    wrong_decisions: u32,
    packed: Option<Packed>,
    changed_at: Time,
}

impl PackDelay {
    pub(crate) const fn new(now: Time) -> Self {
        Self { delay: PACK_DELAY_MIN, wrong_decisions: 0, packed: None, changed_at: now }
    }

    pub(crate) const fn delay(&self) -> Duration {
        self.delay
    }

    /// Records that workers were emptied with this number of moves. They had been under-used since
    /// `low_since`.
    pub(crate) fn handle_packed(&mut self, moves: usize, low_since: Time, now: Time) {
        let before =
            self.packed.filter(|before| now.since(before.at) <= wrong_within(before.moves));
        let moves = u32::try_from(moves).unwrap_or(u32::MAX);
        self.packed = Some(Packed {
            at: now,
            low_since: before.map_or(low_since, |before| before.low_since),
            moves: before.map_or(0, |before| before.moves).saturating_add(moves),
        });
    }

    /// Records that queues were shed. If workers were emptied shortly before, that was a wrong
    /// decision, which increases the delay once.
    pub(crate) fn handle_shed(&mut self, now: Time) {
        let Some(packed) = self.packed.take() else { return };
        if now.since(packed.at) > wrong_within(packed.moves) {
            return;
        }
        self.wrong_decisions = self.wrong_decisions.saturating_add(1);
        self.delay = if self.wrong_decisions <= PACK_DELAY_STEPS {
            PACK_DELAY_MIN + PACK_DELAY_STEP * self.wrong_decisions
        } else {
            let low = now.since(packed.low_since).min(PACK_DELAY_MAX);
            (self.delay * 2).max(low + low / 4).min(PACK_DELAY_MAX)
        };
        self.changed_at = now;
    }

    /// Halves an increased delay if [`BACKOFF_RESET_AFTER`] has passed since its last change.
    pub(crate) fn handle_time(&mut self, now: Time) {
        let is_grown = self.wrong_decisions > 0 || self.delay > PACK_DELAY_MIN;
        if is_grown && now.since(self.changed_at) >= BACKOFF_RESET_AFTER {
            self.delay = (self.delay / 2).max(PACK_DELAY_MIN);
            // One more wrong decision then restores the previous hold.
            self.wrong_decisions = self.wrong_decisions.min(PACK_DELAY_STEPS + 1).saturating_sub(1);
            self.changed_at = now;
        }
    }
}

/// Returns the time after packing with `moves` moves within which shedding makes it a wrong
/// decision.
fn wrong_within(moves: u32) -> Duration {
    MOVE_INTERVAL.saturating_mul(moves.saturating_mul(2)).max(WRONG_PACK_WINDOW_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Simulates a low load for the duration `low` and then a high load. Returns the time
    /// afterwards.
    fn regrets(patience: &mut PackDelay, low: Duration, now: Time) -> Time {
        let hold = patience.delay();
        assert!(hold < low, "nothing is packed");
        patience.handle_packed(3, now, now + hold);
        let now = now + low;
        patience.handle_shed(now);
        patience.handle_shed(now);
        now
    }

    #[test]
    fn the_hold_outgrows_times_of_low_load_and_is_forgotten_slowly() {
        let mut now = Time::from_ns(1);
        let mut patience = PackDelay::new(now);
        for hold in [seconds(6), seconds(8), seconds(50)] {
            now = regrets(&mut patience, seconds(40), now);
            assert_eq!(patience.delay(), hold);
        }
        patience.handle_time(now + (BACKOFF_RESET_AFTER - seconds(1)));
        assert_eq!(patience.delay(), seconds(50));
        for hold in [seconds(25), seconds(25) / 2, seconds(25) / 4, seconds(4), seconds(4)] {
            now = now + BACKOFF_RESET_AFTER;
            patience.handle_time(now);
            assert_eq!(patience.delay(), hold);
        }
    }

    #[test]
    fn fewer_than_one_returning_move_a_minute_is_no_wrong_decision() {
        let now = Time::from_ns(1);
        let mut patience = PackDelay::new(now);
        patience.handle_packed(3, now, now);
        patience.handle_shed(now + seconds(361));
        assert_eq!(patience.delay(), PACK_DELAY_MIN);
        patience.handle_packed(3, now, now);
        patience.handle_shed(now + seconds(360));
        assert!(patience.delay() > PACK_DELAY_MIN);
    }
}
