//! Memory shared with a front-end other than guest memory: fields of fixed widths at checked
//! offsets.
#![allow(unsafe_code, reason = "reads and writes memory that another process maps too")]

use core::sync::atomic::{AtomicU8, AtomicU16, AtomicU64, Ordering};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use crate::fault::MemoryError;
use crate::region::{Region, RegionSpec};

/// Maximum length of a mapping in bytes. A dirty page log of this length covers 32 TiB.
const BYTES_MAX: u64 = 1 << 30;

/// Mapping of a shared file. A field outside of it reads as 0 and is not written: such an offset
/// can only result from an error in this crate, which must not cause an access outside the mapping.
pub(crate) struct SharedMap {
    region: Region,
}

impl SharedMap {
    /// Maps `bytes` bytes at `offset` of a file.
    ///
    /// # Errors
    /// As [`Region::map`], or the mapping is longer than [`BYTES_MAX`].
    pub(crate) fn new(fd: BorrowedFd<'_>, offset: u64, bytes: u64) -> Result<Self, MemoryError> {
        let spec = RegionSpec { guest_addr: 0, size: bytes, user_addr: 0, mmap_offset: offset, fd };
        if bytes > BYTES_MAX {
            return Err(MemoryError::DeviceLimit { index: 0, size: bytes, max: BYTES_MAX });
        }
        Ok(Self { region: Region::map(0, &spec, &Arc::default())? })
    }

    /// Returns the length of the mapping in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.region.size()
    }

    /// Returns true if 64-bit fields at offsets that are multiples of 8 are aligned.
    pub(crate) fn is_aligned(&self) -> bool {
        self.region.base() as usize % 8 == 0
    }

    /// Returns the location of a field of `bytes` bytes at `offset`; `None` if it is outside the
    /// mapping or not aligned to its size.
    #[inline]
    fn cell(&self, offset: usize, bytes: usize) -> Option<*mut u8> {
        let end = offset.checked_add(bytes)?;
        let is_inside = end as u64 <= self.region.size();
        let cell = self.region.base().wrapping_add(offset);
        (is_inside && cell as usize % bytes == 0).then_some(cell)
    }

    #[inline]
    fn cell_8(&self, offset: usize) -> Option<&AtomicU8> {
        // SAFETY: the cell lies inside the mapping, which lives as long as `self`.
        self.cell(offset, 1).map(|cell| unsafe { AtomicU8::from_ptr(cell) })
    }

    #[inline]
    fn cell_16(&self, offset: usize) -> Option<&AtomicU16> {
        // SAFETY: as above; it is aligned.
        self.cell(offset, 2).map(|cell| unsafe { AtomicU16::from_ptr(cell.cast()) })
    }

    #[inline]
    fn cell_64(&self, offset: usize) -> Option<&AtomicU64> {
        // SAFETY: as above; it is aligned.
        self.cell(offset, 8).map(|cell| unsafe { AtomicU64::from_ptr(cell.cast()) })
    }

    /// Sets `bits` of a byte atomically. A reader that sees the bits sees earlier writes.
    #[inline]
    pub(crate) fn set_bits_8(&self, offset: usize, bits: u8) {
        if let Some(cell) = self.cell_8(offset) {
            cell.fetch_or(bits, Ordering::AcqRel);
        }
    }

    /// Reads and clears a byte atomically, as the reader of a dirty page log does.
    #[cfg(test)]
    pub(crate) fn take_8(&self, offset: usize) -> u8 {
        self.cell_8(offset).map_or(0, |cell| cell.swap(0, Ordering::AcqRel))
    }

    #[inline]
    pub(crate) fn load_8(&self, offset: usize) -> u8 {
        self.cell_8(offset).map_or(0, |cell| cell.load(Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn load_16(&self, offset: usize) -> u16 {
        self.cell_16(offset).map_or(0, |cell| cell.load(Ordering::Acquire))
    }

    #[inline]
    pub(crate) fn load_64(&self, offset: usize) -> u64 {
        self.cell_64(offset).map_or(0, |cell| cell.load(Ordering::Acquire))
    }

    /// Stores a byte. Stores become visible in program order.
    #[inline]
    pub(crate) fn store_8(&self, offset: usize, value: u8) {
        if let Some(cell) = self.cell_8(offset) {
            cell.store(value, Ordering::Release);
        }
    }

    #[inline]
    pub(crate) fn store_16(&self, offset: usize, value: u16) {
        if let Some(cell) = self.cell_16(offset) {
            cell.store(value, Ordering::Release);
        }
    }

    #[inline]
    pub(crate) fn store_64(&self, offset: usize, value: u64) {
        if let Some(cell) = self.cell_64(offset) {
            cell.store(value, Ordering::Release);
        }
    }
}
