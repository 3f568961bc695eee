//! Where structures and blocks of a dynamic or differencing image are, in the file.

use suimon_image::{ByteRange, ImageError, ImageFault};

use crate::fields::SECTOR;
use crate::header::{DynamicHeader, HEADER, blocks, table_bytes};

/// Payload is placed at multiples of this, which storage and pages like,
pub(crate) const PAYLOAD_ALIGNMENT: u64 = 4096;
/// unless blocks are so small that much would be lost.
const ALIGNED_BLOCK_MIN: u64 = 64 << 10;

/// Sizes and offsets of an image, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Of the disk.
    pub(crate) size: u64,
    /// Blocks that the disk has; the table may have more.
    pub(crate) blocks: u32,
    /// Of a block's data.
    pub(crate) block: u64,
    /// Of a block's sector bitmap, before its data.
    pub(crate) bitmap: u64,
    pub(crate) header_offset: u64,
    pub(crate) table_offset: u64,
    /// Entries of the table.
    pub(crate) entries: u32,
}

impl Layout {
    /// What a header tells of a disk of `size` bytes.
    pub(crate) fn new(
        header: &DynamicHeader,
        header_offset: u64,
        size: u64,
    ) -> Result<Self, ImageError> {
        let entries = header.max_table_entries;
        let few = || {
            let fault = ImageFault::Value {
                value: entries.into(),
                allowed: "as many as the disk has blocks; perhaps its size is told by another field",
            };
            ImageError::new("Max Table Entries", header_offset.saturating_add(28), fault)
        };
        let blocks = blocks(size, header.block_size).filter(|blocks| *blocks <= entries);
        for (name, at, offset) in [
            ("Data Offset", 16, header_offset),
            ("Table Offset", header_offset, header.table_offset),
        ] {
            if offset % SECTOR != 0 {
                let fault = ImageFault::Value { value: offset, allowed: "a multiple of 512" };
                return Err(ImageError::new(name, at, fault));
            }
        }
        Ok(Self {
            size,
            blocks: blocks.ok_or_else(few)?,
            block: header.block_size.into(),
            bitmap: bitmap_bytes(header.block_size.into()),
            header_offset,
            table_offset: header.table_offset,
            entries,
        })
    }

    /// Sectors that a block has in the file, with its bitmap.
    pub(crate) const fn slot_sectors(&self) -> u64 {
        (self.bitmap + self.block) / SECTOR
    }

    /// Sectors from one new block to the next.
    pub(crate) const fn stride_sectors(&self) -> u64 {
        self.slot_sectors().next_multiple_of(self.alignment_sectors())
    }

    /// The first sector from `sector` on where a block's payload is well placed.
    pub(crate) fn align(&self, sector: u64) -> u64 {
        let before = self.bitmap / SECTOR;
        (sector + before).next_multiple_of(self.alignment_sectors()) - before
    }

    /// Whether payload of new blocks is well placed.
    pub(crate) const fn aligns(&self) -> bool {
        self.block >= ALIGNED_BLOCK_MIN
    }

    const fn alignment_sectors(&self) -> u64 {
        if self.aligns() { PAYLOAD_ALIGNMENT / SECTOR } else { 1 }
    }

    /// Where a block's data is, if its bitmap is at a sector.
    pub(crate) const fn payload(&self, sector: u32) -> u64 {
        sector as u64 * SECTOR + self.bitmap
    }

    /// Where a block's bitmap is.
    pub(crate) fn bitmap_range(&self, sector: u32) -> Option<ByteRange> {
        ByteRange::new(u64::from(sector) * SECTOR, self.bitmap)
    }

    /// Sectors of a block that the disk has: the last block may end behind it.
    pub(crate) fn sectors_of(&self, block: u32) -> u64 {
        let start = u64::from(block) * self.block;
        self.size.saturating_sub(start).min(self.block) / SECTOR
    }

    /// Where a table's entry is.
    pub(crate) const fn entry_offset(&self, entry: u32) -> u64 {
        self.table_offset.saturating_add(entry as u64 * 4)
    }

    /// What the file has beside blocks and the footer, in order, all within `limit`.
    pub(crate) fn regions(
        &self,
        header: &DynamicHeader,
        is_differencing: bool,
        limit: u64,
    ) -> Result<Vec<Region>, ImageError> {
        let mut regions = vec![
            Region::new("footer copy", 0, SECTOR, 0)?,
            Region::new("dynamic disk header", self.header_offset, HEADER, 16)?,
            Region::new(
                "block allocation table",
                self.table_offset,
                table_bytes(self.entries),
                self.header_offset.saturating_add(16),
            )?,
        ];
        let locators = header.locators.iter().enumerate().filter(|(_, entry)| entry.is_used());
        for (nth, entry) in locators.filter(|_| is_differencing) {
            let told_at =
                self.header_offset.saturating_add(crate::header::locator_at(nth) as u64 + 16);
            let len = u64::from(entry.data_length);
            regions.push(Region::new("parent locator", entry.data_offset, len, told_at)?);
        }
        regions.sort_by_key(|region| (region.start, region.end));
        for region in &regions {
            if region.end > limit {
                let fault = ImageFault::Short { file_len: limit };
                return Err(ImageError::new(region.name, region.start, fault));
            }
        }
        for pair in regions.windows(2) {
            let [before, after] = pair else { continue };
            if after.start < before.end {
                let fault = ImageFault::Overlap { other: before.name };
                return Err(ImageError::new(after.name, after.start, fault));
            }
        }
        Ok(regions)
    }
}

/// Bytes of the bitmap of a block of so many bytes.
pub(crate) const fn bitmap_bytes(block: u64) -> u64 {
    (block / SECTOR).div_ceil(8).next_multiple_of(SECTOR)
}

/// A structure of the file, in whole sectors.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Region {
    pub(crate) name: &'static str,
    pub(crate) start: u64,
    pub(crate) end: u64,
}

impl Region {
    fn new(name: &'static str, offset: u64, len: u64, told_at: u64) -> Result<Self, ImageError> {
        let end = offset.checked_add(len).and_then(|end| end.checked_next_multiple_of(SECTOR));
        let Some(end) = end else {
            let fault = ImageFault::Value { value: offset, allowed: "an offset within the file" };
            return Err(ImageError::new(name, told_at, fault));
        };
        Ok(Self { name, start: offset - offset % SECTOR, end })
    }
}
