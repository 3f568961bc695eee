//! Copying of ranges of a disk, in their current state, to its copy.

use suimon_image::ByteRange;
use suimon_ports::{Allocation, AllocationExtent, DISK_CLIENT_REQUEST_BYTES_MAX, DiskClient};
use suimon_storage_engine::DirtyMap;

use super::progress::MirrorError;

/// Maximum number of bytes of the disk that one allocation query covers.
const LOOK_BYTES: u64 = 1 << 30;

/// Connections to the source disk and to its copy, which has the same size.
pub(crate) struct SourceAndCopy {
    pub(crate) source: Box<dyn DiskClient>,
    pub(crate) copy: Box<dyn DiskClient>,
}

impl SourceAndCopy {
    /// Closes both connections.
    pub(crate) fn close(&self) {
        self.source.disconnect();
        self.copy.disconnect();
    }

    /// Returns the alignment of reads and writes in bytes: the larger of the two sector sizes.
    fn unit(&self) -> u64 {
        u64::from(self.source.sector_bytes().max(self.copy.sector_bytes()).max(1))
    }

    /// Marks the regions of the disk that are allocated. `is_comparing` is called between queries
    /// and returns false to stop. Fails if a query fails.
    pub(crate) fn mark_allocated(
        &self,
        dirty: &DirtyMap,
        is_comparing: impl Fn() -> bool,
    ) -> Result<(), MirrorError> {
        let mut offset = 0;
        while offset < dirty.size_bytes() && is_comparing() {
            let len = LOOK_BYTES.min(dirty.size_bytes().saturating_sub(offset));
            let Some(range) = ByteRange::new(offset, len) else { return Ok(()) };
            let mut extents = self.source.allocation(range).map_err(MirrorError::Read)?;
            if extents.iter().all(|extent| extent.len == 0) {
                extents = vec![AllocationExtent { allocation: Allocation::Data, len }];
            }
            for AllocationExtent { allocation, len } in extents {
                if allocation == Allocation::Data {
                    ByteRange::new(offset, len).into_iter().for_each(|range| dirty.mark(range));
                }
                offset = offset.saturating_add(len);
            }
        }
        Ok(())
    }

    /// Copies a range of the disk to the copy; ranges without data are zeroed. The range begins at
    /// a multiple of the alignment. `bytes` is a reusable buffer.
    pub(crate) fn copy(&self, range: ByteRange, bytes: &mut Vec<u8>) -> Result<(), MirrorError> {
        let unit = self.unit();
        let has_data = self.data_units(range, unit)?;
        let (mut remaining, mut units) = (range, has_data.into_iter().peekable());
        while let Some(is_data) = units.next() {
            let mut len = unit;
            while units.next_if_eq(&is_data).is_some() {
                len = len.saturating_add(unit);
            }
            let (piece, after) = remaining.split_at(len);
            if is_data {
                self.copy_data(piece, bytes)?;
            } else {
                self.copy.write_zeroes(piece).map_err(MirrorError::Write)?;
            }
            remaining = after;
        }
        Ok(())
    }

    /// Returns one flag per `unit` bytes of a range: true if the unit contains data.
    fn data_units(&self, range: ByteRange, unit: u64) -> Result<Vec<bool>, MirrorError> {
        let mut has_data = vec![false; usize::try_from(range.len().div_ceil(unit)).unwrap_or(0)];
        let mut remaining = range;
        while !remaining.is_empty() {
            let mut extents = self.source.allocation(remaining).map_err(MirrorError::Read)?;
            if extents.iter().all(|extent| extent.len == 0) {
                extents =
                    vec![AllocationExtent { allocation: Allocation::Data, len: remaining.len() }];
            }
            for AllocationExtent { allocation, len } in extents {
                let (piece, after) = remaining.split_at(len);
                remaining = after;
                if allocation == Allocation::Data && !piece.is_empty() {
                    let first_unit = (piece.offset() - range.offset()) / unit;
                    let until = (piece.end() - range.offset()).div_ceil(unit);
                    let units = has_data.iter_mut().take(until as usize).skip(first_unit as usize);
                    units.for_each(|unit| *unit = true);
                }
            }
        }
        Ok(has_data)
    }

    fn copy_data(&self, range: ByteRange, bytes: &mut Vec<u8>) -> Result<(), MirrorError> {
        let mut remaining = range;
        while !remaining.is_empty() {
            let (piece, after) = remaining.split_at(DISK_CLIENT_REQUEST_BYTES_MAX);
            self.source.read(piece, bytes).map_err(MirrorError::Read)?;
            if bytes.iter().all(|byte| *byte == 0) {
                self.copy.write_zeroes(piece).map_err(MirrorError::Write)?;
            } else {
                self.copy.write(piece.offset(), bytes).map_err(MirrorError::Write)?;
            }
            remaining = after;
        }
        Ok(())
    }
}
