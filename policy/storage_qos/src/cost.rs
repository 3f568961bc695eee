//! Cost of a request in normalised operations.

use serde::{Deserialize, Serialize};

/// Number of size classes into which requests are divided by cost.
pub(crate) const SIZE_CLASSES: usize = 4;

/// Returns the size class of requests of `cost` operations. Requests of a class have similar
/// latencies.
#[inline]
pub(crate) const fn size_class(cost: u32) -> usize {
    match cost {
        0..=1 => 0,
        2..=8 => 1,
        9..=64 => 2,
        _ => 3,
    }
}

/// Bytes that count as one operation: a power of two from 512 to 1 MiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct Normalization {
    shift: u32,
}

impl Normalization {
    /// Creates a normalization; `None` if `bytes` is not a power of two from 512 to 1 MiB.
    pub const fn new(bytes: u32) -> Option<Self> {
        if bytes.is_power_of_two() && bytes >= 512 && bytes <= 1 << 20 {
            Some(Self { shift: bytes.trailing_zeros() })
        } else {
            None
        }
    }

    /// Returns the number of bytes that count as one operation.
    pub const fn bytes(self) -> u32 {
        1 << self.shift
    }

    /// Returns the number of operations that a request of `bytes` counts as, at least one.
    #[inline]
    pub const fn cost(self, bytes: u32) -> u32 {
        let full_units = bytes >> self.shift;
        let cost = full_units + (bytes > full_units << self.shift) as u32;
        if cost == 0 { 1 } else { cost }
    }
}

impl Default for Normalization {
    /// Returns the normalisation of Hyper-V, 8 KiB.
    fn default() -> Self {
        Self { shift: 13 }
    }
}

impl TryFrom<u32> for Normalization {
    type Error = &'static str;

    fn try_from(bytes: u32) -> Result<Self, Self::Error> {
        Self::new(bytes).ok_or("normalization_bytes must be a power of two from 512 to 1048576")
    }
}

impl From<Normalization> for u32 {
    fn from(normalization: Normalization) -> Self {
        normalization.bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_operations_at_least_one() {
        let eight = Normalization::default();
        let costs = [(0, 1), (1, 1), (512, 1), (8192, 1), (8193, 2), (1 << 20, 128)];
        for (bytes, cost) in costs {
            assert_eq!(eight.cost(bytes), cost, "{bytes}");
        }
        assert_eq!(Normalization::new(512).unwrap().cost(u32::MAX), 1 << 23);
        for invalid in [0, 1, 256, 8191, 1 << 21] {
            assert_eq!(Normalization::new(invalid), None, "{invalid}");
        }
    }
}
