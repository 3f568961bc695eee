//! Rate limits for a front-end's messages, and for the rings that they stop.
//!
//! A VM with 64 queue pairs sends about a thousand messages when it starts, and few per second
//! afterwards. A front-end that exceeds the budget is limited to [`MessageRateLimit::PER_SECOND`]:
//! further messages stay in the socket, where they only delay the sender. One that exceeds it for
//! [`MessageRateLimit::FLOOD_AFTER_MS`] is disconnected.

/// Token bucket for messages of a front-end. Times are in milliseconds since an arbitrary epoch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageRateLimit {
    remaining: u32,
    refilled_ms: u64,
    /// Time of the first delayed message since the bucket was at least half full.
    short_since_ms: Option<u64>,
}

/// Decision of the rate limit for a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// The message may be executed now.
    Now,
    /// The caller must wait for this number of milliseconds, then call again.
    Wait(u32),
    /// The caller must disconnect the front-end, which has exceeded the rate for too long.
    Disconnect,
}

impl MessageRateLimit {
    /// Capacity of the bucket in messages.
    pub(crate) const BURST: u32 = 8192;
    /// Rate of refill in messages per second.
    pub(crate) const PER_SECOND: u32 = 2000;
    /// Time in milliseconds for which a front-end may exceed the rate before it is disconnected.
    pub(crate) const FLOOD_AFTER_MS: u64 = 10_000;
    /// Interval in milliseconds at which the bucket is refilled.
    const STEP_MS: u64 = 10;

    pub(crate) const fn new(now_ms: u64) -> Self {
        Self { remaining: Self::BURST, refilled_ms: now_ms, short_since_ms: None }
    }

    /// Removes one token for a message, if there is one, and returns the decision.
    pub(crate) fn take(&mut self, now_ms: u64) -> Decision {
        let steps = now_ms.saturating_sub(self.refilled_ms) / Self::STEP_MS;
        let per_step = u64::from(Self::PER_SECOND) * Self::STEP_MS / 1000;
        let refill = u32::try_from(steps.saturating_mul(per_step)).unwrap_or(u32::MAX);
        self.remaining = self.remaining.saturating_add(refill).min(Self::BURST);
        self.refilled_ms = self.refilled_ms.saturating_add(steps * Self::STEP_MS);
        if self.remaining >= Self::BURST / 2 {
            self.short_since_ms = None;
        }
        if self.remaining > 0 {
            self.remaining -= 1;
            return Decision::Now;
        }
        let short_since = *self.short_since_ms.get_or_insert(now_ms);
        if now_ms.saturating_sub(short_since) >= Self::FLOOD_AFTER_MS {
            return Decision::Disconnect;
        }
        Decision::Wait(Self::STEP_MS as u32)
    }
}

/// Token bucket for rings of a NIC that front-ends stop, restart or change. Times are in
/// milliseconds since an arbitrary epoch.
///
/// Each such ring costs every worker of the switch some time, because the tables of queues are
/// published again. A front-end that exceeds the budget is delayed: its messages stay in the
/// socket.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RingRateLimit {
    /// Number of tokens; negative after a request for more rings than there were tokens.
    remaining: i64,
    refilled_ms: u64,
}

impl RingRateLimit {
    /// Capacity of the bucket in rings: eight restarts of a NIC with 64 queue pairs.
    pub(crate) const BURST: i64 = 1024;
    /// Rate of refill in rings per second.
    pub(crate) const PER_SECOND: i64 = 200;
    /// Interval in milliseconds at which one token is added.
    const STEP_MS: u64 = 1000 / Self::PER_SECOND as u64;

    pub(crate) const fn new(now_ms: u64) -> Self {
        Self { remaining: Self::BURST, refilled_ms: now_ms }
    }

    /// Removes a token per ring, if there is at least one token; the number may become negative.
    ///
    /// # Errors
    /// The number of milliseconds to wait before the next attempt; no token was removed.
    pub(crate) fn take(&mut self, now_ms: u64, rings: usize) -> Result<(), u64> {
        let steps = now_ms.saturating_sub(self.refilled_ms) / Self::STEP_MS;
        let refill = i64::try_from(steps).unwrap_or(i64::MAX);
        self.remaining = self.remaining.saturating_add(refill).min(Self::BURST);
        self.refilled_ms = self.refilled_ms.saturating_add(steps.saturating_mul(Self::STEP_MS));
        if self.remaining <= 0 {
            return Err(self
                .remaining
                .unsigned_abs()
                .saturating_add(1)
                .saturating_mul(Self::STEP_MS));
        }
        self.remaining = self.remaining.saturating_sub(i64::try_from(rings).unwrap_or(i64::MAX));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rings_pass_in_a_burst_and_then_at_the_rate() {
        for rings in [1, 7, 128] {
            let mut pace = RingRateLimit::new(500);
            let (mut now, mut count) = (500, 0);
            while now < 10_500 {
                match pace.take(now, rings) {
                    Ok(()) => count += rings as i64,
                    Err(wait) => now += wait,
                }
            }
            let max = RingRateLimit::BURST + 10 * RingRateLimit::PER_SECOND;
            assert!((max - 1..max + rings as i64).contains(&count), "{count} of {max}");
        }
        let mut pace = RingRateLimit::new(u64::MAX - 5);
        assert_eq!(pace.take(u64::MAX, 1), Ok(()));
        assert_eq!(pace.take(0, 1), Ok(()));
    }

    /// Returns the number of messages accepted within `ms` milliseconds from a sender that never
    /// pauses, and whether it was disconnected.
    fn flood(ms: u64) -> (u32, bool) {
        let mut pace = MessageRateLimit::new(500);
        let (mut now, mut count) = (500, 0);
        while now < 500 + ms {
            match pace.take(now) {
                Decision::Now => count += 1,
                Decision::Wait(wait) => now += u64::from(wait),
                Decision::Disconnect => return (count, true),
            }
        }
        (count, false)
    }

    #[test]
    fn a_start_is_not_slowed_and_a_flood_is() {
        let (count, was_ended) = flood(1000);
        assert_eq!(
            (count, was_ended),
            (MessageRateLimit::BURST + 99 * MessageRateLimit::PER_SECOND / 100, false)
        );
        let (count, was_ended) = flood(60_000);
        assert!(was_ended);
        assert_eq!(count, MessageRateLimit::BURST + 10 * MessageRateLimit::PER_SECOND);
    }

    #[test]
    fn steady_messages_below_the_rate_are_never_delayed() {
        let mut pace = MessageRateLimit::new(0);
        for number in 0..1_000_000_u64 {
            let now = number * 1000 / u64::from(MessageRateLimit::PER_SECOND);
            assert_eq!(pace.take(now), Decision::Now, "message {number}");
        }
        // A burst after a pause uses a full budget and is not a flood.
        for round in 0..5_u64 {
            let now = 1_000_000 + round * 20_000;
            for _ in 0..MessageRateLimit::BURST {
                assert_eq!(pace.take(now), Decision::Now);
            }
            assert!(matches!(pace.take(now), Decision::Wait(_)));
        }
    }

    #[test]
    fn a_clock_that_stops_or_jumps_is_tolerated() {
        let mut pace = MessageRateLimit::new(u64::MAX - 5);
        assert_eq!(pace.take(u64::MAX), Decision::Now);
        assert_eq!(pace.take(0), Decision::Now);
    }
}
