//! A limit that is never split: one number of state, shared by all queues.

use core::time::Duration;

use suimon_quantity::{BitRate, Time};

/// Fractions of a byte or frame are counted up to this fineness.
const FRACTION_BITS_MAX: u32 = 24;
/// Units per second stay below 2 to this power where fractions can be given
/// up for it, so that the count of units takes decades to wrap.
const UNITS_PER_SECOND_BITS: u32 = 34;
/// Bytes or frames per second above which a rate means "without limit" (4.4
/// Tbit/s). No host moves as much, and the units would wrap too soon.
const RATE_MAX: u128 = 1 << 39;
const NS_PER_SECOND: u128 = 1_000_000_000;
/// How far the clock reading of one thread may lag behind another's.
const LAG_MAX: Duration = Duration::from_secs(8);

/// The state of a [`Limit`]; starts as the default, with a full burst. Its
/// number may be kept in an `AtomicU64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LimitState(u64);

impl LimitState {
    /// The state that was kept as this number.
    #[inline]
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// The number to keep.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        self.0
    }
}

/// A rate limit with a burst, as the generic cell rate algorithm in its virtual
/// scheduling form (ITU-T I.371, annex A).
///
/// The state says up to where the rate is used up. Time is counted in units of
/// what the rate allows: bytes or frames, or a fixed fraction of them. So costs are
/// added without rounding, and the long-term rate is exact; only reading
/// the clock rounds, down and by less than one unit, which at most is one byte
/// or frame and is never summed up.
///
/// Over any window, what is admitted costs at most rate × window + burst + one
/// unit. Something that costs more than the whole burst is admitted when nothing
/// of the burst is used, and paid for afterwards; then its cost takes the
/// burst's place in the sum.
///
/// The units wrap after decades at rates below 100 Gbit/s (a year at the very least).
/// Wrapping does no harm, unless the limit was idle for just that long, to within
/// the time that 2^32 bytes or frames take at this rate; then one wait may be as
/// much too long. A default state counts as idle since the clock's origin.
///
/// A plane with several queues per limit keeps the state in an atomic, calls
/// [`Limit::admit`] on its value and exchanges it for the new one if it is
/// unchanged, else tries again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Units per nanosecond, times 2 to the `shift`; at least 2^63.
    multiplier: u64,
    shift: u32,
    fraction_bits: u32,
    /// In units.
    burst: u64,
    /// A state up to this far ahead of the clock is ahead; any further, it has
    /// been overtaken.
    ahead_max: u64,
}

impl Limit {
    /// A limit in bytes. The rate is reached only if `burst_bytes` is no less than
    /// the largest frame plus what the rate carries between two looks at the
    /// queue, a nanosecond at the very least; 0 counts as 1.
    /// Rates above 2^42 bit/s count as that.
    pub fn of_bits(rate: BitRate, burst_bytes: u32) -> Self {
        Self::new(u128::from(rate.bits_per_second()), 8, burst_bytes)
    }

    /// A limit in frames. `None` if the rate is 0; a burst of 0 counts as 1.
    /// Rates above 2^39 frames/s count as that.
    pub fn of_frames(frames_per_second: u64, burst_frames: u32) -> Option<Self> {
        (frames_per_second > 0).then(|| Self::new(frames_per_second.into(), 1, burst_frames))
    }

    /// `rate` / `divisor` units of cost per second, before fractions.
    fn new(rate: u128, divisor: u128, burst: u32) -> Self {
        let rate = rate.min(RATE_MAX * divisor);
        let rate_bits = u128::BITS - (rate / divisor).leading_zeros();
        let fraction_bits = UNITS_PER_SECOND_BITS.saturating_sub(rate_bits).min(FRACTION_BITS_MAX);
        let scaled = rate << fraction_bits;
        let per_second = scaled / divisor;
        let denominator = divisor * NS_PER_SECOND;
        let (multiplier, shift) = normalised(scaled, denominator);
        let burst = u64::from(burst.max(1)) << fraction_bits;
        let lag = per_second.saturating_mul(u128::from(LAG_MAX.as_secs()));
        let ahead_max = u128::from(burst) + (u128::from(u32::MAX) << fraction_bits) + lag;
        let ahead_max = u64::try_from(ahead_max).unwrap_or(u64::MAX).min(1 << 63);
        Self { multiplier, shift, fraction_bits, burst, ahead_max }
    }

    /// Admits `cost` (bytes or frames) at `now`, or says when to ask again.
    ///
    /// # Errors
    /// The earliest time at which the same question is answered with yes, if
    /// the state does not change meanwhile; the state is not to be changed.
    #[inline]
    pub fn admit(&self, state: LimitState, now: Time, cost: u32) -> Result<LimitState, Time> {
        let clock = self.clock(now);
        let cost = u64::from(cost) << self.fraction_bits;
        let ahead = state.0.wrapping_sub(clock);
        let ahead = if ahead > self.ahead_max { 0 } else { ahead };
        // What may be used up before this cost: nothing, if it is too large.
        let allowed = self.burst.saturating_sub(cost);
        if ahead > allowed {
            return Err(self.wait(now, ahead - allowed));
        }
        Ok(LimitState(clock.wrapping_add(ahead).wrapping_add(cost)))
    }

    /// Takes `cost` whether or not there is room for it; [`Limit::admit`] says no
    /// until it is paid for. For work whose cost is known only when it is done:
    /// ask with a cost of 0 before, charge afterwards.
    #[inline]
    #[must_use]
    pub fn charge(&self, state: LimitState, now: Time, cost: u32) -> LimitState {
        let clock = self.clock(now);
        let ahead = state.0.wrapping_sub(clock);
        let ahead = if ahead > self.ahead_max { 0 } else { ahead };
        let cost = u64::from(cost) << self.fraction_bits;
        LimitState(clock.wrapping_add(ahead).wrapping_add(cost))
    }

    /// Units since the origin of the clock; wraps.
    #[inline]
    fn clock(&self, now: Time) -> u64 {
        ((u128::from(now.as_ns()) * u128::from(self.multiplier)) >> self.shift) as u64
    }

    /// The earliest time at which the clock shows `units` more than at `now`.
    #[cold]
    fn wait(&self, now: Time, units: u64) -> Time {
        let product = u128::from(now.as_ns()) * u128::from(self.multiplier);
        let below_unit = product & ((1 << self.shift) - 1);
        let Some(distance) = u128::from(units).checked_mul(1 << self.shift) else {
            return Time::NEVER;
        };
        let ns = (distance - below_unit).div_ceil(u128::from(self.multiplier));
        now + Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

/// `numerator` / `denominator` as a multiplier of 64 significant bits and a
/// shift; the rounding is down and below 2^-63 of the value.
fn normalised(numerator: u128, denominator: u128) -> (u64, u32) {
    let mut shift = 0;
    let mut quotient = numerator / denominator;
    let mut remainder = numerator % denominator;
    // Long division, bit by bit: the numerator is not zero, so this ends.
    while quotient >> 63 == 0 && shift < 127 {
        remainder <<= 1;
        quotient = quotient << 1 | u128::from(remainder >= denominator);
        remainder %= denominator;
        shift += 1;
    }
    (u64::try_from(quotient).unwrap_or(u64::MAX), shift)
}

#[cfg(test)]
#[path = "limit_tests.rs"]
mod tests;
