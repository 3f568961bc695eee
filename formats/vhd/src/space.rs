//! Room for new blocks: gaps between structures, and what is before the footer.
//!
//! Invariants
//! - What is given out reads as zeros and is referred to by nothing, in memory or durably.
//! - Nothing is given out behind the footer: the end of the file is always a footer, and
//!   never what a guest wrote, which might look like one.

use std::collections::VecDeque;

use crate::fields::SECTOR;
use crate::layout::Layout;
use crate::table::UNUSED;

/// The file grows by an eighth of its blocks, and by no more than so many bytes beyond
/// what is wanted at once.
const GROWTH_BYTES_MAX: u64 = 64 << 20;

/// Sectors that nothing is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gap {
    pub(crate) start: u64,
    pub(crate) end: u64,
}

/// The gap before the footer at `place`, which may be empty.
pub(crate) fn tail(gaps: &[Gap], place: u64) -> Gap {
    let place = place / SECTOR;
    let last = gaps.last().copied().filter(|gap| gap.end == place);
    last.unwrap_or(Gap { start: place, end: place })
}

/// Returns true if a gap before the footer is more than the room for new blocks that a growing
/// image keeps there.
pub(crate) fn exceeds_room(layout: &Layout, tail: Gap) -> bool {
    let room = GROWTH_BYTES_MAX / SECTOR + 2 * layout.stride_sectors();
    tail.end.saturating_sub(tail.start) > room
}

/// Room for blocks.
#[derive(Debug)]
pub(crate) struct Space {
    layout: Layout,
    gaps: VecDeque<Gap>,
    /// Blocks' places that were given back.
    freed: Vec<u32>,
    /// Places that will be given out next.
    ready: VecDeque<u32>,
    /// Before the footer.
    tail: Gap,
    /// How far the footer may have been written already, though it is not known to be.
    reached: u64,
}

impl Space {
    /// `gaps` as [`crate::table::gaps`] has them.
    pub(crate) fn new(layout: Layout, gaps: Vec<Gap>) -> Self {
        let mut gaps = VecDeque::from(gaps);
        let tail = gaps.pop_back().unwrap_or(Gap { start: 0, end: 0 });
        Self { layout, gaps, freed: Vec::new(), ready: VecDeque::new(), tail, reached: tail.end }
    }

    /// Where the footer is.
    pub(crate) fn footer_offset(&self) -> u64 {
        self.tail.end * SECTOR
    }

    /// Whether there is room for so many blocks now.
    pub(crate) fn has(&mut self, blocks: u64) -> bool {
        while (self.ready.len() as u64) < blocks {
            let Some(sector) = self.find() else { return false };
            self.ready.push_back(sector);
        }
        true
    }

    /// A place for a block; [`Space::has`] was asked before.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.ready.pop_front().or_else(|| self.find())
    }

    /// A place that was taken is free, reads as zeros, and nothing refers to it.
    pub(crate) fn give_back(&mut self, sector: u32) {
        self.freed.push(sector);
    }

    /// How many blocks more fit without growing, up to `enough`.
    pub(crate) fn room(&self, enough: u64) -> u64 {
        let stride = self.layout.stride_sectors().max(1);
        let of = |gap: &Gap| gap.end.saturating_sub(self.layout.align(gap.start)) / stride;
        let counted = (self.ready.len() + self.freed.len()) as u64;
        let in_gaps = self.gaps.iter().take(64).map(of).sum::<u64>();
        counted.saturating_add(in_gaps).saturating_add(of(&self.tail)).min(enough)
    }

    /// Where the footer goes so that `wanted` blocks more have room, and some besides;
    /// `None` if the format cannot tell such places.
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

    /// A footer is about to be written at this sector.
    pub(crate) fn reach(&mut self, sector: u64) {
        self.reached = self.reached.max(sector);
    }

    /// The footer is durable at this sector, and where it was reads as zeros.
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

/// The first place for a block in a gap, which it is taken from.
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
