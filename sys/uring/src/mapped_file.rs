//! A file in memory, mapped: its pages are copied from and to without a system call.
//!
//! Only pages that the file is known to have are touched. A hole that is read through a
//! mapping would get a page, and one that is written would be a `SIGBUS` where the file system
//! is full, so holes are the kernel's to read and to fill. What the pages are is found when the
//! file is opened, and kept up with what is done by this process; what others do meanwhile
//! costs memory or a system call, never bytes: of a file that they cut short the mapping
//! is given up ([`CutGuard`]).
#![allow(unsafe_code, reason = "maps files and copies from and to memory that clients share")]

use core::ffi::c_void;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU64, Ordering};
use std::os::fd::BorrowedFd;

use rustix::fs::SeekFrom;
use rustix::mm::{Advice, MapFlags, ProtFlags};
use suimon_mapping::CutGuard;

use crate::pages::Pages;

/// Of larger files the first so many bytes are mapped. Address space is taken for all of them,
/// because files grow.
const MAPPED_BYTES: usize = 16 << 30;
/// Pieces of a file between holes that are looked for when it is opened.
const PIECES_MAX: usize = 16_384;

/// The mapping of one file.
#[derive(Debug)]
pub(crate) struct MappedFile {
    base: NonNull<u8>,
    can_write: bool,
    /// Pages that the file has.
    pages: Pages,
    /// The file has at least so many bytes. A page's bytes behind the end are in memory,
    /// and are no part of the file.
    end: AtomicU64,
    /// Taken back before the mapping goes.
    guard: Option<CutGuard>,
}

// SAFETY: it is plain shared memory; the pointer is only used for copies that tolerate
// others' writes, and is unmapped by the last owner.
unsafe impl Send for MappedFile {}
// SAFETY: as above.
unsafe impl Sync for MappedFile {}

impl MappedFile {
    /// Maps a file of `len` bytes. `None`: the host refuses; everything can be done without.
    pub(crate) fn new(fd: BorrowedFd<'_>, can_write: bool, len: u64) -> Option<Self> {
        let write = if can_write { ProtFlags::WRITE } else { ProtFlags::empty() };
        let flags = MapFlags::SHARED | MapFlags::NORESERVE;
        // SAFETY: a new mapping at an address of the kernel's choice.
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
            pages: Pages::new(MAPPED_BYTES as u64),
            end: AtomicU64::new(len),
            guard: None,
        };
        // Programs that are started have no use for it, nor has who reads a crashed daemon.
        for advice in [Advice::LinuxDontFork, Advice::LinuxDontDump] {
            // SAFETY: it changes nothing of what the mapping shows to this process.
            let _ = unsafe { rustix::mm::madvise(base.as_ptr().cast(), MAPPED_BYTES, advice) };
        }
        let start = base.as_ptr() as usize;
        mapped.guard = Some(CutGuard::new(start, MAPPED_BYTES, rustix::param::page_size()).ok()?);
        mapped.find_pages(fd);
        Some(mapped)
    }

    fn find_pages(&self, fd: BorrowedFd<'_>) {
        let mut at = 0;
        for _ in 0..PIECES_MAX {
            let Ok(data) = rustix::fs::seek(fd, SeekFrom::Data(at)) else { return };
            let Ok(hole) = rustix::fs::seek(fd, SeekFrom::Hole(data)) else { return };
            self.pages.add(data, hole.saturating_sub(data));
            at = hole;
        }
    }

    /// Copies from the file to `pieces`. `false`: it could not be done so, and what is in
    /// `pieces` means nothing.
    ///
    /// # Safety
    /// The pieces may be written, and nobody holds a reference into them.
    #[inline]
    pub(crate) unsafe fn read(&self, offset: u64, pieces: &[libc::iovec]) -> bool {
        let Some(place) = self.place(offset, bytes_of(pieces)) else { return false };
        let mut from = place;
        for piece in pieces {
            // SAFETY: `place` found as many bytes to be mapped as the pieces have; a mapping
            // of our own overlaps nobody's memory.
            unsafe {
                piece.iov_base.cast::<u8>().copy_from_nonoverlapping(from, piece.iov_len);
                from = from.add(piece.iov_len);
            }
        }
        !self.is_given_up()
    }

    /// Copies `pieces` to the file. `false`: it could not be done so, and none or some of it
    /// was done.
    ///
    /// # Safety
    /// The pieces may be read.
    #[inline]
    pub(crate) unsafe fn write(&self, offset: u64, pieces: &[libc::iovec]) -> bool {
        let len = bytes_of(pieces);
        if !self.can_write || offset.saturating_add(len) > self.end.load(Ordering::Relaxed) {
            return false;
        }
        let Some(place) = self.place(offset, len) else { return false };
        let mut to = place;
        for piece in pieces {
            // SAFETY: as in `read`.
            unsafe {
                to.copy_from_nonoverlapping(piece.iov_base.cast(), piece.iov_len);
                to = to.add(piece.iov_len);
            }
        }
        !self.is_given_up()
    }

    /// Where a range is mapped, if the file has all its pages.
    #[inline]
    fn place(&self, offset: u64, len: u64) -> Option<*mut u8> {
        if self.is_given_up() || !self.pages.has(offset, len) {
            return None;
        }
        // SAFETY: pages are there for what is mapped, and no more.
        Some(unsafe { self.base.as_ptr().add(offset as usize) })
    }

    /// Whether somebody was found to have cut the file short.
    fn is_given_up(&self) -> bool {
        self.guard.as_ref().is_none_or(CutGuard::is_cut)
    }

    /// Bytes were written by the kernel, which has given them pages.
    pub(crate) fn handle_written(&self, offset: u64, len: u64) {
        self.end.fetch_max(offset.saturating_add(len), Ordering::Relaxed);
        self.pages.add(offset, len);
    }

    /// A range is to be a hole, or to be zeros in some other way.
    pub(crate) fn handle_zeroing(&self, offset: u64, len: u64) {
        self.pages.remove(offset, len);
    }

    /// The file is to end there. It is taken to be longer only where something is written.
    pub(crate) fn handle_len(&self, len: u64) {
        self.end.fetch_min(len, Ordering::Relaxed);
        self.pages.remove(len, u64::MAX);
    }
}

fn bytes_of(pieces: &[libc::iovec]) -> u64 {
    pieces.iter().fold(0, |sum, piece| sum.saturating_add(piece.iov_len as u64))
}

impl Drop for MappedFile {
    fn drop(&mut self) {
        self.guard = None;
        // SAFETY: the mapping was made by `new`, and nobody holds it any more.
        let unmapped =
            unsafe { rustix::mm::munmap(self.base.as_ptr().cast::<c_void>(), MAPPED_BYTES) };
        debug_assert!(unmapped.is_ok(), "munmap: {unmapped:?}");
    }
}
