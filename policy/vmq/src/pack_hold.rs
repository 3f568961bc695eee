//! Adaptive hold before a worker is emptied.

use core::time::Duration;

use suimon_quantity::Time;

use crate::thresholds::{
    FORGET, HOLD_MAX, HOLD_MIN, HOLD_STEP, HOLD_STEPS, MOVE_EVERY, REGRET_MIN,
};

/// Recent emptying of workers that may turn out wrong.
#[derive(Clone, Copy, Debug)]
struct Packed {
    at: Time,
    /// Start of the period of low load.
    low_since: Time,
    moves: u32,
}

/// The hold grows if queues had to be shed so soon after packing that such moves would exceed one
/// per minute: at first by small steps, then beyond the duration of the low load. It shrinks after
/// a long time without such moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PackHold {
    hold: Duration,
    /// Number of increases of the hold that time has not undone.
    regrets: u32,
    packed: Option<Packed>,
    changed_at: Time,
}

impl PackHold {
    pub(crate) const fn new(now: Time) -> Self {
        Self { hold: HOLD_MIN, regrets: 0, packed: None, changed_at: now }
    }

    pub(crate) const fn hold(&self) -> Duration {
        self.hold
    }

    /// Records that workers were emptied with this number of moves; the load was low since
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

    /// Records that queues were shed. Only the first time after packing counts.
    pub(crate) fn handle_shed(&mut self, now: Time) {
        let Some(packed) = self.packed.take() else { return };
        if now.since(packed.at) > wrong_within(packed.moves) {
            return;
        }
        self.regrets = self.regrets.saturating_add(1);
        self.hold = if self.regrets <= HOLD_STEPS {
            HOLD_MIN + HOLD_STEP * self.regrets
        } else {
            let low = now.since(packed.low_since).min(HOLD_MAX);
            (self.hold * 2).max(low + low / 4).min(HOLD_MAX)
        };
        self.changed_at = now;
    }

    /// Halves a grown hold if [`FORGET`] has passed since its last change.
    pub(crate) fn handle_time(&mut self, now: Time) {
        let is_grown = self.regrets > 0 || self.hold > HOLD_MIN;
        if is_grown && now.since(self.changed_at) >= FORGET {
            self.hold = (self.hold / 2).max(HOLD_MIN);
            // One more wrong decision then restores the previous hold.
            self.regrets = self.regrets.min(HOLD_STEPS + 1).saturating_sub(1);
            self.changed_at = now;
        }
    }
}

/// Returns the time after packing within which shedding makes it a wrong decision.
fn wrong_within(moves: u32) -> Duration {
    MOVE_EVERY.saturating_mul(moves.saturating_mul(2)).max(REGRET_MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    /// Simulates low load for a time and then high load.
    fn regrets(patience: &mut PackHold, low: Duration, now: Time) -> Time {
        let hold = patience.hold();
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
        let mut patience = PackHold::new(now);
        for hold in [seconds(6), seconds(8), seconds(50)] {
            now = regrets(&mut patience, seconds(40), now);
            assert_eq!(patience.hold(), hold);
        }
        patience.handle_time(now + (FORGET - seconds(1)));
        assert_eq!(patience.hold(), seconds(50));
        for hold in [seconds(25), seconds(25) / 2, seconds(25) / 4, seconds(4), seconds(4)] {
            now = now + FORGET;
            patience.handle_time(now);
            assert_eq!(patience.hold(), hold);
        }
    }

    #[test]
    fn moves_to_and_fro_that_are_less_than_one_a_minute_are_no_mistake() {
        let now = Time::from_ns(1);
        let mut patience = PackHold::new(now);
        patience.handle_packed(3, now, now);
        patience.handle_shed(now + seconds(361));
        assert_eq!(patience.hold(), HOLD_MIN);
        patience.handle_packed(3, now, now);
        patience.handle_shed(now + seconds(360));
        assert!(patience.hold() > HOLD_MIN);
    }
}
