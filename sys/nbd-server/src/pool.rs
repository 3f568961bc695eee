//! Memory for the payloads of one connection.
#![allow(unsafe_code, reason = "maps memory that the kernel reads and writes")]

use core::ffi::c_void;
use std::io;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};

/// Size of a chunk in bytes: a multiple of every block size, so that chunks are aligned.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;

/// Number of chunks of a connection: enough for two payloads of maximum length.
pub(crate) const CHUNKS: u32 = 1024;

/// Size of a small chunk in bytes: sufficient for most payloads. Small chunks are contiguous,
/// because addresses a power of two apart share a CPU cache set.
pub(crate) const SMALL_BYTES: usize = 4 << 10;

/// Number of small chunks of a connection; their indices follow those of the others.
const SMALL_CHUNKS: u32 = 256;

/// Memory of a connection's chunks. The kernel allocates pages on first access.
pub(crate) struct Memory {
    start: *mut c_void,
}

// SAFETY: plain memory; [`Pool`] and the owners of chunks determine which thread accesses which
// chunk.
unsafe impl Send for Memory {}
// SAFETY: as above; no reference is handed out here.
unsafe impl Sync for Memory {}

const BYTES: usize = CHUNK_BYTES * CHUNKS as usize + SMALL_BYTES * SMALL_CHUNKS as usize;

impl Memory {
    pub(crate) fn new() -> io::Result<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: creates a new mapping at an address chosen by the kernel.
        let start = unsafe { mmap_anonymous(core::ptr::null_mut(), BYTES, protection, flags) }?;
        Ok(Self { start })
    }

    /// Returns the address of a chunk.
    pub(crate) fn chunk(&self, chunk: u32) -> *mut u8 {
        let small = chunk.saturating_sub(CHUNKS).min(SMALL_CHUNKS - 1);
        let offset = chunk.min(CHUNKS) as usize * CHUNK_BYTES + small as usize * SMALL_BYTES;
        // SAFETY: the offset is within the mapping.
        unsafe { self.start.cast::<u8>().add(offset) }
    }

    /// Returns part of a chunk, to be accessed by its owner.
    ///
    /// # Safety
    /// Nothing else may access the chunk meanwhile, and `from + len` must be at most its length.
    #[allow(clippy::mut_from_ref, reason = "chunks are apart; the caller owns this one")]
    pub(crate) unsafe fn part(&self, chunk: u32, from: usize, len: usize) -> &mut [u8] {
        // SAFETY: within the mapping, as the caller ensures, and accessed by the caller only.
        unsafe { core::slice::from_raw_parts_mut(self.chunk(chunk).add(from), len) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and no pointer into it is left: all holders of pointers
        // held this memory.
        let _ = unsafe { munmap(self.start, BYTES) };
    }
}

/// Maximum number of empty lists that a pool keeps, so that requests rarely allocate one: the queue
/// depth of most clients.
const SPARE_LISTS_MAX: usize = 64;

/// Free chunks. The most recently freed one is reused first, because it may still be in the CPU's
/// cache.
pub(crate) struct Pool {
    free: Vec<u32>,
    small: Vec<u32>,
    /// At most [`SPARE_LISTS_MAX`], each with capacity for at most [`CHUNKS`] indices.
    spare_lists: Vec<Vec<u32>>,
}

impl Pool {
    pub(crate) fn new() -> Self {
        let small = (CHUNKS..CHUNKS + SMALL_CHUNKS).rev().collect();
        Self { free: (0..CHUNKS).rev().collect(), small, spare_lists: Vec::new() }
    }

    /// Takes chunks for this number of bytes; `None` if there are too few, in which case none is
    /// taken.
    pub(crate) fn take(&mut self, bytes: u64) -> Option<Vec<u32>> {
        if bytes == 0 {
            return Some(Vec::new());
        }
        let small = if bytes <= SMALL_BYTES as u64 { self.small.pop() } else { None };
        let count = usize::try_from(bytes.div_ceil(CHUNK_BYTES as u64)).unwrap_or(usize::MAX);
        let count = if small.is_some() { 0 } else { count };
        let from = self.free.len().checked_sub(count)?;
        let mut chunks = self.spare_lists.pop().unwrap_or_default();
        chunks.extend(small);
        chunks.extend(self.free.drain(from..).rev());
        Some(chunks)
    }

    pub(crate) fn give_back(&mut self, mut chunks: Vec<u32>) {
        for chunk in chunks.drain(..) {
            let kind = if chunk < CHUNKS { &mut self.free } else { &mut self.small };
            kind.push(chunk);
        }
        // A list without memory saves no allocation.
        if chunks.capacity() > 0 && self.spare_lists.len() < SPARE_LISTS_MAX {
            self.spare_lists.push(chunks);
        }
    }

    /// Returns the number of empty lists that are kept.
    #[cfg(test)]
    pub(crate) fn spare_lists(&self) -> usize {
        self.spare_lists.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_given_out_once_and_none_if_there_are_too_few() {
        let mut pool = Pool::new();
        let some = pool.take(CHUNK_BYTES as u64 * 1000 + 1).unwrap();
        assert_eq!(pool.take(CHUNK_BYTES as u64 * 24), None);
        let others = pool.take(CHUNK_BYTES as u64 * 23).unwrap();
        let mut all = [some.clone(), others].concat();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..CHUNKS));
        pool.give_back(some);
        assert!(pool.take(CHUNK_BYTES as u64 * 1001).is_some());
    }

    #[test]
    fn what_is_small_has_small_chunks_and_others_when_they_are_gone() {
        let mut pool = Pool::new();
        assert_eq!(pool.take(0), Some(Vec::new()));
        let some: Vec<_> =
            (0..SMALL_CHUNKS).map(|_| pool.take(SMALL_BYTES as u64).unwrap()).collect();
        assert!(some.iter().flatten().all(|&chunk| chunk >= CHUNKS));
        assert!(pool.take(1).unwrap()[0] < CHUNKS);
        let hot = some.last().unwrap().clone();
        some.into_iter().for_each(|chunks| pool.give_back(chunks));
        assert_eq!(pool.take(512).unwrap(), hot);
        assert!(pool.take(SMALL_BYTES as u64 + 1).unwrap()[0] < CHUNKS);
    }

    #[test]
    fn lists_that_are_given_back_are_used_again_and_not_kept_without_end() {
        let mut pool = Pool::new();
        let many: Vec<_> = (0..3 * SPARE_LISTS_MAX).map(|_| pool.take(1).unwrap()).collect();
        many.into_iter().for_each(|chunks| pool.give_back(chunks));
        for _ in 0..100 {
            pool.give_back(Vec::new());
        }
        assert_eq!(pool.spare_lists(), SPARE_LISTS_MAX);
        let chunks = pool.take(1);
        assert_eq!(pool.spare_lists(), SPARE_LISTS_MAX - 1);
        drop(chunks);
    }

    #[test]
    fn chunks_are_apart_and_aligned() {
        let memory = Memory::new().unwrap();
        assert_eq!(memory.chunk(0) as usize % 4096, 0);
        assert_eq!(memory.chunk(5) as usize - memory.chunk(4) as usize, CHUNK_BYTES);
        assert_eq!(memory.chunk(CHUNKS) as usize - memory.chunk(CHUNKS - 1) as usize, CHUNK_BYTES);
        let smalls = memory.chunk(CHUNKS + 3) as usize - memory.chunk(CHUNKS + 2) as usize;
        assert_eq!(smalls, SMALL_BYTES);
        let ends = [(CHUNKS - 1, CHUNK_BYTES), (CHUNKS + SMALL_CHUNKS - 1, SMALL_BYTES)];
        for (last, bytes) in ends {
            // SAFETY: nothing else accesses the memory in this test.
            let part = unsafe { memory.part(last, bytes - 4, 4) };
            part.copy_from_slice(&[1, 2, 3, 4]);
            assert_eq!(part, [1, 2, 3, 4]);
        }
    }
}
