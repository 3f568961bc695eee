//! What the bytes of a disk are made of.

use core::ops::BitOr;

/// How a range is allocated: the flags of `base:allocation` (section "`base:allocation`
/// metadata context"). A range of which nothing is known is [`ExtentState::DATA`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ExtentState(u8);

impl ExtentState {
    /// Allocated, with contents that have to be read.
    pub const DATA: Self = Self(0);
    /// `NBD_STATE_HOLE`: not allocated; writing to it may find no space.
    pub const HOLE: Self = Self(1);
    /// `NBD_STATE_ZERO`: reads as zeroes.
    pub const ZERO: Self = Self(1 << 1);

    /// Whether all of `flags` are set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// What a field of 32 bits says, as far as it is known.
    pub(crate) const fn from_bits(bits: u32) -> Self {
        Self((bits & 3) as u8)
    }

    /// The flags as they are sent.
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

/// Bytes of one state that follow those of the extent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// How many bytes.
    pub length: u64,
    /// How they are allocated.
    pub state: ExtentState,
}
