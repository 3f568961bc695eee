//! Which frames of a batch may be joined, and which were.

use crate::Offloads;
use crate::batch::BATCH_FRAMES_MAX;

/// Where a frame of a batch goes, as far as coalescing is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// To an egress that is not given joined frames, or nowhere.
    Apart,
    /// To several egresses: no frame may be moved past it.
    All,
    /// To this one, which takes large frames of these forms. Frames are joined
    /// only with others of the same number.
    Egress(u16, Offloads),
}

/// What became of a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Coalesced {
    pub(super) absorbed: u32,
    pub(super) units: u32,
}

const _: () = assert!(BATCH_FRAMES_MAX <= u32::BITS as usize);

impl Coalesced {
    /// Whether the frame at this place of the batch is no more: its bytes are part
    /// of another one.
    #[inline]
    pub const fn is_absorbed(self, at: usize) -> bool {
        at < BATCH_FRAMES_MAX && self.absorbed >> at & 1 != 0
    }

    /// Whether the frame at this place of the batch has absorbed others.
    #[inline]
    pub const fn is_unit(self, at: usize) -> bool {
        at < BATCH_FRAMES_MAX && self.units >> at & 1 != 0
    }

    /// How many frames are no more.
    #[inline]
    pub const fn absorbed(self) -> u32 {
        self.absorbed.count_ones()
    }

    /// Whether every frame is as it was.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.absorbed == 0
    }
}
