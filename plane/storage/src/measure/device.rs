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
    pub(super) random: u64,
}

impl MeasuredDevice {
    pub(crate) fn new(
        mut io: Box<dyn FileIo>,
        file: Arc<dyn DiskFile>,
        seed: u64,
    ) -> Result<Self, MeasureError> {
        let slot = io.add_file(file).map_err(MeasureError::Ring)?;
        Ok(Self { io, slot, bytes: 0, random: seed })
    }

    /// Returns the next pseudo-random number (SplitMix64: Steele, Lea, Flood, 2014).
    pub(super) fn draw(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}
