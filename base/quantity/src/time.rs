//! Virtual time: points in time of an abstract clock.

use core::fmt;
use core::ops::Add;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// Point in time in nanoseconds since the origin of its clock (on a host: boot, `CLOCK_BOOTTIME`;
/// in the simulator: zero).
///
/// Times are comparable only if they come from the same clock.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Time(u64);

impl Time {
    /// Origin of the clock (0 ns).
    pub const ZERO: Self = Self(0);
    /// Time later than any event.
    pub const NEVER: Self = Self(u64::MAX);

    /// Creates the time `ns` nanoseconds after the origin.
    pub const fn from_ns(ns: u64) -> Self {
        Self(ns)
    }

    /// Returns the nanoseconds since the origin.
    pub const fn as_ns(self) -> u64 {
        self.0
    }

    /// Returns the nanoseconds since `earlier`; zero if `earlier` is later.
    pub const fn ns_since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the duration since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.ns_since(earlier))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        let ns = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
        Self(self.0.saturating_add(ns))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09} s", self.0 / 1_000_000_000, self.0 % 1_000_000_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_instead_of_wrapping() {
        assert_eq!(Time::NEVER + Duration::from_secs(1), Time::NEVER);
        assert_eq!(Time::ZERO + Duration::MAX, Time::NEVER);
        assert_eq!(Time::from_ns(5).since(Time::from_ns(9)), Duration::ZERO);
        assert_eq!(Time::from_ns(9).since(Time::from_ns(5)), Duration::from_nanos(4));
    }
}
