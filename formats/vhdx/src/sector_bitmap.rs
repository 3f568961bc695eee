//! Sector bitmaps of differencing images, cached by page ([MS-VHDX] 2.4).

use std::collections::{BTreeMap, BTreeSet};

use suimon_image::{ByteRange, ImageError, ImageFault, MetadataChange};

use crate::bat::Bat;
use crate::fields::{PAGE_BYTES, PAGE_LEN, to_usize};
use crate::geometry::{Geometry, PAGE_SECTORS_SHIFT};
use crate::log::Page;

/// Maximum number of cached pages that are not in use: 8 MB, sufficient for 32 GB of partially
/// present blocks with sectors of 512 bytes.
const PAGES_MAX: usize = 2048;
/// Maximum number of pages that one request may need, so that they fit into the cache.
pub(crate) const PAGES_PER_REQUEST_MAX: u64 = PAGES_MAX as u64 / 2;
/// Maximum number of pages that one insertion examines for eviction. While more pages than that are
/// in use, the cache grows beyond its maximum by one page per insertion.
const EXAMINED_MAX: usize = 32;
/// Number of pages per sector bitmap block.
const CHUNK_PAGES: u64 = 256;

#[derive(Debug)]
struct Cached {
    bits: Box<[u8; PAGE_LEN]>,
    /// Position of the page in the order of last use.
    used: u64,
}

/// Cache of sector bitmap pages. Page `n` covers the sectors from `n * 2^15`.
#[derive(Debug, Default)]
pub(crate) struct SectorBitmaps {
    pages: BTreeMap<u64, Cached>,
    /// Cached pages in the order of their last use.
    order: BTreeMap<u64, u64>,
    /// Position in `order` of the page that is used next.
    next_use: u64,
    /// Pages that changed since they were last part of a commit.
    pub dirty_pages: BTreeSet<u64>,
    /// Pages that are part of the commit in progress.
    pub committing: BTreeSet<u64>,
    /// Chunks whose sector bitmap is not in the file yet and reads as zeros.
    pub new_chunks: BTreeSet<u64>,
    /// Blocks with writes in flight, and the number of these writes. The pages of these blocks are
    /// not evicted.
    pinned: BTreeMap<u64, u32>,
    /// Pages that are being read, by file offset.
    requested: BTreeMap<u64, u64>,
    /// Number of pages that insertions have examined for eviction.
    #[cfg(test)]
    examined: usize,
}

impl SectorBitmaps {
    /// Returns the numbers of the pages with the bits of a disk range.
    fn covering_pages(range: ByteRange, geometry: &Geometry) -> core::ops::Range<u64> {
        let shift = geometry.sector_shift + PAGE_SECTORS_SHIFT;
        range.offset() >> shift..(range.end().saturating_sub(1) >> shift) + 1
    }

    /// Makes the pages of a non-empty range within one chunk available. Returns the file range that
    /// must be read first; `None` if all pages are cached.
    pub(crate) fn load(
        &mut self,
        range: ByteRange,
        geometry: &Geometry,
        bat: &Bat,
    ) -> Option<ByteRange> {
        for page in Self::covering_pages(range, geometry) {
            if self.mark_used(page) {
                continue;
            }
            let chunk = page / CHUNK_PAGES;
            let entry = bat.bitmap_entry(chunk);
            if !entry.is_present() || self.new_chunks.contains(&chunk) {
                self.insert(page, Box::new([0; PAGE_LEN]), geometry);
                continue;
            }
            let offset = entry.offset().saturating_add(page % CHUNK_PAGES * PAGE_BYTES);
            self.requested.insert(offset, page);
            return ByteRange::new(offset, PAGE_BYTES);
        }
        None
    }

    /// Inserts a page that [`SectorBitmaps::load`] requested, unless the cache already contains a
    /// newer version.
    pub(crate) fn handle_page(
        &mut self,
        range: ByteRange,
        bytes: &[u8],
        geometry: &Geometry,
    ) -> Result<(), ImageError> {
        let Ok(bits) = <[u8; PAGE_LEN]>::try_from(bytes) else {
            let fault =
                ImageFault::InvalidValue { value: bytes.len() as u64, allowed: "4096 bytes" };
            return Err(ImageError::new("sector bitmap", range.offset(), fault));
        };
        if let Some(page) = self.requested.remove(&range.offset()) {
            if !self.pages.contains_key(&page) {
                self.insert(page, Box::new(bits), geometry);
            }
        }
        Ok(())
    }

    /// Moves a page to the end of the order of last use. Returns false if it is not cached.
    fn mark_used(&mut self, page: u64) -> bool {
        let Some(cached) = self.pages.get_mut(&page) else { return false };
        self.order.remove(&cached.used);
        cached.used = self.next_use;
        self.order.insert(self.next_use, page);
        self.next_use += 1;
        true
    }

    fn insert(&mut self, page: u64, bits: Box<[u8; PAGE_LEN]>, geometry: &Geometry) {
        self.evict(geometry);
        self.pages.insert(page, Cached { bits, used: self.next_use });
        self.order.insert(self.next_use, page);
        self.next_use += 1;
    }

    /// Evicts the least recently used page that may be evicted. Pages in use are moved to the end
    /// of the order, so that the next insertions do not examine them again.
    fn evict(&mut self, geometry: &Geometry) {
        for _ in 0..EXAMINED_MAX {
            if self.pages.len() < PAGES_MAX {
                return;
            }
            #[cfg(test)]
            {
                self.examined += 1;
            }
            let Some((_, oldest)) = self.order.first_key_value() else { return };
            let oldest = *oldest;
            if self.must_stay_cached(oldest, geometry) {
                self.mark_used(oldest);
            } else {
                self.order.pop_first();
                self.pages.remove(&oldest);
            }
        }
    }

    /// Returns true if a page must remain cached: it differs from the file or a write in flight
    /// will change it.
    fn must_stay_cached(&self, page: u64, geometry: &Geometry) -> bool {
        let first = page << (geometry.sector_shift + PAGE_SECTORS_SHIFT);
        let last = first + ((1 << (geometry.sector_shift + PAGE_SECTORS_SHIFT)) - 1);
        let blocks = first >> geometry.block_shift..=last >> geometry.block_shift;
        self.dirty_pages.contains(&page)
            || self.committing.contains(&page)
            || self.new_chunks.contains(&(page / CHUNK_PAGES))
            || self.pinned.range(blocks).next().is_some()
    }

    /// Records a write in flight to a block, which prevents the eviction of its pages.
    pub(crate) fn pin(&mut self, block: u64) {
        let writes = self.pinned.entry(block).or_insert(0);
        *writes = writes.saturating_add(1);
    }

    /// Records the end of a write to a block.
    pub(crate) fn unpin(&mut self, block: u64) {
        if let Some(writes) = self.pinned.get_mut(&block) {
            *writes = writes.saturating_sub(1);
            if *writes == 0 {
                self.pinned.remove(&block);
            }
        }
    }

    /// Records that no write to a block is in flight any more.
    pub(crate) fn unpin_all(&mut self, block: u64) {
        self.pinned.remove(&block);
    }

    /// Returns the state and the length in bytes of the first run of sectors in a loaded range that
    /// are all in the file (true) or all not (false).
    pub(crate) fn first_run(&self, range: ByteRange, geometry: &Geometry) -> (bool, u64) {
        let first = range.offset() >> geometry.sector_shift;
        let end = range.end() >> geometry.sector_shift;
        let is_present = self.word(first) & 1 == 1;
        let mut sector = first;
        while sector < end {
            let word = if is_present { self.word(sector) } else { !self.word(sector) };
            let run = u64::from(word.trailing_ones());
            let remaining = 64 - sector % 64;
            sector += run.min(remaining);
            if run < remaining {
                break;
            }
        }
        (is_present, (sector.min(end) - first) << geometry.sector_shift)
    }

    /// Returns the bits from a sector to the end of its 64-bit word, starting with the sector's
    /// bit.
    fn word(&self, sector: u64) -> u64 {
        let page = self.pages.get(&(sector >> PAGE_SECTORS_SHIFT));
        let index = to_usize(sector % (1 << PAGE_SECTORS_SHIFT) / 64 * 8);
        let word = page.map_or(0, |page| crate::fields::u64_at(page.bits.as_slice(), index));
        word >> (sector % 64)
    }

    /// Sets or clears the bits of a loaded range of the disk. Returns true if any bit changed.
    pub(crate) fn set(&mut self, range: ByteRange, is_present: bool, geometry: &Geometry) -> bool {
        let mut is_changed = false;
        let end = range.end() >> geometry.sector_shift;
        let mut sector = range.offset() >> geometry.sector_shift;
        while sector < end {
            let page = sector >> PAGE_SECTORS_SHIFT;
            let to = end.min((sector / 8 + 1) * 8);
            let mask = (((1_u16 << (to - sector)) - 1) << (sector % 8)) as u8;
            let index = to_usize(sector % (1 << PAGE_SECTORS_SHIFT) / 8);
            let byte = self.pages.get_mut(&page).and_then(|page| page.bits.get_mut(index));
            if let Some(byte) = byte {
                let bits = if is_present { *byte | mask } else { *byte & !mask };
                // The file does not yet contain the pages of a new bitmap.
                if bits != *byte || self.new_chunks.contains(&(page / CHUNK_PAGES)) {
                    self.dirty_pages.insert(page);
                }
                is_changed |= bits != *byte;
                *byte = bits;
            }
            sector = to;
        }
        is_changed
    }

    /// Appends the byte changes of the preceding [`SectorBitmaps::set`] with the same range to
    /// `changes`. The bits of whole bytes are equal; bytes at the ends of the range have their
    /// current value.
    pub(crate) fn push_changes(
        &self,
        range: ByteRange,
        geometry: &Geometry,
        bat: &Bat,
        changes: &mut Vec<MetadataChange>,
    ) {
        let end = range.end() >> geometry.sector_shift;
        let mut sector = range.offset() >> geometry.sector_shift;
        while sector < end {
            let page = sector >> PAGE_SECTORS_SHIFT;
            let page_end = end.min((page + 1) << PAGE_SECTORS_SHIFT);
            let full_sectors = (page_end - sector) / 8 * 8;
            let sectors =
                if sector % 8 == 0 && full_sectors > 0 { full_sectors } else { 8 - sector % 8 };
            let entry = bat.bitmap_entry(page / CHUNK_PAGES);
            let position = sector % (1 << PAGE_SECTORS_SHIFT) / 8;
            let offset = entry.offset().saturating_add(page % CHUNK_PAGES * PAGE_BYTES + position);
            let byte = self.pages.get(&page).and_then(|page| page.bits.get(to_usize(position)));
            if let (Some(byte), Some(bytes)) = (byte, ByteRange::new(offset, sectors.div_ceil(8))) {
                changes.push(MetadataChange::fill(bytes, *byte));
            }
            sector += sectors;
        }
    }

    /// Returns true if all pages of a disk range are cached.
    pub(crate) fn is_loaded(&self, range: ByteRange, geometry: &Geometry) -> bool {
        Self::covering_pages(range, geometry).all(|page| self.pages.contains_key(&page))
    }

    /// Returns file offset and contents of a cached page; `None` if it is not cached or its bitmap
    /// is not allocated.
    pub(crate) fn page(&self, page: u64, bat: &Bat) -> Option<Page> {
        let entry = bat.bitmap_entry(page / CHUNK_PAGES);
        let bits = self.pages.get(&page).filter(|_| entry.is_present())?;
        Some((entry.offset().saturating_add(page % CHUNK_PAGES * PAGE_BYTES), bits.bits.clone()))
    }
}

#[cfg(test)]
#[path = "sector_bitmap_tests.rs"]
mod tests;
