//! Mapping of a file in memory (tmpfs), through which its pages are copied without a system call.
//!
//! Only pages that the file is known to have are accessed. Reading a hole through a mapping would
//! allocate a page. Writing to a hole would raise `SIGBUS` if the file system is full. Holes are
//! therefore accessed by system calls. The set of allocated pages is determined when the file is
//! opened, and updated by the operations of this process. Concurrent changes by other processes
//! cost memory or a system call, but never corrupt data. If another process truncates the file, the
//! mapping is not used any more ([`TruncationGuard`]).
#![allow(unsafe_code, reason = "maps files and copies from and to memory that clients share")]

use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::os::fd::BorrowedFd;

use rustix::fs::SeekFrom;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use suimon_mapping::TruncationGuard;

use crate::page_set::PageSet;

/// Maximum number of mapped bytes of a file, from its beginning. This address space is reserved for
/// each file, because files grow.
const MAPPED_BYTES: usize = 16 << 30;
/// Maximum number of data extents that are searched when a file is opened.
const EXTENTS_MAX: usize = 16_384;

/// Mapping of one file in memory.
#[derive(Debug)]
pub(crate) struct MappedFile {
    base: NonNull<u8>,
    can_write: bool,
    /// Pages that the file is known to have, without holes.
    pages: PageSet,
    /// Lower bound of the file's length. Bytes of a page beyond the end exist in memory but do not
    /// belong to the file.
    end: AtomicU64,
    /// Guard against truncation; dropped before the mapping.
    guard: Option<TruncationGuard>,
}

// SAFETY: plain shared memory; the pointer is only used for copies that tolerate concurrent writes,
// and is unmapped by the last owner.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps a file of `len` bytes. Returns `None` if the kernel rejects the mapping; all I/O then
    /// uses system calls.
    pub(crate) fn new(fd: BorrowedFd<'_>, can_write: bool, len: u64) -> Option<Self> {
        let write = if can_write { ProtFlags::WRITE } else { ProtFlags::empty() };
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: creates a new mapping at an address chosen by the kernel.
        let map = unsafe {
            rustix::mm::mmap(
                core::ptr::null_mut(),
                MAPPED_BYTES,
                ProtFlags::READ | write,
                flags,
                fd,
                0,
            )
        };
        let base = NonNull::new(map.ok()?.cast::<u8>())?;
        let mut mapped = Self {
            base,
            can_write,
            pages: PageSet::new(MAPPED_BYTES as u64),
            end: AtomicU64::new(len),
            guard: None,
        };
        // Child processes do not need the mapping, and core dumps must not contain it.
        for advice in [Advice::LinuxDontFork, Advice::LinuxDontDump] {
            // SAFETY: does not change what the mapping contains for this process.
            let _ = unsafe { rustix::mm::madvise(base.as_ptr().cast(), MAPPED_BYTES, advice) };
        }
        let start = base.as_ptr() as usize;
        mapped.guard =
            Some(TruncationGuard::new(start, MAPPED_BYTES, rustix::param::page_size()).ok()?);
        mapped.find_pages(fd);
        Some(mapped)
    }

    fn find_pages(&self, fd: BorrowedFd<'_>) {
        let mut offset = 0;
        for _ in 0..EXTENTS_MAX {
            let Ok(data) = rustix::fs::seek(fd, SeekFrom::Data(offset)) else { return };
            let Ok(hole) = rustix::fs::seek(fd, SeekFrom::Hole(data)) else { return };
            self.pages.add(data, hole.saturating_sub(data));
            offset = hole;
        }
    }

    /// Copies bytes from `offset` in the file to `iovecs`. Returns false if the range has a hole,
    /// exceeds the file or the mapping, or the mapping is abandoned; the contents of `iovecs` are
    /// then undefined.
    ///
    /// # Safety
    /// The segments must be valid for writes, and no reference into them may exist.
    #[inline]
    pub(crate) unsafe fn read(&self, offset: u64, iovecs: &[libc::iovec]) -> bool {
        let Some(pointer) = self.pointer_to(offset, total_bytes(iovecs)) else { return false };
        let mut from = pointer;
        for iovec in iovecs {
            // SAFETY: `pointer_to` ensures that as many bytes are mapped as the segments have; the
            // mapping overlaps no other memory.
            unsafe {
                iovec.iov_base.cast::<u8>().copy_from_nonoverlapping(from, iovec.iov_len);
                from = from.add(iovec.iov_len);
            }
        }
        !self.is_abandoned()
    }

    /// Copies `iovecs` to the file at `offset`. Returns false if the range has a hole or exceeds
    /// the mapping, or the mapping is abandoned; some bytes may have been written.
    ///
    /// # Safety
    /// The segments must be valid for reads.
    #[inline]
    pub(crate) unsafe fn write(&self, offset: u64, iovecs: &[libc::iovec]) -> bool {
        let len = total_bytes(iovecs);
        if !self.can_write || offset.saturating_add(len) > self.end.load(Ordering::Relaxed) {
            return false;
        }
        let Some(pointer) = self.pointer_to(offset, len) else { return false };
        let mut to = pointer;
        for iovec in iovecs {
            // SAFETY: as in `read`.
            unsafe {
                to.copy_from_nonoverlapping(iovec.iov_base.cast(), iovec.iov_len);
                to = to.add(iovec.iov_len);
            }
        }
        !self.is_abandoned()
    }

    /// Returns the address of a range; `None` unless the file is known to have all of its pages.
    #[inline]
    fn pointer_to(&self, offset: u64, len: u64) -> Option<*mut u8> {
        if self.is_abandoned() || !self.pages.has(offset, len) {
            return None;
        }
        // SAFETY: `pages` contains pages of the mapped range only.
        Some(unsafe { self.base.as_ptr().add(offset as usize) })
    }

    /// Returns true if another process has truncated the file, so that the mapping must not be
    /// used.
    fn is_abandoned(&self) -> bool {
        self.guard.as_ref().is_none_or(TruncationGuard::is_truncated)
    }

    /// Records that the file has the pages of a range, to which the kernel has written.
    pub(crate) fn handle_written(&self, offset: u64, len: u64) {
        self.end.fetch_max(offset.saturating_add(len), Ordering::Relaxed);
        self.pages.add(offset, len);
    }

    /// Records that the pages of a range may become holes. Must be called before the range is
    /// zeroed.
    pub(crate) fn handle_zeroing(&self, offset: u64, len: u64) {
        self.pages.remove(offset, len);
    }

    /// Updates the length after a truncation to `len`. An increased length takes effect only when
    /// data is written.
    pub(crate) fn handle_len(&self, len: u64) {
        self.end.fetch_min(len, Ordering::Relaxed);
        self.pages.remove(len, u64::MAX);
    }
}

fn total_bytes(iovecs: &[libc::iovec]) -> u64 {
    iovecs.iter().fold(0, |sum, iovec| sum.saturating_add(iovec.iov_len as u64))
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        self.guard = None;
        // SAFETY: the mapping was created by `new`, and nothing uses it any more.
        let unmapped =
            unsafe { rustix::mm::munmap(self.base.as_ptr().cast::<c_void>(), MAPPED_BYTES) };
        debug_assert!(unmapped.is_ok(), "munmap: {unmapped:?}");
    }
}
