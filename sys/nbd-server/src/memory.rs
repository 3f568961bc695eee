//! Mapped memory for the payloads of one connection, divided into chunks of two sizes.
#![allow(unsafe_code, reason = "maps memory that the kernel reads and writes")]

use core::ffi::c_void;
use core::ops::Range;
use std::io;

use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap_anonymous, munmap};

/// Size of a large chunk in bytes: a multiple of every block size, so that chunks are aligned.
pub(crate) const CHUNK_BYTES: usize = 64 << 10;

/// Number of large chunks of a connection: sufficient for two payloads of maximum length, if the
/// limits on buffer memory permit.
pub(crate) const CHUNKS: u32 = 1024;

/// Size of a small chunk in bytes, sufficient for most payloads. Small chunks are contiguous:
/// addresses that differ by a power of two would share a CPU cache set.
pub(crate) const SMALL_CHUNK_BYTES: usize = 4 << 10;

/// Number of small chunks of a connection. Their indices follow those of the large chunks.
pub(crate) const SMALL_CHUNKS: u32 = 256;

/// Memory of a connection's chunks. The kernel allocates pages on first access; [`Memory::release`]
/// returns them.
pub(crate) struct Memory {
    start: *mut c_void,
}

// SAFETY: plain memory; [`Pool`] and the owners of chunks determine which thread accesses which
// chunk.
unsafe impl Send for Memory {}
// SAFETY: as above; this type returns no references.
unsafe impl Sync for Memory {}

const BYTES: usize = CHUNK_BYTES * CHUNKS as usize + SMALL_CHUNK_BYTES * SMALL_CHUNKS as usize;

impl Memory {
    pub(crate) fn new() -> io::Result<Self> {
        let (protection, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
        // SAFETY: creates a new mapping at an address chosen by the kernel.
        let start = unsafe { mmap_anonymous(core::ptr::null_mut(), BYTES, protection, flags) }?;
        let memory = Self { start };
        // With huge pages, a chunk would use more memory than is counted. A kernel without huge
        // pages rejects the advice.
        // SAFETY: the mapping is new and has this length.
        let _ = unsafe { madvise(start, BYTES, Advice::LinuxNoHugepage) };
        Ok(memory)
    }

    /// Returns the memory of free chunks to the system. The chunks read as zeros on the next
    /// access.
    pub(crate) fn release(&self, chunks: &Range<u32>) {
        let start = self.chunk(chunks.start);
        let size = if chunks.start < CHUNKS { CHUNK_BYTES } else { SMALL_CHUNK_BYTES };
        let last = if chunks.start < CHUNKS { CHUNKS } else { CHUNKS + SMALL_CHUNKS };
        let count = chunks.end.min(last).saturating_sub(chunks.start) as usize;
        // A failure leaves the memory in use until the connection ends.
        // SAFETY: within the mapping. Only the pool, which released them, has these chunks.
        let _ = unsafe { madvise(start.cast(), count * size, Advice::LinuxDontNeed) };
    }

    /// Returns the address of the chunk with this index.
    pub(crate) fn chunk(&self, chunk: u32) -> *mut u8 {
        let small_index = chunk.saturating_sub(CHUNKS).min(SMALL_CHUNKS - 1);
        let offset =
            chunk.min(CHUNKS) as usize * CHUNK_BYTES + small_index as usize * SMALL_CHUNK_BYTES;
        // SAFETY: the offset is within the mapping.
        unsafe { self.start.cast::<u8>().add(offset) }
    }

    /// Returns `len` bytes of a chunk, from `offset` on, for access by the chunk's owner.
    ///
    /// # Safety
    /// Nothing else may access the chunk meanwhile, and `offset + len` must be at most its length.
    #[allow(clippy::mut_from_ref, reason = "chunks are apart; the caller owns this one")]
    pub(crate) unsafe fn chunk_slice(&self, chunk: u32, offset: usize, len: usize) -> &mut [u8] {
        // SAFETY: within the mapping, as the caller ensures, and accessed by the caller only.
        unsafe { core::slice::from_raw_parts_mut(self.chunk(chunk).add(offset), len) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: mapped with this length, and no pointer into it is left: all holders of pointers
        // held this memory.
        let _ = unsafe { munmap(self.start, BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_apart_and_aligned() {
        let memory = Memory::new().unwrap();
        assert_eq!(memory.chunk(0) as usize % 4096, 0);
        assert_eq!(memory.chunk(5) as usize - memory.chunk(4) as usize, CHUNK_BYTES);
        assert_eq!(memory.chunk(CHUNKS) as usize - memory.chunk(CHUNKS - 1) as usize, CHUNK_BYTES);
        let smalls = memory.chunk(CHUNKS + 3) as usize - memory.chunk(CHUNKS + 2) as usize;
        assert_eq!(smalls, SMALL_CHUNK_BYTES);
        let ends = [(CHUNKS - 1, CHUNK_BYTES), (CHUNKS + SMALL_CHUNKS - 1, SMALL_CHUNK_BYTES)];
        for (last, bytes) in ends {
            // SAFETY: nothing else accesses the memory in this test.
            let part = unsafe { memory.chunk_slice(last, bytes - 4, 4) };
            part.copy_from_slice(&[1, 2, 3, 4]);
            assert_eq!(part, [1, 2, 3, 4]);
        }
    }

    #[test]
    fn released_chunks_are_zero_and_their_neighbours_are_not() {
        let memory = Memory::new().unwrap();
        // SAFETY: nothing else accesses the memory in this test.
        let part = |chunk, offset| unsafe { memory.chunk_slice(chunk, offset, 1) };
        for chunk in [6, 7, 8, CHUNKS - 1, CHUNKS, CHUNKS + 1] {
            part(chunk, SMALL_CHUNK_BYTES - 1)[0] = 9;
        }
        memory.release(&(7..9));
        memory.release(&(CHUNKS..CHUNKS + 1));
        let chunks = [6, 7, 8, CHUNKS - 1, CHUNKS, CHUNKS + 1];
        let bytes = chunks.map(|chunk| part(chunk, SMALL_CHUNK_BYTES - 1)[0]);
        assert_eq!(bytes, [9, 0, 0, 9, 0, 9]);
    }
}
