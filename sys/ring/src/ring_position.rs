//! Position in a packed ring.

/// Position in a descriptor ring: an index, and the wrap counter, which toggles each time the index
/// passes the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RingPosition {
    pub(crate) index: u16,
    pub(crate) wrap_counter: bool,
}

impl RingPosition {
    /// Decodes a position: the index with the wrap counter as bit 15.
    pub(crate) fn from_number(number: u16) -> Self {
        Self { index: number & 0x7fff, wrap_counter: number & 0x8000 != 0 }
    }

    /// Encodes the position: the index with the wrap counter as bit 15.
    #[inline(always)]
    pub(crate) fn number(self) -> u16 {
        self.index | if self.wrap_counter { 0x8000 } else { 0 }
    }

    /// Returns the position `descriptors` further in a ring of `size` entries. `descriptors` is at
    /// most `size`.
    #[inline(always)]
    pub(crate) fn advanced_by(self, descriptors: u16, size: u16) -> Self {
        let remaining = size - self.index.min(size);
        if descriptors < remaining {
            Self { index: self.index + descriptors, wrap_counter: self.wrap_counter }
        } else {
            Self { index: descriptors - remaining, wrap_counter: !self.wrap_counter }
        }
    }
}
