//! Free space for new blocks: gaps between structures, and space before the footer.
//!
//! Invariants
//! - Allocated space reads as zeros and is not referenced by any metadata, in memory or in the
//!   file.
//! - No space behind the footer is allocated. The file therefore always ends with a footer and
//!   never with guest data, which could resemble a footer.

use std::collections::{BTreeSet, VecDeque};

use suimon_image::ByteRange;

use crate::fields::SECTOR_BYTES;
use crate::gap::Gap;
use crate::layout::Layout;
use crate::table::UNUSED;

/// Maximum number of bytes that are allocated in addition to the current demand. Below it, the
/// reserve is an eighth of the allocated blocks.
const GROWTH_BYTES_MAX: u64 = 64 << 20;

/// Maximum size in bytes of one range that is zeroed, but at least a block. File systems block
/// direct I/O on a file while they deallocate a range of it.
const ZEROING_BYTES_MAX: u64 = 64 << 20;

/// Returns true if `tail`, the gap before the footer, exceeds the reserve for new blocks that a
/// growing image keeps.
pub(crate) fn exceeds_reserve(layout: &Layout, tail: Gap) -> bool {
    let growth = GROWTH_BYTES_MAX / SECTOR_BYTES + 2 * layout.stride_sectors();
    tail.end_sector.saturating_sub(tail.start_sector) > growth
}

/// Allocator of space for blocks.
#[derive(Debug)]
pub(crate) struct SpaceAllocator {
    layout: Layout,
    gaps: VecDeque<Gap>,
    /// First sectors of blocks that were freed and zeroed.
    freed: Vec<u32>,
    /// First sectors of freed blocks that no durable table refers to and that are not zeroed.
    released: BTreeSet<u32>,
    /// First sectors of the adjacent blocks that are being zeroed.
    zeroing: Vec<u32>,
    /// True if zeroing has failed since the last commit.
    has_failed_zeroing: bool,
    /// First sectors reserved for the next blocks.
    ready: VecDeque<u32>,
    /// Gap directly before the footer.
    tail: Gap,
    /// Highest sector at which a footer may have been written, durable or not.
    highest_footer: u64,
}

impl SpaceAllocator {
    /// Creates an allocator from the gaps that [`crate::table::gaps`] returned.
    pub(crate) fn new(layout: Layout, gaps: Vec<Gap>) -> Self {
        let mut gaps = VecDeque::from(gaps);
        let tail = gaps.pop_back().unwrap_or(Gap { start_sector: 0, end_sector: 0 });
        Self {
            layout,
            gaps,
            freed: Vec::new(),
            released: BTreeSet::new(),
            zeroing: Vec::new(),
            has_failed_zeroing: false,
            ready: VecDeque::new(),
            tail,
            highest_footer: tail.end_sector,
        }
    }

    /// Returns the offset of the footer in bytes.
    pub(crate) fn footer_offset(&self) -> u64 {
        self.tail.end_sector * SECTOR_BYTES
    }

    /// Reserves space for `blocks` blocks without growing the file. Returns false if there is not
    /// enough.
    pub(crate) fn reserve(&mut self, blocks: u64) -> bool {
        while (self.ready.len() as u64) < blocks {
            let Some(sector) = self.find() else { return false };
            self.ready.push_back(sector);
        }
        true
    }

    /// Returns the first sector of the space for a block; `None` if none is reserved
    /// ([`SpaceAllocator::reserve`]).
    pub(crate) fn allocate(&mut self) -> Option<u32> {
        self.ready.pop_front().or_else(|| self.find())
    }

    /// Adds the space of freed blocks, which begin at `sectors`, to that to be zeroed. Their
    /// deallocation must be durable.
    pub(crate) fn release(&mut self, sectors: impl IntoIterator<Item = u32>) {
        self.released.extend(sectors);
        self.has_failed_zeroing = false;
    }

    /// Returns the next range of the file to zero: adjacent freed blocks. `None` if there are none,
    /// or while a range is being zeroed.
    pub(crate) fn poll_zeroing(&mut self) -> Option<ByteRange> {
        if !self.zeroing.is_empty() || self.has_failed_zeroing {
            return None;
        }
        let first = self.released.pop_first()?;
        self.zeroing.push(first);
        let slot = self.layout.slot_sectors();
        let mut end = u64::from(first) + slot;
        let limit = (u64::from(first) + ZEROING_BYTES_MAX / SECTOR_BYTES).max(end);
        while self.released.first().is_some_and(|next| u64::from(*next) == end)
            && end + slot <= limit
        {
            self.zeroing.extend(self.released.pop_first());
            end += slot;
        }
        let first = u64::from(first);
        ByteRange::new(first * SECTOR_BYTES, (end - first) * SECTOR_BYTES)
    }

    /// Records the end of the zeroing of a range. If it succeeded (`is_zero`), its blocks become
    /// available.
    pub(crate) fn handle_zeroed(&mut self, is_zero: bool) {
        let sectors = core::mem::take(&mut self.zeroing);
        if is_zero {
            self.freed.extend(sectors);
        } else {
            self.has_failed_zeroing = true;
            self.released.extend(sectors);
        }
    }

    /// Returns the number of further blocks that fit without growing the file, counted up to
    /// `limit`.
    pub(crate) fn available_blocks(&self, limit: u64) -> u64 {
        let stride = self.layout.stride_sectors().max(1);
        let blocks_in = |gap: &Gap| {
            gap.end_sector.saturating_sub(self.layout.align_sector(gap.start_sector)) / stride
        };
        let available = (self.ready.len() + self.freed.len()) as u64;
        let in_gaps = self.gaps.iter().take(64).map(blocks_in).sum::<u64>();
        available.saturating_add(in_gaps).saturating_add(blocks_in(&self.tail)).min(limit)
    }

    /// Returns the sector of the footer after growing the file for `requested` blocks and a
    /// reserve, which depends on the number of `allocated` blocks; `None` if the format cannot
    /// address such sectors.
    pub(crate) fn footer_sector_after_growth(&self, requested: u64, allocated: u64) -> Option<u64> {
        let spare = (GROWTH_BYTES_MAX / self.layout.block_bytes.max(1)).min(allocated / 8);
        let end = |blocks: u64| {
            let stride = self.layout.stride_sectors();
            let end = blocks
                .checked_mul(stride)?
                .checked_add(self.layout.align_sector(self.tail.start_sector))?;
            (end < u64::from(UNUSED))
                .then_some(end.max(self.highest_footer).max(self.tail.end_sector))
        };
        end(requested.saturating_add(spare)).or_else(|| end(requested))
    }

    /// Records that a footer will be written at this sector.
    pub(crate) fn record_footer(&mut self, sector: u64) {
        self.highest_footer = self.highest_footer.max(sector);
    }

    /// Records that the footer at this sector is durable and the former one is zeroed.
    pub(crate) fn handle_grown(&mut self, sector: u64) {
        self.tail.end_sector = self.tail.end_sector.max(sector);
        self.record_footer(sector);
    }

    fn find(&mut self) -> Option<u32> {
        if let Some(sector) = self.freed.pop() {
            return Some(sector);
        }
        while let Some(gap) = self.gaps.front_mut() {
            match take_from_gap(&self.layout, gap) {
                Some(sector) => return Some(sector),
                None => self.gaps.pop_front(),
            };
        }
        take_from_gap(&self.layout, &mut self.tail)
    }
}

/// Removes space for a block from the start of a gap and returns its first sector; `None` if the
/// gap is too small.
fn take_from_gap(layout: &Layout, gap: &mut Gap) -> Option<u32> {
    let start = layout.align_sector(gap.start_sector);
    let end = start.checked_add(layout.slot_sectors())?;
    if end > gap.end_sector {
        return None;
    }
    let sector = u32::try_from(start).ok().filter(|sector| *sector != UNUSED)?;
    gap.start_sector = end;
    Some(sector)
}
