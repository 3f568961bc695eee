//! Occupancy of the file, and allocation of space for new blocks and sector bitmaps.

use suimon_image::{ByteRange, ImageError, ImageFault, RangeSet};

use crate::fields::{FILE_MB_MAX, MB};

/// Maximum number of blocks for which space from a gap is zeroed at a time.
const GAP_BLOCKS_MAX: u32 = 64;
/// Maximum number of recorded gaps. Further gaps become usable when the image is opened again.
const GAPS_MAX: usize = 1 << 16;
/// Maximum number of megabytes by which the file grows in addition to the current demand.
const GROWTH_MB_MAX: u64 = 256;
/// Maximum size in megabytes of one range that is zeroed, but at least a block. File systems block
/// direct I/O on a file while they deallocate a range of it.
const ZEROING_MB_MAX: u32 = 64;

/// Occupancy bitmap: one bit per megabyte up to the last one in use; at most 64 MB for a file of
/// 512 TB.
#[derive(Clone, Debug, Default)]
pub(crate) struct Occupancy {
    words: Vec<u64>,
    /// Ranges of the file, in megabytes, that entries of the log change. No payload may be there.
    logged: Vec<(u32, u32)>,
}

impl Occupancy {
    /// Sets the ranges of the file, in megabytes and ascending order, in which
    /// [`Occupancy::occupy_payload`] fails.
    pub(crate) fn set_logged(&mut self, logged: Vec<(u32, u32)>) {
        self.logged = logged;
    }

    /// Marks the megabytes `from .. to` as occupied.
    ///
    /// # Errors
    ///
    /// Name of the conflicting structure, if some are already occupied.
    pub(crate) fn occupy(&mut self, from: u32, to: u32) -> Result<(), &'static str> {
        let words = (to as usize).div_ceil(64);
        if self.words.len() < words {
            self.words.resize(words, 0);
        }
        for mb in from..to {
            let Some(word) = self.words.get_mut(mb as usize / 64) else { continue };
            let bit = 1 << (mb % 64);
            if *word & bit != 0 {
                return Err("another structure of the file");
            }
            *word |= bit;
        }
        Ok(())
    }

    /// Marks the megabytes `from .. to` as occupied by payload, which is read from the file without
    /// applying the log.
    ///
    /// # Errors
    ///
    /// As [`Occupancy::occupy`]; also if the log changes them.
    pub(crate) fn occupy_payload(&mut self, from: u32, to: u32) -> Result<(), &'static str> {
        let after = self.logged.partition_point(|&(_, end)| end <= from);
        if self.logged.get(after).is_some_and(|&(begin, _)| begin < to) {
            return Err("a change in the log; open the image for writing once");
        }
        self.occupy(from, to)
    }

    /// Marks a file range that is aligned to megabytes as occupied.
    ///
    /// # Errors
    ///
    /// As [`Occupancy::occupy`]; also if the range ends beyond the maximum file length.
    pub(crate) fn occupy_range(&mut self, range: ByteRange) -> Result<(), ImageFault> {
        let too_far = ImageFault::FormatLimit { limit: FILE_MB_MAX * MB };
        let to = Some(range.end() / MB).filter(|end| *end <= FILE_MB_MAX);
        let to = to.and_then(|end| u32::try_from(end).ok()).ok_or(too_far)?;
        let from = u32::try_from(range.offset() / MB).unwrap_or(to);
        self.occupy(from, to).map_err(|other| ImageFault::Overlap { other })
    }

    /// Returns the first megabyte after the last one in use.
    pub(crate) fn end_mb(&self) -> u32 {
        let last = self.words.iter().rposition(|word| *word != 0);
        last.map_or(0, |index| {
            let word = self.words.get(index).copied().unwrap_or(0);
            // The value is at most 2^29.
            u32::try_from(index * 64 + 64).unwrap_or(u32::MAX) - word.leading_zeros()
        })
    }

    /// Returns the number of megabytes in use.
    pub(crate) fn used_mb(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns the unused ranges before the end, in megabytes and ascending order, at most 65 536.
    pub(crate) fn gaps(&self) -> Vec<(u32, u32)> {
        let mut gaps = Vec::new();
        let mut from = None;
        let end = self.end_mb();
        let mut mb = 0;
        while mb <= end && gaps.len() < GAPS_MAX {
            let word = self.words.get(mb as usize / 64).copied().unwrap_or(0) >> (mb % 64);
            match from {
                None if word & 1 == 0 => from = Some(mb),
                Some(begin) if word & 1 == 1 => {
                    gaps.push((begin, mb));
                    from = None;
                }
                _ => {}
            }
            // Advances to the next change of state or to the next word.
            let run = if word & 1 == 1 { word.trailing_ones() } else { word.trailing_zeros() };
            mb += run.min(64 - mb % 64);
        }
        gaps
    }
}

/// Allocator of space for blocks and sector bitmaps. Allocated space reads as zeros.
///
/// Freed space is reusable only after the commit that frees it has ended and the space was zeroed
/// ([`SpaceAllocator::poll_zeroing`]).
#[derive(Debug)]
pub(crate) struct SpaceAllocator {
    block_mb: u32,
    has_bitmaps: bool,
    /// End of all space that was ever allocated, in megabytes.
    end: u32,
    /// End of all space that metadata ever referred to, in megabytes.
    referenced_end: u32,
    /// Space for blocks that reads as zeros, as offsets in megabytes.
    blocks: Vec<u32>,
    slots: Vec<u32>,
    /// Gaps between structures, in megabytes, with unknown contents.
    gaps: Vec<(u32, u32)>,
    /// Offsets in megabytes of blocks that were freed since the last commit began.
    pub freed_offsets_mb: Vec<u32>,
    /// Offsets in megabytes of blocks that metadata never referred to, in which a failed write may
    /// have left payload.
    pub unreferenced_offsets_mb: Vec<u32>,
    /// Ranges of freed blocks that no durable metadata refers to and that are not zeroed.
    released: RangeSet,
    zeroing: Option<Zeroing>,
    /// True if zeroing has failed since the last commit.
    has_failed_zeroing: bool,
}

/// Range in megabytes that is being zeroed.
#[derive(Clone, Copy, Debug)]
struct Zeroing {
    from: u32,
    to: u32,
    /// True if the range is a gap, and false if it consists of freed blocks.
    is_gap: bool,
}

impl SpaceAllocator {
    pub(crate) fn new(occupancy: &Occupancy, block_bytes: u64, has_bitmaps: bool) -> Self {
        Self {
            // Blocks have at most 256 MB.
            block_mb: u32::try_from(block_bytes / MB).unwrap_or(1),
            has_bitmaps,
            end: occupancy.end_mb(),
            referenced_end: occupancy.end_mb(),
            blocks: Vec::new(),
            slots: Vec::new(),
            gaps: occupancy.gaps(),
            freed_offsets_mb: Vec::new(),
            unreferenced_offsets_mb: Vec::new(),
            released: RangeSet::default(),
            zeroing: None,
            has_failed_zeroing: false,
        }
    }

    /// Records that metadata refers to a block (`is_payload`) or a sector bitmap at `mb` megabytes.
    pub(crate) fn add_reference(&mut self, mb: u32, is_payload: bool) {
        let len = if is_payload { self.block_mb } else { 1 };
        self.referenced_end = self.referenced_end.max(mb.saturating_add(len));
    }

    /// Allocates space for a block and returns its offset in megabytes.
    ///
    /// # Errors
    ///
    /// The maximum file length is reached.
    pub(crate) fn allocate_block(&mut self) -> Result<u32, ImageError> {
        match self.blocks.pop() {
            Some(mb) => Ok(mb),
            None => self.extend(self.block_mb),
        }
    }

    /// Allocates space for a sector bitmap and returns its offset in megabytes.
    ///
    /// # Errors
    ///
    /// The maximum file length is reached.
    pub(crate) fn allocate_bitmap(&mut self) -> Result<u32, ImageError> {
        match self.slots.pop() {
            Some(mb) => Ok(mb),
            None => self.extend(1),
        }
    }

    /// Allocates `mb` megabytes at the end, possibly beyond the current end of the file, and
    /// returns their offset in megabytes.
    fn extend(&mut self, mb: u32) -> Result<u32, ImageError> {
        let end = self.end.saturating_add(mb);
        if u64::from(end) > FILE_MB_MAX {
            let offset = u64::from(self.end) * MB;
            let fault = ImageFault::FormatLimit { limit: FILE_MB_MAX * MB };
            return Err(ImageError::new("payload block", offset, fault));
        }
        Ok(core::mem::replace(&mut self.end, end))
    }

    /// Allocates `mb` megabytes at the end for a region, and returns their offset in megabytes.
    pub(crate) fn extend_for_region(&mut self, mb: u32) -> Result<u32, ImageError> {
        let mb_start = self.extend(mb)?;
        self.referenced_end = self.end;
        Ok(mb_start)
    }

    /// Returns the file length that metadata requires, in bytes.
    pub(crate) fn required_file_bytes(&self) -> u64 {
        u64::from(self.referenced_end) * MB
    }

    /// Returns the file length to extend to, in bytes. It includes a reserve, so that the file does
    /// not grow with each block.
    pub(crate) fn extended_file_bytes(&self) -> u64 {
        let end = u64::from(self.end);
        let growth = (end / 16).clamp(u64::from(self.block_mb), GROWTH_MB_MAX);
        (end + growth).min(FILE_MB_MAX) * MB
    }

    /// Adds the space of freed blocks to that to be zeroed. Their deallocation must be durable.
    pub(crate) fn release(&mut self, blocks: &[u32]) {
        let ranges = blocks.iter().filter_map(|mb| self.block_range(*mb));
        let mut ranges = ranges.collect();
        self.released.append(&mut ranges);
        self.has_failed_zeroing = false;
    }

    /// Returns the next range of the file to zero: adjacent freed blocks, or a part of a gap if
    /// little zeroed space is left. `None` if there is none, or while a range is being zeroed.
    pub(crate) fn poll_zeroing(&mut self) -> Option<ByteRange> {
        if self.zeroing.is_some() || self.has_failed_zeroing {
            return None;
        }
        let zeroing = match self.pop_released() {
            Some(range) => {
                let mb = |offset: u64| u32::try_from(offset / MB).unwrap_or(u32::MAX);
                Zeroing { from: mb(range.offset()), to: mb(range.end()), is_gap: false }
            }
            None => {
                let (from, to) = self.begin_zeroing()?;
                Zeroing { from, to, is_gap: true }
            }
        };
        self.zeroing = Some(zeroing);
        self.range_from_mb((zeroing.from, zeroing.to))
    }

    /// Removes and returns a file range of adjacent freed blocks that are not zeroed.
    pub(crate) fn pop_released(&mut self) -> Option<ByteRange> {
        let blocks = (ZEROING_MB_MAX / self.block_mb.max(1)).max(1);
        self.released.pop_first(u64::from(blocks * self.block_mb) * MB)
    }

    /// Records the end of the zeroing of a range. If it succeeded (`is_zero`), its space becomes
    /// available.
    pub(crate) fn handle_zeroed(&mut self, is_zero: bool) {
        let Some(Zeroing { from, to, is_gap }) = self.zeroing.take() else { return };
        if is_zero {
            return self.add_zeroed((from, to));
        }
        self.has_failed_zeroing = true;
        match self.range_from_mb((from, to)) {
            Some(range) if !is_gap => self.released.insert(range),
            _ => self.gaps.push((from, to)),
        }
    }

    /// Returns a part of a gap, in megabytes, that should be zeroed, because little zeroed space is
    /// left; otherwise `None`.
    fn begin_zeroing(&mut self) -> Option<(u32, u32)> {
        if self.blocks.len() >= GAP_BLOCKS_MAX as usize {
            return None;
        }
        let smallest = if self.has_bitmaps { 1 } else { self.block_mb };
        while let Some((from, to)) = self.gaps.pop() {
            let count = (to - from).min(GAP_BLOCKS_MAX * self.block_mb);
            if count < smallest {
                continue;
            }
            if from + count < to {
                self.gaps.push((from + count, to));
            }
            return Some((from, from + count));
        }
        None
    }

    /// Adds the zeroed megabytes `from .. to` to the available space.
    fn add_zeroed(&mut self, (mut from, to): (u32, u32)) {
        while to - from >= self.block_mb {
            self.blocks.push(from);
            from += self.block_mb;
        }
        if self.has_bitmaps {
            self.slots.extend(from..to);
        }
    }

    /// Adds freed blocks that were zeroed to the available space.
    pub(crate) fn add_blocks(&mut self, blocks: &[u32]) {
        self.blocks.extend_from_slice(blocks);
    }

    /// Returns the file range of the block at `mb` megabytes; `None` on overflow.
    pub(crate) fn block_range(&self, mb: u32) -> Option<ByteRange> {
        self.range_from_mb((mb, mb.saturating_add(self.block_mb)))
    }

    /// Returns the file range of the megabytes `from .. to`; `None` on overflow.
    pub(crate) fn range_from_mb(&self, (from, to): (u32, u32)) -> Option<ByteRange> {
        ByteRange::new(u64::from(from) * MB, u64::from(to.saturating_sub(from)) * MB)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occupied_space_conflicts_and_gaps_are_reported() {
        let mut occupancy = Occupancy::default();
        for (from, to) in [(0, 4), (6, 8), (63, 66), (130, 131)] {
            occupancy.occupy(from, to).unwrap();
        }
        assert_eq!(occupancy.end_mb(), 131);
        assert_eq!(occupancy.gaps(), [(4, 6), (8, 63), (66, 130)]);
        assert!(occupancy.clone().occupy(7, 9).is_err());
        assert_eq!(occupancy.used_mb(), 4 + 2 + 3 + 1);
        occupancy.set_logged(vec![(8, 9), (20, 21)]);
        assert!(occupancy.clone().occupy(18, 22).is_ok());
        assert!(occupancy.clone().occupy_payload(18, 22).is_err());
        assert!(occupancy.occupy_payload(9, 20).is_ok());
        assert_eq!(Occupancy::default().gaps(), []);
    }

    /// An image decides how its file is fragmented.
    #[test]
    fn gaps_of_a_fragmented_file_are_limited() {
        let mut occupancy = Occupancy::default();
        let count = u32::try_from(GAPS_MAX).unwrap() + 100;
        for number in 0..count {
            occupancy.occupy(2 * number + 1, 2 * number + 2).unwrap();
        }
        let gaps = occupancy.gaps();
        assert_eq!((gaps.len(), gaps[0], gaps[1]), (GAPS_MAX, (0, 1), (2, 3)));
        assert_eq!(occupancy.used_mb(), u64::from(count));
    }

    #[test]
    fn freed_space_is_reused_after_zeroing() {
        let mut occupancy = Occupancy::default();
        occupancy.occupy(0, 4).unwrap();
        occupancy.occupy(9, 10).unwrap();
        let mut space = SpaceAllocator::new(&occupancy, 2 * MB, true);
        assert_eq!(space.allocate_block().unwrap(), 10);
        let gap = ByteRange::new(4 * MB, 5 * MB);
        assert_eq!((space.poll_zeroing(), space.poll_zeroing()), (gap, None));
        space.handle_zeroed(false);
        assert_eq!(space.poll_zeroing(), None, "it has failed");
        assert_eq!(space.allocate_bitmap().unwrap(), 12);
        space.release(&[]);
        assert_eq!(space.poll_zeroing(), gap);
        space.handle_zeroed(true);
        assert_eq!(space.poll_zeroing(), None);
        assert_eq!(space.allocate_bitmap().unwrap(), 8);
        let blocks = [space.allocate_block().unwrap(), space.allocate_block().unwrap()];
        assert_eq!(blocks, [6, 4]);
        assert_eq!(space.allocate_block().unwrap(), 13);
        assert_eq!(space.required_file_bytes(), 10 * MB, "nothing new is referred to");
        space.add_reference(12, false);
        assert_eq!(space.required_file_bytes(), 13 * MB);
        space.add_reference(13, true);
        assert_eq!(space.required_file_bytes(), 15 * MB);
    }

    #[test]
    fn adjacent_freed_blocks_are_zeroed_together() {
        let mut occupancy = Occupancy::default();
        occupancy.occupy(0, 200).unwrap();
        let mut space = SpaceAllocator::new(&occupancy, 2 * MB, false);
        let blocks: Vec<u32> = (10..110).step_by(2).chain([150]).rev().collect();
        space.release(&blocks);
        let mut zeroed = Vec::new();
        while let Some(range) = space.poll_zeroing() {
            zeroed.push((range.offset() / MB, range.len() / MB));
            space.handle_zeroed(true);
        }
        assert_eq!(zeroed, [(10, 64), (74, 36), (150, 2)], "3 ranges instead of 51");
        let mut free: Vec<u32> = (0..51).map(|_| space.allocate_block().unwrap()).collect();
        free.sort_unstable();
        assert_eq!(free, blocks.into_iter().rev().collect::<Vec<_>>());
        assert_eq!(space.allocate_block().unwrap(), 200);
    }
}
