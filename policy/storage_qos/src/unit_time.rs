//! Rates and times with a resolution of fractions of a nanosecond, so that sums do not drift.

use core::num::NonZeroU64;

use suimon_quantity::Time;

/// Number of fractional bits of a fixed-point nanosecond.
const PLACES: u32 = 32;
const NS_PER_SECOND: u128 = 1_000_000_000;

/// Time or time span in nanoseconds as a fixed-point number with [`PLACES`] fractional bits.
pub(crate) type FixedNs = u128;

#[inline]
pub(crate) const fn fixed_from_time(now: Time) -> FixedNs {
    fixed_from_ns(now.as_ns())
}

#[inline]
pub(crate) const fn fixed_from_ns(ns: u64) -> FixedNs {
    (ns as FixedNs) << PLACES
}

/// Returns the first whole nanosecond that is not before `time`.
#[inline]
pub(crate) const fn round_up_to_time(time: FixedNs) -> Time {
    let is_between = time as u32 != 0;
    Time::from_ns(round_down_to_time(time).as_ns().saturating_add(is_between as u64))
}

/// Returns the last whole nanosecond that is not after `time`, limited to the largest time.
#[inline]
pub(crate) const fn round_down_to_time(time: FixedNs) -> Time {
    // This form compiles to two instructions. It is called several times per request.
    let is_out = (time >> 64) as u64 >> PLACES != 0;
    if is_out { Time::NEVER } else { Time::from_ns((time >> PLACES) as u64) }
}

/// Rate, stored as the time of one unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct UnitTime(NonZeroU64);

impl UnitTime {
    /// Returns the unit time of a maximum, rounded such that the maximum is never exceeded. The
    /// error is below one part in a billion.
    pub(crate) fn from_rate_max(per_second: u64) -> Self {
        let per_unit = (NS_PER_SECOND << PLACES).div_ceil(u128::from(per_second.max(1)));
        Self::of(per_unit)
    }

    /// Returns the unit time of a minimum, rounded such that the minimum is reached.
    pub(crate) fn from_rate_min(per_second: u64) -> Self {
        let per_unit = (NS_PER_SECOND << PLACES) / u128::from(per_second.max(1));
        Self::of(per_unit)
    }

    fn of(per_unit: FixedNs) -> Self {
        let per_unit = u64::try_from(per_unit).unwrap_or(u64::MAX);
        Self(NonZeroU64::new(per_unit).unwrap_or(NonZeroU64::MIN))
    }

    /// Returns the time of `units` units.
    #[inline]
    pub(crate) fn duration_of_units(self, units: u32) -> FixedNs {
        FixedNs::from(self.0.get()) * FixedNs::from(units)
    }

    /// Converts `span`, the time of some units at this rate, to the time of as many units at rate
    /// `to`.
    pub(crate) fn convert_span(self, span: FixedNs, to: Self) -> FixedNs {
        let (from, to) = (FixedNs::from(self.0.get()), FixedNs::from(to.0.get()));
        let whole_span = (span / from).saturating_mul(to);
        whole_span.saturating_add((span % from) * to / from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_do_not_drift() {
        for rate in [1, 3, 7, 1000, 33_333, 3_000_000, 999_999_937] {
            let seconds = 100u64;
            let units = rate * seconds;
            for (pace, slower) in
                [(UnitTime::from_rate_max(rate), true), (UnitTime::from_rate_min(rate), false)]
            {
                let mut sum: FixedNs = 0;
                let mut remaining = units;
                while remaining > 0 {
                    let part = remaining.min(1 << 30);
                    sum += pace.duration_of_units(part as u32);
                    remaining -= part;
                }
                let exact = fixed_from_ns(seconds * 1_000_000_000);
                let difference = sum.abs_diff(exact);
                assert!(difference <= exact / 1_000_000_000, "{rate}: {difference}");
                assert_eq!(sum >= exact, slower || sum == exact);
            }
        }
    }

    #[test]
    fn translation_keeps_the_units() {
        let (slow, fast) = (UnitTime::from_rate_max(1), UnitTime::from_rate_max(1_000_000_000));
        let span = slow.duration_of_units(u32::MAX);
        assert_eq!(slow.convert_span(span, fast), fast.duration_of_units(u32::MAX));
        assert_eq!(fast.convert_span(fast.duration_of_units(7), slow), slow.duration_of_units(7));
    }
}
