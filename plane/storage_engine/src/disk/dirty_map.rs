//! Map of the changes of a disk during a copy.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use suimon_image::ByteRange;

/// Smallest size of a region in bytes; regions of large disks are larger.
const REGION_BYTES_MIN: u64 = 64 << 10;
/// Largest number of regions: 8 MiB of bits.
const REGIONS_MAX: u64 = 1 << 26;

const WORD_BITS: u64 = u64::BITS as u64;

/// Set of regions of a disk that have changed. One thread sets marks, others clear them; no
/// operation blocks.
#[derive(Debug)]
pub struct DirtyMap {
    size: u64,
    region_bytes: u64,
    words: Vec<AtomicU64>,
    /// Number of marks. May be off by the marks that change at the time of the read.
    marks: AtomicI64,
}

impl DirtyMap {
    /// Creates a map without marks for a disk of `size` bytes.
    #[must_use]
    pub fn new(size: u64) -> Self {
        let mut region_bytes = REGION_BYTES_MIN;
        while size.div_ceil(region_bytes) > REGIONS_MAX {
            region_bytes *= 2;
        }
        let word_count = size.div_ceil(region_bytes).div_ceil(WORD_BITS);
        Self {
            size,
            region_bytes,
            words: (0..word_count).map(|_| AtomicU64::new(0)).collect(),
            marks: AtomicI64::new(0),
        }
    }

    /// Returns the size of the disk in bytes.
    #[must_use]
    pub const fn size_bytes(&self) -> u64 {
        self.size
    }

    /// Returns the size of a region in bytes: a power of two, 64 KiB or more.
    #[must_use]
    pub const fn region_bytes(&self) -> u64 {
        self.region_bytes
    }

    /// Returns the number of regions of the disk.
    #[must_use]
    pub const fn region_count(&self) -> u64 {
        self.size.div_ceil(self.region_bytes)
    }

    /// Marks the regions of a range. The part beyond the disk's end is ignored.
    pub fn mark(&self, range: ByteRange) {
        let end = range.offset().saturating_add(range.len()).min(self.size);
        if range.offset() >= end {
            return;
        }
        let (first, region_end) =
            (range.offset() / self.region_bytes, end.div_ceil(self.region_bytes));
        let mut region = first;
        while region < region_end {
            let upto = (region / WORD_BITS + 1).saturating_mul(WORD_BITS).min(region_end);
            let bits = (u64::MAX >> (WORD_BITS - (upto - region))) << (region % WORD_BITS);
            let Some(cell) = self.words.get((region / WORD_BITS) as usize) else { return };
            // The data is written before the mark is set, so a reader that finds the mark reads the
            // new data.
            let before = cell.fetch_or(bits, Ordering::AcqRel);
            let new = (bits & !before).count_ones();
            if new > 0 {
                self.marks.fetch_add(new.into(), Ordering::Relaxed);
            }
            region = upto;
        }
    }

    /// Clears the mark of the region with this number. Returns true if it was set.
    pub fn clear(&self, region: u64) -> bool {
        let Some(bits) = self.words.get((region / WORD_BITS) as usize) else { return false };
        let bit = 1 << (region % WORD_BITS);
        let was_marked = bits.fetch_and(!bit, Ordering::AcqRel) & bit != 0;
        if was_marked {
            self.marks.fetch_sub(1, Ordering::Relaxed);
        }
        was_marked
    }

    /// Returns true if the region with this number is marked.
    #[must_use]
    pub fn is_marked(&self, region: u64) -> bool {
        let bits = self.words.get((region / WORD_BITS) as usize);
        bits.is_some_and(|bits| bits.load(Ordering::Acquire) >> (region % WORD_BITS) & 1 != 0)
    }

    /// Returns the number of the first marked region from number `region` on; `None` if there is
    /// none.
    #[must_use]
    pub fn next_marked(&self, region: u64) -> Option<u64> {
        let mut mask = u64::MAX << (region % WORD_BITS);
        for (number, bits) in self.words.iter().enumerate().skip((region / WORD_BITS) as usize) {
            let found_bits = bits.load(Ordering::Acquire) & mask;
            if found_bits != 0 {
                return Some(number as u64 * WORD_BITS + u64::from(found_bits.trailing_zeros()));
            }
            mask = u64::MAX;
        }
        None
    }

    /// Returns the number of marked regions. May be off by marks that change at the same time.
    #[must_use]
    pub fn marked_region_count(&self) -> u64 {
        u64::try_from(self.marks.load(Ordering::Relaxed)).unwrap_or(0)
    }

    /// Returns the size of the marked regions in bytes, limited to the size of the disk.
    #[must_use]
    pub fn dirty_bytes(&self) -> u64 {
        self.marked_region_count().saturating_mul(self.region_bytes).min(self.size)
    }
}
