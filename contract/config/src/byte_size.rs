//! Sizes in bytes, written with or without a unit.

use core::fmt;
use core::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

/// Units: name, and exponent of the power of two.
const UNITS: [(&str, u32); 5] = [("TiB", 40), ("GiB", 30), ("MiB", 20), ("KiB", 10), ("B", 0)];

/// Regular expression (ECMA-262) of valid sizes. The digit counts limit each alternative to values
/// below 2^60 bytes.
pub(crate) const BYTE_SIZE_PATTERN: &str = r"^\s*((0|[1-9][0-9]{0,17})(\s*B)?|(0|[1-9][0-9]{0,14})\s*KiB|(0|[1-9][0-9]{0,11})\s*MiB|(0|[1-9][0-9]{0,8})\s*GiB|(0|[1-9][0-9]{0,5})\s*TiB)\s*$";

/// Size in bytes. Deserialized from a number or from a text such as `"10 GiB"`; serialized as a
/// number in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "ByteSizeText", into = "u64")]
#[schema(value_type = ByteSizeText)]
pub struct ByteSize(u64);

/// Accepted notations of a size: `10737418240` or `"10 GiB"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum ByteSizeText {
    /// Number of bytes.
    Number(u64),
    /// Whole number followed by one of the units B, KiB, MiB, GiB and TiB.
    Text(String),
}

/// Error for a text that is not a valid size.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{text}` is not a size; write a number of bytes, or a number with a unit like \"10 GiB\" (B, \
     KiB, MiB, GiB, TiB)"
)]
pub struct ByteSizeError {
    text: String,
}

impl ByteSize {
    /// Returns the size of `bytes` bytes.
    pub const fn new(bytes: u64) -> Self {
        Self(bytes)
    }

    /// Returns the number of bytes.
    pub const fn bytes(self) -> u64 {
        self.0
    }

    /// Returns the value in the largest unit that represents it exactly, and the unit's name.
    fn in_units(self) -> (u64, &'static str) {
        let is_multiple = |shift: u32| self.0 != 0 && self.0.trailing_zeros() >= shift;
        let largest = UNITS.into_iter().find(|(_, shift)| is_multiple(*shift));
        largest.map_or((self.0, "B"), |(unit, shift)| (self.0 >> shift, unit))
    }

    /// Returns true if a unit larger than the byte represents the size exactly.
    pub fn is_exact_in_larger_unit(self) -> bool {
        self.in_units().1 != "B"
    }
}

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    /// Parses a whole number and an optional unit, with or without a space between them. Without a
    /// unit, the number counts bytes.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let trimmed = text.trim();
        let digits_end = trimmed.bytes().take_while(u8::is_ascii_digit).count();
        let read = || {
            let (digits, unit) = trimmed.split_at_checked(digits_end)?;
            let unit = unit.trim_start();
            if digits.len() > 1 && digits.starts_with('0') {
                return None;
            }
            let shift = match unit {
                "" => 0,
                _ => UNITS.into_iter().find(|(name, _)| *name == unit)?.1,
            };
            digits.parse::<u64>().ok()?.checked_mul(1 << shift).map(Self)
        };
        read().ok_or_else(|| ByteSizeError { text: text.chars().take(40).collect() })
    }
}

impl TryFrom<ByteSizeText> for ByteSize {
    type Error = ByteSizeError;

    fn try_from(text: ByteSizeText) -> Result<Self, Self::Error> {
        match text {
            ByteSizeText::Number(bytes) => Ok(Self(bytes)),
            ByteSizeText::Text(text) => text.parse(),
        }
    }
}

impl From<ByteSize> for u64 {
    fn from(size: ByteSize) -> Self {
        size.0
    }
}

impl fmt::Display for ByteSize {
    /// Writes the exact value in the largest suitable unit: `10 GiB`, `1000 B`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = self.in_units();
        write!(f, "{number} {unit}")
    }
}

#[cfg(test)]
#[path = "byte_size_tests.rs"]
mod tests;
