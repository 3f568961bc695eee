//! Copy of a disk's range in its current state.

use suimon_image::ByteRange;
use suimon_ports::{Allocation, AllocationExtent, DISK_CLIENT_REQUEST_BYTES_MAX, DiskClient};

use super::progress::MirrorError;
use crate::dirty::DirtyMap;

/// Bytes of the disk that one allocation query covers.
const LOOK_BYTES: u64 = 1 << 30;

/// Source disk and its copy, of the same size.
pub(crate) struct Pair {
    pub(crate) disk: Box<dyn DiskClient>,
    pub(crate) copy: Box<dyn DiskClient>,
}

impl Pair {
    /// Closes the connections to disk and copy.
    pub(crate) fn end(&self) {
        self.disk.disconnect();
        self.copy.disconnect();
    }

    /// Returns the alignment of reads and writes: the larger of the two sector sizes, in bytes.
    fn unit(&self) -> u64 {
        u64::from(self.disk.sector_bytes().max(self.copy.sector_bytes()).max(1))
    }

    /// Marks the allocated regions of the disk. `goes_on` is called between queries and returns
    /// false to stop.
    pub(crate) fn compare(
        &self,
        dirty: &DirtyMap,
        goes_on: impl Fn() -> bool,
    ) -> Result<(), MirrorError> {
        let mut at = 0;
        while at < dirty.size() && goes_on() {
            let len = LOOK_BYTES.min(dirty.size().saturating_sub(at));
            let Some(range) = ByteRange::new(at, len) else { return Ok(()) };
            let mut extents = self.disk.allocation(range).map_err(MirrorError::Read)?;
            if extents.iter().all(|extent| extent.len == 0) {
                extents = vec![AllocationExtent { allocation: Allocation::Data, len }];
            }
            for AllocationExtent { allocation, len } in extents {
                if allocation == Allocation::Data {
                    ByteRange::new(at, len).into_iter().for_each(|range| dirty.mark(range));
                }
                at = at.saturating_add(len);
            }
        }
        Ok(())
    }

    /// Copies a range of the disk to the copy. The range begins at a multiple of the unit. `bytes`
    /// is a reusable buffer.
    pub(crate) fn copy(&self, range: ByteRange, bytes: &mut Vec<u8>) -> Result<(), MirrorError> {
        let unit = self.unit();
        let has_data = self.data_units(range, unit)?;
        let (mut rest, mut units) = (range, has_data.into_iter().peekable());
        while let Some(is_data) = units.next() {
            let mut len = unit;
            while units.next_if_eq(&is_data).is_some() {
                len = len.saturating_add(unit);
            }
            let (piece, behind) = rest.split_at(len);
            if is_data {
                self.copy_data(piece, bytes)?;
            } else {
                self.copy.write_zeroes(piece).map_err(MirrorError::Write)?;
            }
            rest = behind;
        }
        Ok(())
    }

    /// Returns which units of a range contain data.
    fn data_units(&self, range: ByteRange, unit: u64) -> Result<Vec<bool>, MirrorError> {
        let mut has_data = vec![false; usize::try_from(range.len().div_ceil(unit)).unwrap_or(0)];
        let mut rest = range;
        while !rest.is_empty() {
            let mut extents = self.disk.allocation(rest).map_err(MirrorError::Read)?;
            if extents.iter().all(|extent| extent.len == 0) {
                extents = vec![AllocationExtent { allocation: Allocation::Data, len: rest.len() }];
            }
            for AllocationExtent { allocation, len } in extents {
                let (piece, behind) = rest.split_at(len);
                rest = behind;
                if allocation == Allocation::Data && !piece.is_empty() {
                    let from = (piece.offset() - range.offset()) / unit;
                    let until = (piece.end() - range.offset()).div_ceil(unit);
                    let units = has_data.iter_mut().take(until as usize).skip(from as usize);
                    units.for_each(|unit| *unit = true);
                }
            }
        }
        Ok(has_data)
    }

    fn copy_data(&self, range: ByteRange, bytes: &mut Vec<u8>) -> Result<(), MirrorError> {
        let mut rest = range;
        while !rest.is_empty() {
            let (piece, behind) = rest.split_at(DISK_CLIENT_REQUEST_BYTES_MAX);
            self.disk.read(piece, bytes).map_err(MirrorError::Read)?;
            if bytes.iter().all(|byte| *byte == 0) {
                self.copy.write_zeroes(piece).map_err(MirrorError::Write)?;
            } else {
                self.copy.write(piece.offset(), bytes).map_err(MirrorError::Write)?;
            }
            rest = behind;
        }
        Ok(())
    }
}
