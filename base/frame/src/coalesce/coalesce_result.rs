//! Input and result of coalescing for the frames of a batch.

use crate::Offloads;
use crate::batch::BATCH_FRAMES_MAX;

/// Destination of a frame, as far as relevant for coalescing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CoalesceTarget {
    /// No egress, or one that accepts no coalesced frames: the frame is not merged.
    Excluded,
    /// Several egresses: the frame is not merged, and no later frame may be moved past it.
    Multiple,
    /// This egress, by a number chosen by the caller, and the offloads that it accepts. Only frames
    /// with the same number are merged.
    Egress(u16, Offloads),
}

/// Result of coalescing a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoalesceResult {
    pub(super) merged_mask: u32,
    pub(super) merge_target_mask: u32,
}

const _: () = assert!(BATCH_FRAMES_MAX <= u32::BITS as usize);

impl CoalesceResult {
    /// Returns true if the frame at this index was merged into another one.
    #[inline]
    pub const fn was_merged_away(self, index: usize) -> bool {
        index < BATCH_FRAMES_MAX && self.merged_mask >> index & 1 != 0
    }

    /// Returns true if other frames were merged into the frame at this index.
    #[inline]
    pub const fn is_merge_target(self, index: usize) -> bool {
        index < BATCH_FRAMES_MAX && self.merge_target_mask >> index & 1 != 0
    }

    /// Returns the number of frames merged into others.
    #[inline]
    pub const fn merged_count(self) -> u32 {
        self.merged_mask.count_ones()
    }

    /// Returns true if no frame was merged.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.merged_mask == 0
    }
}
