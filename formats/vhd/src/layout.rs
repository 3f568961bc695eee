//! File layout of dynamic and differencing images.

use suimon_image::{ByteRange, ImageError, ImageFault};

use crate::fields::SECTOR_BYTES;
use crate::header::{DynamicHeader, HEADER_BYTES, block_count, table_bytes};

/// Alignment of blocks' data in bytes, to match pages and physical sectors of the storage.
pub(crate) const PAYLOAD_ALIGNMENT: u64 = 4096;
/// Minimum block size in bytes from which data is aligned; aligning smaller blocks would waste too
/// much space.
const ALIGNED_BLOCK_MIN: u64 = 64 << 10;

/// Sizes and offsets of an image, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Size of the disk in bytes.
    pub(crate) disk_bytes: u64,
    /// Number of blocks of the disk; the table may have more entries.
    pub(crate) block_count: u32,
    /// Size of a block's data in bytes.
    pub(crate) block_bytes: u64,
    /// Size in bytes of the sector bitmap that precedes each block's data.
    pub(crate) bitmap_bytes: u64,
    pub(crate) header_offset: u64,
    pub(crate) table_offset: u64,
    /// Number of block allocation table entries.
    pub(crate) entry_count: u32,
}

impl Layout {
    /// Derives the layout from the header of a disk with `size` bytes.
    ///
    /// # Errors
    ///
    /// The table has fewer entries than the disk has blocks, or an offset is not a multiple of 512.
    pub(crate) fn new(
        header: &DynamicHeader,
        header_offset: u64,
        size: u64,
    ) -> Result<Self, ImageError> {
        let entries = header.max_table_entries;
        let too_small = || {
            let fault = ImageFault::InvalidValue {
                value: entries.into(),
                allowed: "one entry for each block of the disk; the size in another field may be \
                          the right one",
            };
            ImageError::new("Max Table Entries", header_offset.saturating_add(28), fault)
        };
        let blocks = block_count(size, header.block_size).filter(|blocks| *blocks <= entries);
        for (name, field_offset, offset) in [
            ("Data Offset", 16, header_offset),
            ("Table Offset", header_offset, header.table_offset),
        ] {
            if offset % SECTOR_BYTES != 0 {
                let fault =
                    ImageFault::InvalidValue { value: offset, allowed: "a multiple of 512" };
                return Err(ImageError::new(name, field_offset, fault));
            }
        }
        Ok(Self {
            disk_bytes: size,
            block_count: blocks.ok_or_else(too_small)?,
            block_bytes: header.block_size.into(),
            bitmap_bytes: bitmap_bytes(header.block_size.into()),
            header_offset,
            table_offset: header.table_offset,
            entry_count: entries,
        })
    }

    /// Returns the number of sectors that a block occupies in the file, including its bitmap.
    pub(crate) const fn slot_sectors(&self) -> u64 {
        (self.bitmap_bytes + self.block_bytes) / SECTOR_BYTES
    }

    /// Returns the distance in sectors between the starts of new blocks, which includes alignment.
    pub(crate) const fn stride_sectors(&self) -> u64 {
        self.slot_sectors().next_multiple_of(self.alignment_sectors())
    }

    /// Returns the first sector, at least `sector`, at which a block may begin so that its data is
    /// aligned.
    pub(crate) fn align_sector(&self, sector: u64) -> u64 {
        let before = self.bitmap_bytes / SECTOR_BYTES;
        (sector + before).next_multiple_of(self.alignment_sectors()) - before
    }

    /// Returns true if the data of new blocks is aligned.
    pub(crate) const fn aligns_payload(&self) -> bool {
        self.block_bytes >= ALIGNED_BLOCK_MIN
    }

    const fn alignment_sectors(&self) -> u64 {
        if self.aligns_payload() { PAYLOAD_ALIGNMENT / SECTOR_BYTES } else { 1 }
    }

    /// Returns the file offset in bytes of a block's data; the block begins at `sector`, with its
    /// bitmap.
    pub(crate) const fn payload_offset(&self, sector: u32) -> u64 {
        sector as u64 * SECTOR_BYTES + self.bitmap_bytes
    }

    /// Returns the file range of the bitmap of the block that begins at `sector`; `None` on
    /// overflow.
    pub(crate) fn bitmap_range(&self, sector: u32) -> Option<ByteRange> {
        ByteRange::new(u64::from(sector) * SECTOR_BYTES, self.bitmap_bytes)
    }

    /// Returns the number of sectors of a block that lie within the disk; the last block may extend
    /// beyond its end.
    pub(crate) fn block_sectors(&self, block: u32) -> u64 {
        let start = u64::from(block) * self.block_bytes;
        self.disk_bytes.saturating_sub(start).min(self.block_bytes) / SECTOR_BYTES
    }

    /// Returns the file offset in bytes of a table entry.
    pub(crate) const fn entry_offset(&self, entry: u32) -> u64 {
        self.table_offset.saturating_add(entry as u64 * 4)
    }

    /// Returns the structures of the file other than blocks and footer, in order.
    ///
    /// # Errors
    ///
    /// A structure exceeds `limit` or overlaps another one.
    pub(crate) fn regions(
        &self,
        header: &DynamicHeader,
        is_differencing: bool,
        limit: u64,
    ) -> Result<Vec<Region>, ImageError> {
        let mut regions = vec![
            Region::new("footer copy", 0, SECTOR_BYTES, 0)?,
            Region::new("dynamic disk header", self.header_offset, HEADER_BYTES, 16)?,
            Region::new(
                "block allocation table",
                self.table_offset,
                table_bytes(self.entry_count),
                self.header_offset.saturating_add(16),
            )?,
        ];
        let locators = header.locators.iter().enumerate().filter(|(_, entry)| entry.is_used());
        for (index, entry) in locators.filter(|_| is_differencing) {
            let told_at =
                self.header_offset.saturating_add(crate::header::locator_offset(index) as u64 + 16);
            let len = u64::from(entry.data_length);
            regions.push(Region::new("parent locator", entry.data_offset, len, told_at)?);
        }
        regions.sort_by_key(|region| (region.start_sector, region.end_sector));
        for region in &regions {
            if region.end_sector > limit {
                let fault = ImageFault::Truncated { file_len: limit };
                return Err(ImageError::new(region.name, region.start_sector, fault));
            }
        }
        for pair in regions.windows(2) {
            let [before, after] = pair else { continue };
            if after.start_sector < before.end_sector {
                let fault = ImageFault::Overlap { other: before.name };
                return Err(ImageError::new(after.name, after.start_sector, fault));
            }
        }
        Ok(regions)
    }
}

/// Returns the size in bytes of the sector bitmap of a block of `block` bytes, in whole sectors.
pub(crate) const fn bitmap_bytes(block: u64) -> u64 {
    (block / SECTOR_BYTES).div_ceil(8).next_multiple_of(SECTOR_BYTES)
}

/// Structure in the file, in whole sectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) name: &'static str,
    pub(crate) start_sector: u64,
    pub(crate) end_sector: u64,
}

impl Region {
    fn new(name: &'static str, offset: u64, len: u64, told_at: u64) -> Result<Self, ImageError> {
        let end =
            offset.checked_add(len).and_then(|end| end.checked_next_multiple_of(SECTOR_BYTES));
        let Some(end) = end else {
            let fault =
                ImageFault::InvalidValue { value: offset, allowed: "an offset within the file" };
            return Err(ImageError::new(name, told_at, fault));
        };
        Ok(Self { name, start_sector: offset - offset % SECTOR_BYTES, end_sector: end })
    }
}
