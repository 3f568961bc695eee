//! Division of a disk into blocks, chunks and sectors ([MS-VHDX] 2.4, 2.5).

use suimon_image::{ByteRange, ImageError, ImageFault};

use crate::fields::PAGE_BYTES;
use crate::metadata::Metadata;

/// Base-2 logarithm of the number of sectors per sector bitmap block (2^23), which is a chunk.
const CHUNK_SECTORS_SHIFT: u32 = 23;
/// Base-2 logarithm of the number of sectors per page of a sector bitmap (2^15).
pub(crate) const PAGE_SECTORS_SHIFT: u32 = 15;
/// Number of BAT entries per page.
pub(crate) const PAGE_ENTRIES: u64 = PAGE_BYTES / 8;

/// Sizes of a disk, its blocks and sectors. Units are powers of two and the disk has at most 64 TB,
/// so sums do not overflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Geometry {
    pub size: u64,
    pub block_shift: u32,
    pub sector_shift: u32,
    pub has_parent: bool,
}

/// Block or sector bitmap that a BAT entry describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatEntryTarget {
    /// Payload block with this number.
    Payload(u64),
    /// Sector bitmap of the chunk with this number.
    Bitmap(u64),
}

impl Geometry {
    pub(crate) fn new(metadata: &Metadata) -> Self {
        Self {
            size: metadata.disk_bytes,
            block_shift: metadata.block_bytes.trailing_zeros(),
            sector_shift: metadata.logical_sector_bytes.trailing_zeros(),
            has_parent: metadata.parent.is_some(),
        }
    }

    pub(crate) fn block_bytes(&self) -> u64 {
        1 << self.block_shift
    }

    /// Returns the number of blocks of the disk.
    pub(crate) fn blocks(&self) -> u64 {
        self.size.div_ceil(self.block_bytes())
    }

    /// Returns the base-2 logarithm of the number of blocks per chunk (chunk ratio).
    fn ratio_shift(&self) -> u32 {
        CHUNK_SECTORS_SHIFT + self.sector_shift - self.block_shift
    }

    pub(crate) fn chunks(&self) -> u64 {
        self.blocks().div_ceil(1 << self.ratio_shift())
    }

    /// Returns the number of BAT entries.
    pub(crate) fn entry_count(&self) -> u64 {
        if self.has_parent {
            self.chunks() + (self.chunks() << self.ratio_shift())
        } else {
            self.blocks() + (self.blocks().saturating_sub(1) >> self.ratio_shift())
        }
    }

    /// Returns the number of the BAT entry of a block.
    pub(crate) fn payload_entry_index(&self, block: u64) -> u64 {
        block + (block >> self.ratio_shift())
    }

    /// Returns the number of the BAT entry of a chunk's sector bitmap.
    pub(crate) fn bitmap_entry_index(&self, chunk: u64) -> u64 {
        ((chunk + 1) << self.ratio_shift()) + chunk
    }

    /// Returns what BAT entry number `entry` describes.
    pub(crate) fn entry_target(&self, entry: u64) -> BatEntryTarget {
        let per_chunk = (1 << self.ratio_shift()) + 1;
        let (chunk, index) = (entry / per_chunk, entry % per_chunk);
        if index == per_chunk - 1 {
            BatEntryTarget::Bitmap(chunk)
        } else {
            BatEntryTarget::Payload((chunk << self.ratio_shift()) + index)
        }
    }

    /// Returns the number of the chunk that contains a block.
    pub(crate) fn chunk_of_block(&self, block: u64) -> u64 {
        block >> self.ratio_shift()
    }

    /// Returns the number of disk bytes in a block; the last block may have fewer than the others.
    pub(crate) fn bytes_in_block(&self, block: u64) -> u64 {
        let offset = block.saturating_mul(self.block_bytes());
        self.size.saturating_sub(offset).min(self.block_bytes())
    }

    /// Checks that a range is within the disk and aligned to sectors.
    ///
    /// # Errors
    ///
    /// The range exceeds the disk or is not aligned.
    #[inline]
    pub(crate) fn check(&self, range: ByteRange) -> Result<(), ImageError> {
        let mask = (1_u64 << self.sector_shift) - 1;
        if (range.offset() | range.len()) & mask == 0 && range.end() <= self.size {
            return Ok(());
        }
        Err(self.no_range(range))
    }

    #[cold]
    fn no_range(&self, range: ByteRange) -> ImageError {
        let allowed = "a range within the disk, aligned to logical sectors";
        let fault = ImageFault::InvalidValue { value: range.offset(), allowed };
        ImageError::new("request", range.offset(), fault)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_offsets_match_the_specification() {
        // [MS-VHDX] 2.5: with blocks of 1 MB and sectors of 512 bytes, a sector bitmap entry
        // follows 4096 blocks.
        let disk = Geometry { size: 10 << 30, block_shift: 20, sector_shift: 9, has_parent: false };
        assert_eq!((disk.blocks(), disk.chunks(), disk.entry_count()), (10240, 3, 10242));
        let child = Geometry { has_parent: true, ..disk };
        assert_eq!(child.entry_count(), 3 * 4097);
        for disk in [disk, child, Geometry { block_shift: 28, sector_shift: 12, ..child }] {
            for block in 0..disk.blocks() {
                assert_eq!(
                    disk.entry_target(disk.payload_entry_index(block)),
                    BatEntryTarget::Payload(block)
                );
            }
            for chunk in 0..disk.chunks() {
                assert_eq!(
                    disk.entry_target(disk.bitmap_entry_index(chunk)),
                    BatEntryTarget::Bitmap(chunk)
                );
            }
        }
        assert_eq!(disk.payload_entry_index(4096), 4097);
        assert_eq!(disk.bitmap_entry_index(0), 4096);
    }

    #[test]
    fn the_last_block_ends_with_the_disk() {
        let disk = Geometry { size: 512 * 5, block_shift: 20, sector_shift: 9, has_parent: false };
        assert_eq!((disk.blocks(), disk.bytes_in_block(0)), (1, 2560));
        assert_eq!(disk.bytes_in_block(7), 0);
        assert!(disk.check(ByteRange::new(512, 512).unwrap()).is_ok());
        assert!(disk.check(ByteRange::new(2048, 1024).unwrap()).is_err());
        assert!(disk.check(ByteRange::new(1, 512).unwrap()).is_err());
    }
}
