//! Rates of bits, bytes and operations.

use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// Rate in bits per second; never zero, because a zero limit would amount to disconnection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct BitRate(u64);

impl BitRate {
    /// Creates a rate; `None` if `bits_per_second` is zero.
    pub const fn new(bits_per_second: u64) -> Option<Self> {
        if bits_per_second == 0 { None } else { Some(Self(bits_per_second)) }
    }

    /// Returns the rate in bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Returns the transmission time of `bytes` at this rate, rounded up to a nanosecond.
    pub fn time_for_bytes(self, bytes: u64) -> Duration {
        let bits = u128::from(bytes) * 8;
        let ns = (bits * 1_000_000_000).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

impl TryFrom<u64> for BitRate {
    type Error = &'static str;

    fn try_from(bits_per_second: u64) -> Result<Self, Self::Error> {
        Self::new(bits_per_second).ok_or("a rate must be at least 1 bit/s")
    }
}

impl From<BitRate> for u64 {
    fn from(rate: BitRate) -> Self {
        rate.0
    }
}

impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bit/s", self.0)
    }
}

/// Rate in disk operations per second; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct Iops(u64);

impl Iops {
    /// Creates a rate; `None` if `per_second` is zero.
    pub const fn new(per_second: u64) -> Option<Self> {
        if per_second == 0 { None } else { Some(Self(per_second)) }
    }

    /// Returns the rate in operations per second.
    pub const fn per_second(self) -> u64 {
        self.0
    }
}

impl TryFrom<u64> for Iops {
    type Error = &'static str;

    fn try_from(per_second: u64) -> Result<Self, Self::Error> {
        Self::new(per_second).ok_or("a rate must be at least 1 IOPS")
    }
}

impl From<Iops> for u64 {
    fn from(rate: Iops) -> Self {
        rate.0
    }
}

impl fmt::Display for Iops {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} IOPS", self.0)
    }
}

/// Rate in bytes per second; never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "u64", into = "u64")]
pub struct ByteRate(u64);

impl ByteRate {
    /// Creates a rate; `None` if `bytes_per_second` is zero.
    pub const fn new(bytes_per_second: u64) -> Option<Self> {
        if bytes_per_second == 0 { None } else { Some(Self(bytes_per_second)) }
    }

    /// Returns the rate in bytes per second.
    pub const fn bytes_per_second(self) -> u64 {
        self.0
    }
}

impl TryFrom<u64> for ByteRate {
    type Error = &'static str;

    fn try_from(bytes_per_second: u64) -> Result<Self, Self::Error> {
        Self::new(bytes_per_second).ok_or("a rate must be at least 1 byte/s")
    }
}

impl From<ByteRate> for u64 {
    fn from(rate: ByteRate) -> Self {
        rate.0
    }
}

impl fmt::Display for ByteRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B/s", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_for_bytes_rounds_up() {
        let rate = BitRate::new(1_000_000_000).unwrap();
        assert_eq!(rate.time_for_bytes(125), Duration::from_micros(1));
        let slow = BitRate::new(3).unwrap();
        assert_eq!(slow.time_for_bytes(1), Duration::from_nanos(2_666_666_667));
        assert_eq!(BitRate::new(0), None);
        assert_eq!(slow.time_for_bytes(u64::MAX), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn no_rate_is_zero() {
        assert!(serde_json::from_str::<Iops>("0").is_err());
        assert!(serde_json::from_str::<ByteRate>("0").is_err());
        assert_eq!(serde_json::from_str::<Iops>("3").unwrap().to_string(), "3 IOPS");
        assert_eq!(serde_json::from_str::<ByteRate>("3").unwrap().to_string(), "3 B/s");
    }
}
