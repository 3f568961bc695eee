//! Memory shared with the kernel: mapped pages, and the UMEM in them, divided into chunks.
#![allow(unsafe_code, reason = "memory is shared with the kernel, at addresses that it names")]

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::sync::Arc;

/// Mapped pages of memory; unmapped when this value is dropped.
#[derive(Debug)]
pub(super) struct Mapping {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the pages are not bound to a thread; each access to them states why it is sound.
unsafe impl Send for Mapping {}
// SAFETY: as above; a `Mapping` itself gives out no reference to them.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps zeroed private memory, whose pages are allocated at once.
    ///
    /// # Errors
    /// There is not enough memory.
    pub(super) fn anonymous(bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        Self::map(bytes, flags, -1, 0)
    }

    /// Maps a ring of an AF_XDP socket: `bytes` bytes from `offset` (`XDP_PGOFF_*`) on.
    ///
    /// # Errors
    /// The errno of the call.
    pub(super) fn ring(socket: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Self> {
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        Self::map(bytes, flags, socket.as_raw_fd(), offset)
    }

    fn map(bytes: usize, flags: i32, fd: i32, offset: u64) -> io::Result<Self> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let offset = libc::off64_t::try_from(offset).map_err(io::Error::other)?;
        // SAFETY: the kernel chooses the address, so no existing mapping is replaced.
        let start =
            unsafe { libc::mmap64(core::ptr::null_mut(), bytes, protection, flags, fd, offset) };
        if start == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, bytes })
    }

    /// Returns the start of the mapping.
    pub(super) fn start(&self) -> NonNull<u8> {
        self.start
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: these pages were mapped by `map` only; every user of pointers into them holds
        // this value.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.bytes) };
    }
}

/// Half of the chunks of a UMEM: those for receiving or those for sending. Each chunk is in one
/// area only ([`divide_umem`]).
#[derive(Debug)]
pub(super) struct UmemArea {
    umem: Arc<Mapping>,
    first: usize,
    bytes: usize,
    chunk_bytes: usize,
}

/// Divides a UMEM into an area of `first_chunks` chunks and one of the remaining chunks.
/// `chunk_bytes` is a power of two.
pub(super) fn divide_umem(umem: Mapping, chunk_bytes: usize, first_chunks: usize) -> [UmemArea; 2] {
    let usable = umem.bytes() - umem.bytes() % chunk_bytes;
    let middle = first_chunks.saturating_mul(chunk_bytes).min(usable);
    let umem = Arc::new(umem);
    let area = |first, end: usize| UmemArea {
        umem: Arc::clone(&umem),
        first,
        bytes: end - first,
        chunk_bytes,
    };
    [area(0, middle), area(middle, usable)]
}

impl UmemArea {
    /// Returns the addresses of the chunks in the format of descriptors: byte offsets in the UMEM.
    pub(super) fn chunks(&self) -> impl Iterator<Item = u64> + use<> {
        let (first, chunk) = (self.first, self.chunk_bytes);
        (0..self.bytes / chunk).map(move |index| (first + index * chunk) as u64)
    }

    /// Returns the offset of the chunk that contains an address; `None` if it is not in this area.
    pub(super) fn chunk_containing(&self, address: u64) -> Option<u64> {
        let address = usize::try_from(address).ok()?;
        let is_inside = address.checked_sub(self.first).is_some_and(|offset| offset < self.bytes);
        is_inside.then_some((address - address % self.chunk_bytes) as u64)
    }

    /// Copies bytes from `address` in the UMEM to `to`. Returns false, without copying, if the
    /// range is not within one chunk of this area.
    ///
    /// The kernel may modify a chunk that it was given; the result is then any mixture of old and
    /// new bytes.
    #[inline]
    pub(super) fn read(&self, address: u64, to: &mut [u8]) -> bool {
        let Some(from) = self.pointer_to(address, to.len()) else { return false };
        // SAFETY: `from` is in the mapping for that many bytes. `to` is borrowed exclusively, and
        // no reference to anything in the mapping is ever made.
        unsafe { core::ptr::copy_nonoverlapping(from, to.as_mut_ptr(), to.len()) };
        true
    }

    /// Copies `from` to `address` in the UMEM. Returns false, without copying, if the range is not
    /// within one chunk of this area.
    #[inline]
    pub(super) fn write(&mut self, address: u64, from: &[u8]) -> bool {
        let Some(to) = self.pointer_to(address, from.len()) else { return false };
        // SAFETY: the target is in the mapping for that many bytes, and no other code of this
        // process accesses it: the chunk is in this area only, and the area is borrowed mutably. No
        // reference to anything in the mapping is ever made.
        unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), to, from.len()) };
        true
    }

    #[inline]
    fn pointer_to(&self, address: u64, bytes: usize) -> Option<*mut u8> {
        let chunk = self.chunk_containing(address)? as usize;
        let offset = address as usize;
        if bytes > self.chunk_bytes - (offset - chunk) {
            return None;
        }
        // SAFETY: the chunk lies in the mapping, and so does what begins at `offset` and ends
        // within the chunk.
        Some(unsafe { self.umem.start().as_ptr().add(offset) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_area_reads_and_writes_its_own_chunks_only() {
        let [mut low, mut high] = divide_umem(Mapping::anonymous(8 * 2048 + 100).unwrap(), 2048, 3);
        assert_eq!(low.chunks().collect::<Vec<_>>(), [0, 2048, 4096]);
        assert_eq!(high.chunks().count(), 5);
        assert!(low.write(2048 + 24, b"here") && high.write(3 * 2048, b"there"));
        let mut four = [0; 4];
        assert!(low.read(2048 + 24, &mut four));
        assert_eq!(&four, b"here");
        // The last bytes of a chunk, and one byte more.
        assert!(low.write(2 * 2048 - 4, &four) && !low.write(2 * 2048 - 3, &four));
        for outside in [3 * 2048, 8 * 2048, u64::MAX, u64::MAX - 2] {
            assert!(!low.read(outside, &mut four) && !low.write(outside, &four), "{outside}");
        }
        assert!(!high.read(0, &mut four) && !high.write(8 * 2048, &four));
        assert_eq!((low.chunk_containing(5000), high.chunk_containing(5000)), (Some(4096), None));
    }
}
