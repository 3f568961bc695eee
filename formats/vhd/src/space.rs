//! Free space for new blocks: gaps between structures, and space before the footer.
//!
//! Invariants
//! - Allocated space reads as zeros and is not referenced by any metadata, in memory or in the
//!   file.
//! - No space behind the footer is allocated: the file always ends with a footer, never with guest
//!   data, which could resemble a footer.

use std::collections::VecDeque;

use crate::fields::SECTOR;
use crate::layout::Layout;
use crate::table::UNUSED;

/// Maximum growth beyond the current demand in bytes; growth is otherwise an eighth of the
/// allocated blocks.
const GROWTH_BYTES_MAX: u64 = 64 << 20;

/// Range of unused sectors in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// Returns the gap directly before the footer at `place`; may be empty.
pub(crate) fn tail(gaps: &[Gap], place: u64) -> Gap {
    let place = place / SECTOR;
    let last = gaps.last().copied().filter(|gap| gap.end == place);
    last.unwrap_or(Gap { start: place, end: place })
}

/// Returns true if the gap before the footer exceeds the reserve for new blocks that a growing
/// image keeps.
pub(crate) fn exceeds_room(layout: &Layout, tail: Gap) -> bool {
    let room = GROWTH_BYTES_MAX / SECTOR + 2 * layout.stride_sectors();
    tail.end.saturating_sub(tail.start) > room
}

/// Allocator of space for blocks.
#[derive(Debug)]
pub(crate) struct Space {
    layout: Layout,
    gaps: VecDeque<Gap>,
    /// Sectors of blocks that were freed.
    freed: Vec<u32>,
    /// Sectors reserved for the next blocks.
    ready: VecDeque<u32>,
    /// Gap directly before the footer.
    tail: Gap,
    /// Highest sector at which a footer may have been written, durable or not.
    reached: u64,
}

impl Space {
    /// Creates an allocator from the gaps returned by [`crate::table::gaps`].
    pub(crate) fn new(layout: Layout, gaps: Vec<Gap>) -> Self {
        let mut gaps = VecDeque::from(gaps);
        let tail = gaps.pop_back().unwrap_or(Gap { start: 0, end: 0 });
        Self { layout, gaps, freed: Vec::new(), ready: VecDeque::new(), tail, reached: tail.end }
    }

    /// Returns the offset of the footer in bytes.
    pub(crate) fn footer_offset(&self) -> u64 {
        self.tail.end * SECTOR
    }

    /// Returns true if space for `blocks` blocks is available without growing; reserves it.
    pub(crate) fn has(&mut self, blocks: u64) -> bool {
        while (self.ready.len() as u64) < blocks {
            let Some(sector) = self.find() else { return false };
            self.ready.push_back(sector);
        }
        true
    }

    /// Allocates space for a block. Requires [`Space::has`] before.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.ready.pop_front().or_else(|| self.find())
    }

    /// Frees the space of a block, which must read as zeros and be unreferenced.
    pub(crate) fn give_back(&mut self, sector: u32) {
        self.freed.push(sector);
    }

    /// Returns the number of further blocks that fit without growing, at most `enough`.
    pub(crate) fn room(&self, enough: u64) -> u64 {
        let stride = self.layout.stride_sectors().max(1);
        let of = |gap: &Gap| gap.end.saturating_sub(self.layout.align(gap.start)) / stride;
        let counted = (self.ready.len() + self.freed.len()) as u64;
        let in_gaps = self.gaps.iter().take(64).map(of).sum::<u64>();
        counted.saturating_add(in_gaps).saturating_add(of(&self.tail)).min(enough)
    }

    /// Returns the sector of the footer after growing for `wanted` blocks and a reserve; `None` if
    /// the format cannot address such sectors.
    pub(crate) fn grown(&self, wanted: u64, allocated: u64) -> Option<u64> {
        let spare = (GROWTH_BYTES_MAX / self.layout.block.max(1)).min(allocated / 8);
        let end = |blocks: u64| {
            let stride = self.layout.stride_sectors();
            let end =
                blocks.checked_mul(stride)?.checked_add(self.layout.align(self.tail.start))?;
            (end < u64::from(UNUSED)).then_some(end.max(self.reached).max(self.tail.end))
        };
        end(wanted.saturating_add(spare)).or_else(|| end(wanted))
    }

    /// Records that a footer is about to be written at this sector.
    pub(crate) fn reach(&mut self, sector: u64) {
        self.reached = self.reached.max(sector);
    }

    /// Records that the footer is durable at this sector and the former one is zeroed.
    pub(crate) fn grow(&mut self, sector: u64) {
        self.tail.end = self.tail.end.max(sector);
        self.reach(sector);
    }

    fn find(&mut self) -> Option<u32> {
        if let Some(sector) = self.freed.pop() {
            return Some(sector);
        }
        while let Some(gap) = self.gaps.front_mut() {
            match cut(&self.layout, gap) {
                Some(sector) => return Some(sector),
                None => self.gaps.pop_front(),
            };
        }
        cut(&self.layout, &mut self.tail)
    }
}

/// Takes space for a block from the front of a gap.
fn cut(layout: &Layout, gap: &mut Gap) -> Option<u32> {
    let start = layout.align(gap.start);
    let end = start.checked_add(layout.slot_sectors())?;
    if end > gap.end {
        return None;
    }
    let sector = u32::try_from(start).ok().filter(|sector| *sector != UNUSED)?;
    gap.start = end;
    Some(sector)
}
