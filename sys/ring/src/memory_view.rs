//! Access of one ring to guest memory: copies in both directions. Caches the most recently used
//! region.
#![allow(unsafe_code, reason = "copies in and out of memory that is shared with a VM")]

use std::sync::Arc;

use crate::copy::copy;
use crate::memory::{GuestMemory, OutOfRange, RegionTranslation};
use crate::prefetch::prefetch;

/// Guest memory and the most recently used region of one ring.
pub(crate) struct MemoryView {
    memory: Arc<GuestMemory>,
    cached: RegionTranslation,
}

impl MemoryView {
    pub(crate) fn new(memory: Arc<GuestMemory>) -> Self {
        Self { memory, cached: RegionTranslation::EMPTY }
    }

    pub(crate) fn memory(&self) -> &Arc<GuestMemory> {
        &self.memory
    }

    /// Copies guest memory at the guest-physical address `addr` to `buffer`.
    #[inline(always)]
    pub(crate) fn read(&mut self, addr: u64, buffer: &mut [u8]) -> Result<(), OutOfRange> {
        match self.pointer(addr, buffer.len()) {
            Some(src) => {
                // SAFETY: `src` is mapped for the length of `buffer`; our own memory
                // and the guest's do not overlap.
                unsafe { copy(src, buffer.as_mut_ptr(), buffer.len()) }
                Ok(())
            }
            None => self.for_each_range(addr, buffer.len(), |src, offset, bytes| {
                // SAFETY: `for_each_range` stays inside the mapping and inside `buffer`.
                unsafe { copy(src, buffer.as_mut_ptr().add(offset), bytes) }
            }),
        }
    }

    /// Checks that `bytes` bytes at a guest-physical address are in guest memory.
    #[inline(always)]
    pub(crate) fn check(&mut self, addr: u64, bytes: usize) -> Result<(), OutOfRange> {
        match self.pointer(addr, bytes) {
            Some(_) => Ok(()),
            None => self.for_each_range(addr, bytes, |_, _, _| ()),
        }
    }

    /// Returns the location in this process of `bytes` bytes at a guest-physical address, and
    /// caches their region; `None` unless one region contains all of them. The pointer is valid
    /// while the memory is held.
    #[inline(always)]
    pub(crate) fn pointer(&mut self, addr: u64, bytes: usize) -> Option<*mut u8> {
        match self.cached.pointer(addr, bytes) {
            Some(pointer) => Some(pointer),
            None => self.pointer_elsewhere(addr, bytes),
        }
    }

    /// Searches all regions for the one that contains the bytes, and caches it.
    #[inline(never)]
    fn pointer_elsewhere(&mut self, addr: u64, bytes: usize) -> Option<*mut u8> {
        let window = *self.memory.translation(addr)?;
        let pointer = window.pointer(addr, bytes)?;
        self.cached = window;
        Some(pointer)
    }

    /// As [`MemoryView::pointer`], but does not change the cached region, because the bytes are
    /// accessed later.
    #[inline(always)]
    fn locate(&self, addr: u64, bytes: usize) -> Option<*mut u8> {
        match self.cached.pointer(addr, bytes) {
            Some(pointer) => Some(pointer),
            None => self.memory.translation(addr)?.pointer(addr, bytes),
        }
    }

    /// Copies `source` to guest memory at the guest-physical address `addr`.
    #[inline(always)]
    pub(crate) fn write(&mut self, addr: u64, source: &[u8]) -> Result<(), OutOfRange> {
        match self.pointer(addr, source.len()) {
            Some(dst) => {
                // SAFETY: `dst` is mapped for the length of `source`; our own memory
                // and the guest's do not overlap.
                unsafe { copy(source.as_ptr(), dst, source.len()) }
                Ok(())
            }
            None => self.for_each_range(addr, source.len(), |dst, offset, bytes| {
                // SAFETY: `for_each_range` stays inside the mapping and inside `source`.
                unsafe { copy(source.as_ptr().add(offset), dst, bytes) }
            }),
        }
    }

    /// Reads the 16 bytes at the guest-physical address `addr`.
    #[inline(always)]
    pub(crate) fn read_16(&mut self, addr: u64) -> Result<[u8; 16], OutOfRange> {
        if let Some(src) = self.pointer(addr, 16) {
            // SAFETY: sixteen bytes are mapped at `src`; bytes have no alignment.
            let bytes = unsafe { src.cast::<[u8; 16]>().read() };
            // SAFETY: it contains no instruction; the bytes are not read again.
            unsafe { core::arch::asm!("", options(nostack, preserves_flags)) }
            return Ok(bytes);
        }
        let mut bytes = [0; 16];
        self.for_each_range(addr, bytes.len(), |src, offset, part| {
            // SAFETY: `for_each_range` stays inside the mapping and inside `bytes`.
            unsafe { copy(src, bytes.as_mut_ptr().add(offset), part) }
        })?;
        Ok(bytes)
    }

    /// Reads the 12 bytes at the guest-physical address `addr` as two little-endian words.
    #[inline(always)]
    pub(crate) fn read_words(&mut self, addr: u64) -> Result<(u64, u32), OutOfRange> {
        if let Some(src) = self.pointer(addr, 12) {
            // SAFETY: twelve bytes are mapped at `src`; it need not be aligned.
            let words = unsafe {
                (src.cast::<u64>().read_unaligned(), src.add(8).cast::<u32>().read_unaligned())
            };
            // SAFETY: it contains no instruction; the words are not read again.
            unsafe { core::arch::asm!("", options(nostack, preserves_flags)) }
            return Ok((u64::from_le(words.0), u32::from_le(words.1)));
        }
        let mut bytes = [0; 12];
        self.read(addr, &mut bytes)?;
        let [a, b, c, d, e, f, g, h, i, j, k, l] = bytes;
        Ok((u64::from_le_bytes([a, b, c, d, e, f, g, h]), u32::from_le_bytes([i, j, k, l])))
    }

    /// Writes two little-endian words to the 12 bytes at the guest-physical address `addr`. Words
    /// that already have the value are not written: headers are mostly equal from frame to frame,
    /// and an unmodified cache line need not move between CPUs.
    #[inline(always)]
    pub(crate) fn write_words(&mut self, addr: u64, low: u64, high: u32) -> Result<(), OutOfRange> {
        if let Some(dst) = self.pointer(addr, 12) {
            let (low, high) = (low.to_le(), high.to_le());
            let (dst_low, dst_high) = (dst.cast::<u64>(), dst.wrapping_add(8).cast::<u32>());
            // SAFETY: twelve bytes are mapped at `dst`; they need not be aligned.
            unsafe {
                if dst_low.read_unaligned() != low {
                    dst_low.write_unaligned(low);
                }
                if dst_high.read_unaligned() != high {
                    dst_high.write_unaligned(high);
                }
            }
            return Ok(());
        }
        let mut bytes = [0; 12];
        let words = low.to_le_bytes().into_iter().chain(high.to_le_bytes());
        for (to, from) in bytes.iter_mut().zip(words) {
            *to = from;
        }
        self.write(addr, &bytes)
    }

    /// Prefetches the first two cache lines of the buffer at `addr` for reading.
    #[inline(always)]
    pub(crate) fn prefetch_read(&self, addr: u64) {
        if let Some(pointer) = self.locate(addr, 65) {
            prefetch::<false>(pointer);
            // SAFETY: 65 bytes are mapped.
            prefetch::<false>(unsafe { pointer.add(64) });
        }
    }

    /// Prefetches the cache line of the header of the buffer at `addr` for reading, and that of the
    /// first bytes after the header for writing. Both may be the same line.
    #[inline(always)]
    pub(crate) fn prefetch_write(&self, addr: u64, header_bytes: usize) {
        if let Some(pointer) = self.locate(addr, header_bytes + 64) {
            prefetch::<false>(pointer);
            // SAFETY: `header_bytes + 64` bytes are mapped at `pointer`.
            prefetch::<true>(unsafe { pointer.add(header_bytes) });
            // SAFETY: `header_bytes + 64` bytes are mapped at `pointer`.
            prefetch::<true>(unsafe { pointer.add(header_bytes + 63) });
        }
    }

    /// As [`GuestMemory::for_each_range`]; caches the last region.
    #[cold]
    #[inline(never)]
    pub(crate) fn for_each_range(
        &mut self,
        addr: u64,
        bytes: usize,
        visit: impl FnMut(*mut u8, usize, usize),
    ) -> Result<(), OutOfRange> {
        if let Some(last) = self.memory.for_each_range(addr, bytes, visit)? {
            self.cached = last;
        }
        Ok(())
    }
}
