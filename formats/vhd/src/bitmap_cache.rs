//! Cache of the sector bitmaps of partially allocated blocks.
//!
//! Invariants
//! - A bitmap with uncommitted changes is not evicted, nor is one with writes in flight to its
//!   block.
//! - A bitmap that has changed since it was read is not evicted during a further read of it,
//!   because that read may return the older version.

use std::collections::{BTreeMap, VecDeque};

use suimon_image::ByteRange;

use crate::bitmap;

/// Maximum size of the cache in bytes; it holds at least [`BITMAPS_MIN`] bitmaps in any case.
/// Bitmaps needed by writes in flight and by the current request are kept beyond that.
const BYTES_MAX: u64 = 4 << 20;
const BITMAPS_MIN: u64 = 8;
/// Maximum number of bitmaps that one insertion examines for eviction. While more bitmaps than that
/// are in use, the cache grows beyond its maximum by one bitmap per insertion.
const EXAMINED_MAX: usize = 32;

/// Sector bitmap of one block.
#[derive(Debug, Default)]
pub(crate) struct SectorBitmap {
    pub(crate) bits: Box<[u8]>,
    /// Number of writes to the block that are in flight.
    pub(crate) writes_in_flight: u32,
    /// True if the bitmap has changes that are not durable.
    pub(crate) is_dirty: bool,
    has_changed: bool,
}

impl SectorBitmap {
    /// Returns the bitmap, of `bytes` bytes, of a block that has no sectors in the file and
    /// `writes` writes in flight.
    pub(crate) fn empty(bytes: usize, writes: u32) -> Self {
        let bits = vec![0; bytes].into_boxed_slice();
        Self { bits, writes_in_flight: writes, is_dirty: false, has_changed: false }
    }

    /// Sets the bits of the sectors `start .. end`. Returns true if any bit changed.
    pub(crate) fn set(&mut self, start: u64, end: u64) -> bool {
        let changed = bitmap::set(&mut self.bits, start, end);
        self.has_changed |= changed;
        changed
    }
}

/// Cached bitmaps by block number.
#[derive(Debug)]
pub(crate) struct BitmapCache {
    maps: BTreeMap<u32, SectorBitmap>,
    /// Block numbers in the order in which their bitmaps were inserted. Bitmaps may have been
    /// removed meanwhile.
    order: VecDeque<u32>,
    /// Bitmap reads in flight, by file offset: block number and number of requests.
    reads: BTreeMap<u64, (u32, u32)>,
    bitmap_bytes: u64,
    /// Number of bitmaps that insertions have examined for eviction.
    #[cfg(test)]
    examined: usize,
}

impl BitmapCache {
    pub(crate) fn new(bitmap_bytes: u64) -> Self {
        Self {
            maps: BTreeMap::new(),
            order: VecDeque::new(),
            reads: BTreeMap::new(),
            bitmap_bytes,
            #[cfg(test)]
            examined: 0,
        }
    }

    /// Returns the maximum number of cached bitmaps.
    pub(crate) fn capacity(&self) -> usize {
        let maps = (BYTES_MAX / self.bitmap_bytes.max(1)).max(BITMAPS_MIN);
        usize::try_from(maps).unwrap_or(usize::MAX)
    }

    pub(crate) fn bitmap(&self, block: u32) -> Option<&SectorBitmap> {
        self.maps.get(&block)
    }

    pub(crate) fn bitmap_mut(&mut self, block: u32) -> Option<&mut SectorBitmap> {
        self.maps.get_mut(&block)
    }

    /// Records that a read of the bitmap of `block` from file range `range` begins.
    pub(crate) fn begin_read(&mut self, range: ByteRange, block: u32) {
        let (_, times) = self.reads.entry(range.offset()).or_insert((block, 0));
        *times = times.saturating_add(1);
    }

    /// Records that a read ended, successfully or not. Returns the block whose bitmap it was, or
    /// `None` if no such read was recorded.
    pub(crate) fn end_read(&mut self, range: ByteRange) -> Option<u32> {
        let (block, times) = self.reads.get_mut(&range.offset())?;
        let block = *block;
        *times = times.saturating_sub(1);
        if *times == 0 {
            self.reads.remove(&range.offset());
        }
        Some(block)
    }

    /// Inserts the bitmap of a block and evicts others, except those in use and those of blocks in
    /// `protected`.
    pub(crate) fn insert(
        &mut self,
        block: u32,
        map: SectorBitmap,
        protected: core::ops::RangeInclusive<u32>,
    ) {
        if self.maps.insert(block, map).is_none() {
            self.order.push_back(block);
        }
        self.evict(&protected);
    }

    pub(crate) fn insert_read(
        &mut self,
        block: u32,
        bytes: &[u8],
        protected: core::ops::RangeInclusive<u32>,
    ) {
        let map = SectorBitmap { bits: bytes.into(), ..SectorBitmap::default() };
        self.insert(block, map, protected);
    }

    /// Removes a block's bitmap from the cache and returns it.
    pub(crate) fn remove(&mut self, block: u32) -> Option<SectorBitmap> {
        self.maps.remove(&block)
    }

    fn evict(&mut self, protected: &core::ops::RangeInclusive<u32>) {
        let reads = &self.reads;
        for _ in 0..self.order.len().min(EXAMINED_MAX) {
            if self.order.len() <= self.capacity() {
                break;
            }
            #[cfg(test)]
            {
                self.examined += 1;
            }
            let Some(block) = self.order.pop_front() else { break };
            let is_needed = |map: &SectorBitmap| {
                map.is_dirty
                    || map.writes_in_flight > 0
                    || (map.has_changed
                        && reads.values().any(|(read_block, _)| *read_block == block))
            };
            if protected.contains(&block) || self.maps.get(&block).is_some_and(is_needed) {
                self.order.push_back(block);
            } else {
                self.maps.remove(&block);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unneeded_bitmaps_are_evicted() {
        // Bitmaps so large that the cache holds only the minimum number.
        let len = BYTES_MAX;
        let mut cache = BitmapCache::new(len);
        let block_range = |block: u32| ByteRange::new(u64::from(block) * len, len).unwrap();
        for block in 0..6 {
            cache.insert_read(block, &[0; 4], block..=block);
        }
        cache.bitmap_mut(0).unwrap().is_dirty = true;
        cache.bitmap_mut(1).unwrap().writes_in_flight = 1;
        // This bitmap has changed since it was read, and is being read again.
        cache.bitmap_mut(2).unwrap().set(3, 4);
        cache.begin_read(block_range(2), 2);
        // This bitmap is being read again without changes.
        cache.begin_read(block_range(3), 3);
        for block in 6..30 {
            cache.insert_read(block, &[0; 4], 4..=4);
        }
        let cached: Vec<u32> = (0..30).filter(|block| cache.bitmap(*block).is_some()).collect();
        assert_eq!(cached, [0, 1, 2, 4, 26, 27, 28, 29]);
        assert_eq!(cached.len(), cache.capacity());

        cache.bitmap_mut(0).unwrap().is_dirty = false;
        cache.bitmap_mut(1).unwrap().writes_in_flight = 0;
        assert_eq!(
            (cache.end_read(block_range(2)), cache.end_read(block_range(2))),
            (Some(2), None)
        );
        for block in 30..40 {
            cache.insert_read(block, &[0; 4], block..=block);
        }
        assert!((0..30).all(|block| cache.bitmap(block).is_none()));
    }

    #[test]
    fn an_insertion_into_a_full_cache_examines_few_bitmaps() {
        const INSERTED: usize = 200;
        let mut cache = BitmapCache::new(512);
        let capacity = cache.capacity() as u32;
        for block in 0..capacity {
            cache.insert_read(block, &[0; 4], block..=block);
            cache.bitmap_mut(block).unwrap().is_dirty = true;
        }
        for block in capacity..capacity + INSERTED as u32 {
            cache.insert_read(block, &[0; 4], block..=block);
        }
        assert_eq!(cache.examined, INSERTED * EXAMINED_MAX, "of {capacity} bitmaps in use");
        assert_eq!(cache.maps.len(), cache.capacity() + INSERTED);
        for block in 0..capacity {
            cache.bitmap_mut(block).unwrap().is_dirty = false;
        }
        for block in 0..INSERTED as u32 {
            cache.insert_read(2 * capacity + block, &[0; 4], 0..=0);
        }
        assert_eq!(cache.maps.len(), cache.capacity());
    }
}
