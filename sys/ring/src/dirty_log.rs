//! The log of written pages, for a live migration (vhost-user, "Migration").
//!
//! One bit per page of 4 KB of guest-physical memory, in a file that the
//! front-end passed (`VHOST_USER_SET_LOG_BASE`). A bit is set atomically, because
//! the front-end takes bits out at the same time, and after the write it tells
//! of, at once: a page that was marked first could be copied between the two, and
//! a page marked later than the ring says it was used would be lost.

use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::fault::LogError;
use crate::shared_map::SharedMap;

/// Bytes of guest memory behind one bit (`VHOST_LOG_PAGE`).
pub const LOG_PAGE_BYTES: u64 = 4096;

/// The log of one device, shared by its rings.
pub struct DirtyLog {
    map: SharedMap,
    beyond: AtomicU64,
}

impl core::fmt::Debug for DirtyLog {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("DirtyLog").field("bytes", &self.map.bytes()).finish_non_exhaustive()
    }
}

impl DirtyLog {
    /// Maps the log: `bytes` bytes at `offset` of the file.
    ///
    /// # Errors
    /// The file is too short, not a regular one, or cannot be mapped.
    pub fn map(fd: BorrowedFd<'_>, offset: u64, bytes: u64) -> Result<Self, LogError> {
        let map = SharedMap::new(fd, offset, bytes).map_err(|source| LogError { source })?;
        Ok(Self { map, beyond: AtomicU64::new(0) })
    }

    /// Pages that the log has bits for, from guest address 0 on.
    pub fn pages(&self) -> u64 {
        self.map.bytes().saturating_mul(8)
    }

    /// How often something was written behind the last page of the log. The
    /// front-end made it too short then; the guest's memory may arrive
    /// incomplete.
    pub fn beyond(&self) -> u64 {
        self.beyond.load(Ordering::Relaxed)
    }

    /// Marks the pages of `bytes` bytes that were written at a guest address.
    pub fn mark(&self, addr: u64, bytes: u64) {
        let Some(behind_first) = bytes.checked_sub(1) else { return };
        let first = addr / LOG_PAGE_BYTES;
        let last = addr.saturating_add(behind_first) / LOG_PAGE_BYTES;
        let Some(last_logged) = self.pages().checked_sub(1) else { return };
        if last > last_logged {
            self.beyond.fetch_add(1, Ordering::Relaxed);
        }
        for page in first..=last.min(last_logged) {
            self.map.set_bits_8((page / 8) as usize, 1 << (page % 8));
        }
    }
}

/// What a ring needs to log its writes.
#[derive(Clone, Debug)]
pub struct RingLog {
    /// The device's log.
    pub log: Arc<DirtyLog>,
    /// The guest address of the used ring (of a packed ring: of the device's event
    /// suppression structure), if writes to the ring itself are to be logged
    /// (`VHOST_VRING_F_LOG`, and `log` of `VHOST_USER_SET_VRING_ADDR`).
    pub used_addr: Option<u64>,
}

impl RingLog {
    /// Something was written into a buffer.
    #[inline]
    pub(crate) fn note_buffer(&self, addr: u64, bytes: usize) {
        self.log.mark(addr, bytes as u64);
    }

    /// `bytes` bytes at `offset` of the used ring were written.
    #[inline]
    pub(crate) fn note_used(&self, offset: usize, bytes: usize) {
        if let Some(used_addr) = self.used_addr {
            self.log.mark(used_addr.saturating_add(offset as u64), bytes as u64);
        }
    }
}

#[cfg(test)]
#[path = "dirty_log_tests.rs"]
mod tests;
