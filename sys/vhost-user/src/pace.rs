//! How fast a front-end may send messages.
//!
//! A virtual machine with 64 queue pairs sends about a thousand messages when it
//! starts, and a handful a second afterwards. Whoever sends many more is slowed
//! down to [`Pace::PER_SECOND`]: the messages wait in the socket, where only the
//! sender feels it. Whoever goes on for [`Pace::PATIENCE_MS`] is flooding.

/// A budget of messages. Time is an argument, in milliseconds since any moment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    left: u32,
    refilled_ms: u64,
    /// Since when the budget was never full again.
    short_since_ms: Option<u64>,
}

/// What a message may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It may be carried out.
    Now,
    /// It waits so many milliseconds, then is asked for again.
    Wait(u32),
    /// It is one of a flood.
    Flood,
}

impl Pace {
    /// Messages that may come at once.
    pub(crate) const BURST: u32 = 8192;
    /// Messages per second in the long run.
    pub(crate) const PER_SECOND: u32 = 2000;
    /// How long somebody may send as fast as he is let.
    pub(crate) const PATIENCE_MS: u64 = 10_000;
    /// The budget is refilled in steps of so many milliseconds.
    const STEP_MS: u64 = 10;

    pub(crate) const fn new(now_ms: u64) -> Self {
        Self { left: Self::BURST, refilled_ms: now_ms, short_since_ms: None }
    }

    /// Takes one message's worth.
    pub(crate) fn take(&mut self, now_ms: u64) -> Turn {
        let steps = now_ms.saturating_sub(self.refilled_ms) / Self::STEP_MS;
        let per_step = u64::from(Self::PER_SECOND) * Self::STEP_MS / 1000;
        let refill = u32::try_from(steps.saturating_mul(per_step)).unwrap_or(u32::MAX);
        self.left = self.left.saturating_add(refill).min(Self::BURST);
        self.refilled_ms = self.refilled_ms.saturating_add(steps * Self::STEP_MS);
        if self.left >= Self::BURST / 2 {
            self.short_since_ms = None;
        }
        if self.left > 0 {
            self.left -= 1;
            return Turn::Now;
        }
        let since = *self.short_since_ms.get_or_insert(now_ms);
        if now_ms.saturating_sub(since) >= Self::PATIENCE_MS {
            return Turn::Flood;
        }
        Turn::Wait(Self::STEP_MS as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many messages are let through in `ms` by somebody who never stops, and
    /// whether it ended as a flood.
    fn flood(ms: u64) -> (u32, bool) {
        let mut pace = Pace::new(500);
        let (mut now, mut count) = (500, 0);
        while now < 500 + ms {
            match pace.take(now) {
                Turn::Now => count += 1,
                Turn::Wait(wait) => now += u64::from(wait),
                Turn::Flood => return (count, true),
            }
        }
        (count, false)
    }

    #[test]
    fn a_start_is_not_slowed_and_a_flood_is() {
        let (count, ended) = flood(1000);
        assert_eq!((count, ended), (Pace::BURST + 99 * Pace::PER_SECOND / 100, false));
        let (count, ended) = flood(60_000);
        assert!(ended);
        assert_eq!(count, Pace::BURST + 10 * Pace::PER_SECOND);
    }

    #[test]
    fn steady_messages_below_the_rate_go_on_for_ever() {
        let mut pace = Pace::new(0);
        for nth in 0..1_000_000_u64 {
            let now = nth * 1000 / u64::from(Pace::PER_SECOND);
            assert_eq!(pace.take(now), Turn::Now, "message {nth}");
        }
        // A burst after a pause is a start again, and no flood.
        for round in 0..5_u64 {
            let now = 1_000_000 + round * 20_000;
            for _ in 0..Pace::BURST {
                assert_eq!(pace.take(now), Turn::Now);
            }
            assert!(matches!(pace.take(now), Turn::Wait(_)));
        }
    }

    #[test]
    fn a_clock_that_stands_or_jumps_is_no_trouble() {
        let mut pace = Pace::new(u64::MAX - 5);
        assert_eq!(pace.take(u64::MAX), Turn::Now);
        assert_eq!(pace.take(0), Turn::Now);
    }
}
