//! Extents and their allocation status.

use core::ops::BitOr;

/// Allocation status: the flags of `base:allocation` (section "`base:allocation` metadata
/// context"). Ranges of unknown status use [`ExtentState::DATA`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExtentState(u8);

impl ExtentState {
    /// Allocated, with contents that must be read.
    pub const DATA: Self = Self(0);
    /// `NBD_STATE_HOLE`: unallocated; a write may fail for lack of space.
    pub const HOLE: Self = Self(1);
    /// `NBD_STATE_ZERO`: reads as zeroes.
    pub const ZERO: Self = Self(1 << 1);

    /// Returns true if every flag of `flags` is set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Returns the known flags of a 32-bit status field.
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self((bits & 3) as u8)
    }

    /// Returns the flags in wire format.
    pub const fn bits(self) -> u8 {
        self.0
    }
}

impl BitOr for ExtentState {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

/// Range of bytes with one allocation status. Its offset is implicit: extents in a list follow each
/// other without gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusExtent {
    /// Length of the extent in bytes.
    pub length: u64,
    /// Allocation status of the extent.
    pub state: ExtentState,
}
