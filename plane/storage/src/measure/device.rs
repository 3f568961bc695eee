//! File or device under measurement.

use std::sync::Arc;

use suimon_ports::{DiskFile, FileIo, FileSlot};

use crate::measure::error::MeasureError;

/// File or block device under measurement, with the I/O used for it.
pub(super) struct MeasuredDevice {
    pub(super) io: Box<dyn FileIo>,
    pub(super) slot: FileSlot,
    /// Size in bytes of the range that requests access.
    pub(super) bytes: u64,
    pub(super) random_state: u64,
}

impl MeasuredDevice {
    pub(crate) fn new(
        mut io: Box<dyn FileIo>,
        file: Arc<dyn DiskFile>,
        seed: u64,
    ) -> Result<Self, MeasureError> {
        let slot = io.add_file(file).map_err(MeasureError::IoUring)?;
        Ok(Self { io, slot, bytes: 0, random_state: seed })
    }

    /// Returns the next pseudo-random number (SplitMix64: Steele, Lea, Flood, 2014).
    pub(super) fn next_random(&mut self) -> u64 {
        self.random_state = self.random_state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random_state;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
