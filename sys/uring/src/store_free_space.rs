//! Estimate of a store's free space that needs no system call.

use std::sync::atomic::{AtomicU64, Ordering};

/// Space beyond the required length is allocated in advance if it is at most 1/32 of the free
/// space.
const AHEAD_SHARE: u64 = 32;
/// An extension allocates space if it is at most 1/4 of the free space.
const FREE_SPACE_DIVISOR: u64 = 4;

/// Free bytes of a store at the last query, minus the bytes that its files have allocated since.
///
/// The value is an estimate: other programs use the file system as well. It only determines how
/// much space is allocated in advance of writes. A query of the file system may block, so that I/O
/// threads do not make one.
#[derive(Debug, Default)]
pub(crate) struct StoreFreeSpace(AtomicU64);

impl StoreFreeSpace {
    /// Records the free bytes that the file system reports.
    pub(crate) fn set(&self, free_bytes: u64) {
        self.0.store(free_bytes, Ordering::Relaxed);
    }

    /// Determines up to which offset an extension allocates space, and subtracts this space from
    /// the free space. Parameters and result: see [`HostFile::claim_space`](crate::HostFile).
    pub(crate) fn claim(&self, end: u64, required: u64, len: u64) -> u64 {
        let free = self.0.load(Ordering::Relaxed);
        let allocated = if len.saturating_sub(required) <= free / AHEAD_SHARE
            && len.saturating_sub(end) <= free / FREE_SPACE_DIVISOR
        {
            len
        } else if required.saturating_sub(end) <= free / FREE_SPACE_DIVISOR {
            required
        } else {
            end
        };
        self.0.store(free.saturating_sub(allocated - end), Ordering::Relaxed);
        allocated
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn little_is_allocated_where_little_is_free() {
        let store_room = StoreFreeSpace::default();
        assert_eq!(store_room.claim(MIB, 2 * MIB, 3 * MIB), MIB, "unknown counts as full");
        store_room.set(64 * MIB);
        assert_eq!(store_room.claim(MIB, 2 * MIB, 5 * MIB), 2 * MIB);
        store_room.set(1000 * MIB);
        assert_eq!(store_room.claim(MIB, 2 * MIB, 33 * MIB), 33 * MIB);
        // The allocated space is not free any more.
        assert_eq!(store_room.claim(MIB, 2 * MIB, 33 * MIB), 2 * MIB);
        store_room.set(3 * MIB);
        assert_eq!(store_room.claim(MIB, 2 * MIB, 2 * MIB), MIB);
    }
}
