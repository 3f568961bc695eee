//! Occupancy of the file, and allocation of space for new blocks.

use suimon_image::{ByteRange, ImageError, ImageFault};

use crate::bat::FILE_MB_MAX;
use crate::fields::MB;

/// Maximum number of blocks prepared from a gap at a time.
const GAP_BLOCKS_MAX: u32 = 64;
/// Maximum number of recorded gaps. Further gaps become usable when the image is opened again.
const GAPS_MAX: usize = 1 << 16;
/// Maximum growth beyond the current demand, in megabytes.
const GROWTH_MB_MAX: u64 = 256;

/// Occupancy bitmap: one bit per megabyte up to the last one in use; at most 64 MB for a file of
/// 512 TB.
#[derive(Clone, Debug, Default)]
pub(crate) struct Occupancy {
    words: Vec<u64>,
    /// Megabytes changed by the log, which payload must not use.
    logged: Vec<(u32, u32)>,
}

impl Occupancy {
    /// Sets the megabytes in which payload is rejected, in ascending order.
    pub(crate) fn set_logged(&mut self, logged: Vec<(u32, u32)>) {
        self.logged = logged;
    }

    /// Marks `from .. to` as occupied; fails with a description of the conflict.
    pub(crate) fn take(&mut self, from: u32, to: u32) -> Result<(), &'static str> {
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

    /// Marks `from .. to` as occupied by payload, which is read from the file without applying the
    /// log.
    pub(crate) fn take_payload(&mut self, from: u32, to: u32) -> Result<(), &'static str> {
        let after = self.logged.partition_point(|&(_, end)| end <= from);
        if self.logged.get(after).is_some_and(|&(begin, _)| begin < to) {
            return Err("a change in the log; open the image for writing once");
        }
        self.take(from, to)
    }

    /// Marks a range that is aligned to megabytes as occupied.
    pub(crate) fn take_range(&mut self, range: ByteRange) -> Result<(), ImageFault> {
        let too_far = ImageFault::Full { limit: FILE_MB_MAX * MB };
        let to = Some(range.end() / MB).filter(|end| *end <= FILE_MB_MAX);
        let to = to.and_then(|end| u32::try_from(end).ok()).ok_or(too_far)?;
        let from = u32::try_from(range.offset() / MB).unwrap_or(to);
        self.take(from, to).map_err(|other| ImageFault::Overlap { other })
    }

    /// Returns the first megabyte after the last one in use.
    pub(crate) fn end(&self) -> u32 {
        let last = self.words.iter().rposition(|word| *word != 0);
        last.map_or(0, |at| {
            let word = self.words.get(at).copied().unwrap_or(0);
            // At most 2^29.
            u32::try_from(at * 64 + 64).unwrap_or(u32::MAX) - word.leading_zeros()
        })
    }

    /// Returns the number of megabytes in use.
    pub(crate) fn used(&self) -> u64 {
        self.words.iter().map(|word| u64::from(word.count_ones())).sum()
    }

    /// Returns the unused ranges before the end in ascending order, at most 65 536.
    pub(crate) fn gaps(&self) -> Vec<(u32, u32)> {
        let mut gaps = Vec::new();
        let mut from = None;
        let end = self.end();
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
            // Advances to the next change of state or the next word.
            let same = if word & 1 == 1 { word.trailing_ones() } else { word.trailing_zeros() };
            mb += same.min(64 - mb % 64);
        }
        gaps
    }
}

/// Allocator of space for blocks and sector bitmaps. Allocated space reads as zeros.
///
/// Freed space is reusable only after the commit that frees it: the commit zeroes the space once
/// the deallocation is durable, and releases it when it ends.
#[derive(Debug)]
pub(crate) struct Space {
    block_mb: u32,
    has_bitmaps: bool,
    /// End of all space ever allocated, in megabytes.
    end: u32,
    /// End of all space ever referenced by metadata, in megabytes.
    referenced_end: u32,
    /// Zeroed space for blocks, by its offset in megabytes.
    blocks: Vec<u32>,
    slots: Vec<u32>,
    /// Gaps between structures, with unknown contents.
    gaps: Vec<(u32, u32)>,
    /// Blocks freed since the last commit began.
    pub freed: Vec<u32>,
    /// Blocks never referenced by metadata, in which a failed write may have left payload.
    pub unreferenced: Vec<u32>,
}

impl Space {
    pub(crate) fn new(occupancy: &Occupancy, block_bytes: u64, has_bitmaps: bool) -> Self {
        Self {
            // Block sizes are at most 256 MB.
            block_mb: u32::try_from(block_bytes / MB).unwrap_or(1),
            has_bitmaps,
            end: occupancy.end(),
            referenced_end: occupancy.end(),
            blocks: Vec::new(),
            slots: Vec::new(),
            gaps: occupancy.gaps(),
            freed: Vec::new(),
            unreferenced: Vec::new(),
        }
    }

    /// Records that metadata refers to a block, or to a sector bitmap if `is_payload` is false.
    pub(crate) fn refer(&mut self, mb: u32, is_payload: bool) {
        let len = if is_payload { self.block_mb } else { 1 };
        self.referenced_end = self.referenced_end.max(mb.saturating_add(len));
    }

    /// Allocates space for a block; returns its offset in megabytes.
    pub(crate) fn allocate_block(&mut self) -> Result<u32, ImageError> {
        match self.blocks.pop() {
            Some(mb) => Ok(mb),
            None => self.extend(self.block_mb),
        }
    }

    /// Allocates space for a sector bitmap; returns its offset in megabytes.
    pub(crate) fn allocate_slot(&mut self) -> Result<u32, ImageError> {
        match self.slots.pop() {
            Some(mb) => Ok(mb),
            None => self.extend(1),
        }
    }

    /// Allocates space at the end, possibly beyond the current end of the file.
    fn extend(&mut self, mb: u32) -> Result<u32, ImageError> {
        let end = self.end.saturating_add(mb);
        if u64::from(end) > FILE_MB_MAX {
            let offset = u64::from(self.end) * MB;
            let fault = ImageFault::Full { limit: FILE_MB_MAX * MB };
            return Err(ImageError::new("payload block", offset, fault));
        }
        Ok(core::mem::replace(&mut self.end, end))
    }

    /// Allocates space at the end for a region.
    pub(crate) fn extend_for_region(&mut self, mb: u32) -> Result<u32, ImageError> {
        let place = self.extend(mb)?;
        self.referenced_end = self.end;
        Ok(place)
    }

    /// Returns the file length that metadata requires, in bytes.
    pub(crate) fn end_bytes(&self) -> u64 {
        u64::from(self.referenced_end) * MB
    }

    /// Returns the file length to extend to, in bytes: with a reserve, so that the file does not
    /// grow with each block.
    pub(crate) fn grown_bytes(&self) -> u64 {
        let end = u64::from(self.end);
        let more = (end / 16).clamp(u64::from(self.block_mb), GROWTH_MB_MAX);
        (end + more).min(FILE_MB_MAX) * MB
    }

    /// Returns a part of a gap to zero if zeroed space is short; [`Space::add_zeroed`] completes
    /// it.
    pub(crate) fn take_gap(&mut self) -> Option<(u32, u32)> {
        if self.blocks.len() >= GAP_BLOCKS_MAX as usize {
            return None;
        }
        let smallest = if self.has_bitmaps { 1 } else { self.block_mb };
        while let Some((from, to)) = self.gaps.pop() {
            let take = (to - from).min(GAP_BLOCKS_MAX * self.block_mb);
            if take < smallest {
                continue;
            }
            if from + take < to {
                self.gaps.push((from + take, to));
            }
            return Some((from, from + take));
        }
        None
    }

    /// Returns a part of a gap that was not zeroed.
    pub(crate) fn return_gap(&mut self, gap: (u32, u32)) {
        self.gaps.push(gap);
    }

    /// Makes a zeroed part of a gap available.
    pub(crate) fn add_zeroed(&mut self, (mut from, to): (u32, u32)) {
        while to - from >= self.block_mb {
            self.blocks.push(from);
            from += self.block_mb;
        }
        if self.has_bitmaps {
            self.slots.extend(from..to);
        }
    }

    /// Makes freed and zeroed blocks available.
    pub(crate) fn add_blocks(&mut self, blocks: &[u32]) {
        self.blocks.extend_from_slice(blocks);
    }

    /// Returns the file range of a block.
    pub(crate) fn block_range(&self, mb: u32) -> Option<ByteRange> {
        self.range((mb, mb.saturating_add(self.block_mb)))
    }

    /// Returns the file range of the megabytes `from .. to`.
    pub(crate) fn range(&self, (from, to): (u32, u32)) -> Option<ByteRange> {
        ByteRange::new(u64::from(from) * MB, u64::from(to.saturating_sub(from)) * MB)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_taken_cannot_be_taken_again_and_the_rest_are_gaps() {
        let mut occupancy = Occupancy::default();
        for (from, to) in [(0, 4), (6, 8), (63, 66), (130, 131)] {
            occupancy.take(from, to).unwrap();
        }
        assert_eq!(occupancy.end(), 131);
        assert_eq!(occupancy.gaps(), [(4, 6), (8, 63), (66, 130)]);
        assert!(occupancy.clone().take(7, 9).is_err());
        assert_eq!(occupancy.used(), 4 + 2 + 3 + 1);
        occupancy.set_logged(vec![(8, 9), (20, 21)]);
        assert!(occupancy.clone().take(18, 22).is_ok());
        assert!(occupancy.clone().take_payload(18, 22).is_err());
        assert!(occupancy.take_payload(9, 20).is_ok());
        assert_eq!(Occupancy::default().gaps(), []);
    }

    #[test]
    fn freed_space_is_handed_out_before_the_file_grows_but_not_before_it_is_zeros() {
        let mut occupancy = Occupancy::default();
        occupancy.take(0, 4).unwrap();
        occupancy.take(9, 10).unwrap();
        let mut space = Space::new(&occupancy, 2 * MB, true);
        assert_eq!(space.allocate_block().unwrap(), 10);
        let gap = space.take_gap().unwrap();
        assert_eq!((gap, space.take_gap()), ((4, 9), None));
        assert_eq!(space.allocate_slot().unwrap(), 12);
        space.add_zeroed(gap);
        assert_eq!(space.allocate_slot().unwrap(), 8);
        let blocks = [space.allocate_block().unwrap(), space.allocate_block().unwrap()];
        assert_eq!(blocks, [6, 4]);
        assert_eq!(space.allocate_block().unwrap(), 13);
        assert_eq!(space.end_bytes(), 10 * MB, "nothing new is referred to");
        space.refer(12, false);
        assert_eq!(space.end_bytes(), 13 * MB);
        space.refer(13, true);
        assert_eq!(space.end_bytes(), 15 * MB);
    }
}
