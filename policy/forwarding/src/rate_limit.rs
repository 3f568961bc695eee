//! Rate limit whose state is one number that all queues of a port can share.

use core::time::Duration;

use suimon_quantity::{BitRate, Time};

/// Maximum number of fractional bits of a byte or frame.
const FRACTION_BITS_MAX: u32 = 24;
/// Base-2 logarithm of the aimed maximum of units per second. The number of fractional bits is
/// chosen accordingly, so that the 64-bit count of units wraps only after decades.
const UNITS_PER_SECOND_BITS: u32 = 34;
/// Rate, in bytes or frames per second, above which limits are reduced to this rate (4.4 Tbit/s).
/// No host reaches it, and the count of units would wrap too soon.
const RATE_MAX: u128 = 1 << 39;
const NS_PER_SECOND: u128 = 1_000_000_000;
/// Maximum lag between the clock readings of two threads.
const LAG_MAX: Duration = Duration::from_secs(8);

/// State of a [`RateLimit`]. The default is the state with an unused burst. The number can be kept
/// in an `AtomicU64`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RateLimitState(u64);

impl RateLimitState {
    /// Decodes the state from a number returned by [`RateLimitState::to_u64`].
    #[inline]
    pub const fn from_u64(number: u64) -> Self {
        Self(number)
    }

    /// Encodes the state as a number.
    #[inline]
    pub const fn to_u64(self) -> u64 {
        self.0
    }
}

/// Rate limit with a burst: the generic cell rate algorithm in its virtual scheduling form (ITU-T
/// I.371, annex A).
///
/// The state is the time up to which the rate is used up. Time is counted in units of the permitted
/// work: bytes or frames, or a fixed fraction of them. So costs are added without rounding, and the
/// long-term rate is exact; only reading the clock rounds down, by less than one unit, which is at
/// most one byte or frame and does not accumulate.
///
/// In any window, the admitted cost is at most rate × window + burst + one unit. A cost above the
/// burst is admitted when the burst is unused, and paid for afterwards; it then replaces the burst
/// in the sum.
///
/// Units wrap after decades at rates below 100 Gbit/s (at least a year). Wrapping is harmless
/// unless the limit was idle for exactly that time, to within the duration of 2^32 bytes or frames
/// at this rate; then one wait can be too long by that duration. A default state counts as idle
/// since the clock's origin.
///
/// A data plane with several queues per limit keeps the state in an atomic, calls
/// [`RateLimit::admit`] on its value and replaces it by compare-and-exchange, retrying on failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Units per nanosecond times 2 to the power of `shift`; at least 2^63.
    multiplier: u64,
    shift: u32,
    fraction_bits: u32,
    /// Burst in units, that is, bytes or frames shifted left by `fraction_bits`.
    burst: u64,
    /// Maximum number of units by which a state can be ahead of the clock; a larger difference
    /// means that the clock has passed the state.
    ahead_max: u64,
}

impl RateLimit {
    /// Creates a limit in bytes. The rate is reached only if `burst_bytes` is at least the largest
    /// frame plus the bytes at this rate between two services of the queue (at least a nanosecond);
    /// 0 counts as 1. Rates above 2^42 bit/s count as that.
    pub fn from_bit_rate(rate: BitRate, burst_bytes: u32) -> Self {
        Self::new(u128::from(rate.bits_per_second()), 8, burst_bytes)
    }

    /// Creates a limit in frames. Returns `None` if the rate is 0; a burst of 0 counts as 1. Rates
    /// above 2^39 frames/s count as that.
    pub fn from_frame_rate(frames_per_second: u64, burst_frames: u32) -> Option<Self> {
        (frames_per_second > 0).then(|| Self::new(frames_per_second.into(), 1, burst_frames))
    }

    /// Creates a limit of `rate` / `divisor` bytes or frames per second with a burst of `burst`
    /// bytes or frames.
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

    /// Admits work of `cost` bytes or frames at `now` and returns the new state.
    ///
    /// # Errors
    ///
    /// If the limit does not permit the work now: the earliest time at which it does if the state
    /// does not change meanwhile. The caller must keep the old state.
    #[inline]
    pub fn admit(
        &self,
        state: RateLimitState,
        now: Time,
        cost: u32,
    ) -> Result<RateLimitState, Time> {
        let clock = self.clock(now);
        let cost = u64::from(cost) << self.fraction_bits;
        let ahead = state.0.wrapping_sub(clock);
        let ahead = if ahead > self.ahead_max { 0 } else { ahead };
        // Number of units that may be in use before this cost; 0 if the cost exceeds the burst.
        let allowed = self.burst.saturating_sub(cost);
        if ahead > allowed {
            return Err(self.wait(now, ahead - allowed));
        }
        Ok(RateLimitState(clock.wrapping_add(ahead).wrapping_add(cost)))
    }

    /// Charges `cost` bytes or frames whether or not it is within the limit, and returns the new
    /// state; [`RateLimit::admit`] then rejects until it is paid for. For work whose cost is known
    /// only on completion: call `admit` with a cost of 0 before, `charge` afterwards.
    #[inline]
    #[must_use]
    pub fn charge(&self, state: RateLimitState, now: Time, cost: u32) -> RateLimitState {
        let clock = self.clock(now);
        let ahead = state.0.wrapping_sub(clock);
        let ahead = if ahead > self.ahead_max { 0 } else { ahead };
        let cost = u64::from(cost) << self.fraction_bits;
        RateLimitState(clock.wrapping_add(ahead).wrapping_add(cost))
    }

    /// Returns the time as the number of units that the rate permits since the clock's origin;
    /// wraps.
    #[inline]
    fn clock(&self, now: Time) -> u64 {
        ((u128::from(now.as_ns()) * u128::from(self.multiplier)) >> self.shift) as u64
    }

    /// Returns the earliest time at which [`RateLimit::clock`] is `units` higher than at `now`.
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

/// Returns `numerator` / `denominator` as a pair (multiplier, shift): the quotient is multiplier /
/// 2^shift. The multiplier has 64 significant bits; the value is rounded down by less than 2^-63 of
/// itself.
fn normalised(numerator: u128, denominator: u128) -> (u64, u32) {
    let mut shift = 0;
    let mut quotient = numerator / denominator;
    let mut remainder = numerator % denominator;
    // Long division bit by bit. The numerator is not zero, so the loop ends.
    while quotient >> 63 == 0 && shift < 127 {
        remainder <<= 1;
        quotient = quotient << 1 | u128::from(remainder >= denominator);
        remainder %= denominator;
        shift += 1;
    }
    (u64::try_from(quotient).unwrap_or(u64::MAX), shift)
}

#[cfg(test)]
#[path = "rate_limit_tests.rs"]
mod tests;
