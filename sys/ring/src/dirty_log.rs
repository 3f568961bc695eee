//! Dirty page log for live migration (vhost-user, "Migration").
//!
//! The log has one bit per 4 KiB page of guest-physical memory, in a file of the front-end
//! (`VHOST_USER_SET_LOG_BASE`). Bits are set atomically, because the front-end clears bits
//! concurrently. A bit is set immediately after the write that it records: if it were set before,
//! the front-end could copy the page in between. It is set before the ring reports the buffer as
//! used: otherwise the write could be missing in the log.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault::LogError;
use crate::shared_map::SharedMap;

/// Number of bytes of guest memory per bit (`VHOST_LOG_PAGE`).
pub const LOG_PAGE_BYTES: u64 = 4096;

/// Dirty page log of one device, shared by its rings.
pub struct DirtyLog {
    map: SharedMap,
    out_of_range_writes: AtomicU64,
}

impl core::fmt::Debug for DirtyLog {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DirtyLog").field("bytes", &self.map.bytes()).finish_non_exhaustive()
    }
}

impl DirtyLog {
    /// Maps the log: `bytes` bytes at `offset` of the file `fd`.
    ///
    /// # Errors
    /// The file is too short, not in memory (tmpfs or hugetlbfs), or cannot be mapped.
    pub fn map(fd: BorrowedFd<'_>, offset: u64, bytes: u64) -> Result<Self, LogError> {
        let map = SharedMap::new(fd, offset, bytes).map_err(|source| LogError { source })?;
        Ok(Self { map, out_of_range_writes: AtomicU64::new(0) })
    }

    /// Returns the number of pages that the log has a bit for, counted from guest-physical address
    /// 0.
    pub fn page_count(&self) -> u64 {
        self.map.bytes().saturating_mul(8)
    }

    /// Returns the number of writes to pages for which the log has no bit. If it is not 0, the
    /// front-end has made the log too short, and the migrated memory may be incomplete.
    pub fn out_of_range_writes(&self) -> u64 {
        self.out_of_range_writes.load(Ordering::Relaxed)
    }

    /// Marks the pages of `bytes` bytes that were written at guest address `addr`.
    pub fn mark(&self, addr: u64, bytes: u64) {
        let Some(behind_first) = bytes.checked_sub(1) else { return };
        let first = addr / LOG_PAGE_BYTES;
        let last = addr.saturating_add(behind_first) / LOG_PAGE_BYTES;
        let Some(last_logged) = self.page_count().checked_sub(1) else { return };
        if last > last_logged {
            self.out_of_range_writes.fetch_add(1, Ordering::Relaxed);
        }
        for page in first..=last.min(last_logged) {
            self.map.set_bits_8((page / 8) as usize, 1 << (page % 8));
        }
    }
}

/// Dirty page log of the device, as one ring uses it.
#[derive(Clone, Debug)]
pub struct RingLog {
    /// Log of the device that the ring belongs to.
    pub log: Arc<DirtyLog>,
    /// Guest-physical address under which writes to the used ring (packed ring: to the device's
    /// event suppression structure) are logged; `None` if they are not logged (`VHOST_VRING_F_LOG`,
    /// and `log` of `VHOST_USER_SET_VRING_ADDR`).
    pub used_addr: Option<u64>,
}

impl RingLog {
    /// Records a write of `bytes` bytes to a buffer at guest address `addr`.
    #[inline]
    pub(crate) fn mark_buffer(&self, addr: u64, bytes: usize) {
        self.log.mark(addr, bytes as u64);
    }

    /// Records a write of `bytes` bytes at `offset` of the used ring, if these are logged.
    #[inline]
    pub(crate) fn mark_used(&self, offset: usize, bytes: usize) {
        if let Some(used_addr) = self.used_addr {
            self.log.mark(used_addr.saturating_add(offset as u64), bytes as u64);
        }
    }
}

#[cfg(test)]
#[path = "dirty_log_tests.rs"]
mod tests;
