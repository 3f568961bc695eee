//! Memory region of a VM, mapped into this process.
#![allow(unsafe_code, reason = "maps memory that is shared with a VM")]

use core::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::mm::{MapFlags, ProtFlags};
use suimon_mapping::TruncationGuard;

use crate::fault::MemoryError;
use crate::mapping_limits::{
    CountedMapping, MappedMemoryCounter, MappingLimitExceeded, device_bytes_max,
};

/// Memory region, as the front-end describes it.
#[derive(Debug)]
pub struct RegionSpec<'fd> {
    /// Guest-physical address of the first byte.
    pub guest_addr: u64,
    /// Length of the region in bytes.
    pub size: u64,
    /// Address of the first byte in the front-end.
    pub user_addr: u64,
    /// Offset of the first byte in the file.
    pub mmap_offset: u64,
    /// File on tmpfs or hugetlbfs that contains the region, such as a memfd.
    pub fd: BorrowedFd<'fd>,
}

/// Mapped region. It is unmapped when its last reference is dropped.
pub struct Region {
    guest_addr: u64,
    user_addr: u64,
    size: u64,
    /// Location of the region's first byte in this process.
    base: *mut u8,
    /// Guard against truncation of the file; dropped before the mapping.
    guard: Option<TruncationGuard>,
    map: *mut c_void,
    map_bytes: usize,
    _charge: CountedMapping,
}

// SAFETY: the region is plain shared memory; the pointers are only used for
// copies that tolerate concurrent writers, and are unmapped by the last owner.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps a region, which is counted for the device of `mapped`. `index` is the position of the
    /// region in the memory table, for errors. Does not block, whatever the descriptor refers to.
    ///
    /// # Errors
    /// Addresses, offset and size are inconsistent, the descriptor is not a file in memory of
    /// sufficient length, a limit is exceeded, or the host failed to map it.
    pub fn map(
        index: usize,
        spec: &RegionSpec<'_>,
        mapped: &Arc<MappedMemoryCounter>,
    ) -> Result<Self, MemoryError> {
        let size = spec.size;
        if size == 0 {
            return Err(MemoryError::Empty { index });
        }
        let overflow = |field, value| MemoryError::Overflow { index, field, value, size };
        let host = |action| {
            move |errno: rustix::io::Errno| MemoryError::Host {
                index,
                action,
                size,
                source: errno.into(),
            }
        };
        for (field, value) in [("guest address", spec.guest_addr), ("user address", spec.user_addr)]
        {
            value.checked_add(size).ok_or_else(|| overflow(field, value))?;
        }
        let required = spec
            .mmap_offset
            .checked_add(size)
            .filter(|end| *end <= i64::MAX as u64)
            .ok_or_else(|| overflow("mmap offset", spec.mmap_offset))?;
        if !is_memory_file(spec.fd) {
            return Err(MemoryError::NotInMemory { index });
        }
        let stat = rustix::fs::fstat(spec.fd).map_err(host("stat"))?;
        let file_bytes = u64::try_from(stat.st_size).unwrap_or(0);
        if file_bytes < required {
            return Err(MemoryError::FileTooShort { index, file_bytes, required });
        }
        // Files on hugetlbfs can be mapped only in whole huge pages; their block size is the page
        // size.
        let page_bytes = mapping_page_bytes(spec.fd, u64::try_from(stat.st_blksize).unwrap_or(0));
        let skip = spec.mmap_offset & (page_bytes - 1);
        let map_bytes = skip
            .checked_add(size)
            .and_then(|bytes| bytes.checked_next_multiple_of(page_bytes))
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(|| overflow("mmap offset", spec.mmap_offset))?;
        let charge = mapped.charge(map_bytes as u64).map_err(|exceeded| match exceeded {
            MappingLimitExceeded::Device => {
                MemoryError::DeviceLimit { index, size, max: device_bytes_max() }
            }
            MappingLimitExceeded::Host => MemoryError::HostLimit { index, size },
        })?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let map = unsafe {
            rustix::mm::mmap(
                core::ptr::null_mut(),
                map_bytes,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::NORESERVE,
                spec.fd,
                spec.mmap_offset - skip,
            )
        }
        .map_err(host("map"))?;
        let mut region = Self {
            guest_addr: spec.guest_addr,
            user_addr: spec.user_addr,
            size,
            // SAFETY: `skip` is less than `map_bytes`.
            base: unsafe { map.cast::<u8>().add(skip as usize) },
            guard: None,
            map,
            map_bytes,
            _charge: charge,
        };
        region.guard = Some(
            TruncationGuard::new(map as usize, map_bytes, page_bytes as usize)
                .map_err(|source| MemoryError::Host { index, action: "guard", size, source })?,
        );
        Ok(region)
    }

    /// Returns the guest-physical address of the first byte.
    pub fn guest_addr(&self) -> u64 {
        self.guest_addr
    }

    /// Returns the location of the first byte in this process; valid while the region exists.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    /// Returns the address of the first byte in the front-end.
    pub fn user_addr(&self) -> u64 {
        self.user_addr
    }

    /// Returns the length of the region in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Returns true if the region was accessed beyond the end of its file.
    pub(crate) fn is_faulted(&self) -> bool {
        self.guard.as_ref().is_some_and(TruncationGuard::is_truncated)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.guard = None;
        // SAFETY: the mapping was made by `map`, and this is its last owner.
        let unmapped = unsafe { rustix::mm::munmap(self.map, self.map_bytes) };
        debug_assert!(unmapped.is_ok(), "munmap: {unmapped:?}");
    }
}

/// Returns true if the descriptor refers to a file on tmpfs or hugetlbfs, such as a memfd. This
/// host's kernel provides the pages of such a file. A page fault on another file can wait for a
/// disk, a server, or a process of the front-end (FUSE), and would stop the worker meanwhile.
///
/// Only these files have seals. Unlike fstat(2) and fstatfs(2), the query of seals does not reach
/// the file system, which could delay it.
pub fn is_memory_file(fd: BorrowedFd<'_>) -> bool {
    rustix::fs::fcntl_get_seals(fd).is_ok()
}

/// Returns the page size of a file's mappings in bytes: that of the huge pages for hugetlbfs,
/// otherwise that of the system. `block_bytes` is the file's block size.
fn mapping_page_bytes(fd: BorrowedFd<'_>, block_bytes: u64) -> u64 {
    const HUGETLBFS_MAGIC: u32 = 0x9584_58f6;
    let page_bytes = rustix::param::page_size() as u64;
    let is_huge = rustix::fs::fstatfs(fd).is_ok_and(|stat| stat.f_type as u32 == HUGETLBFS_MAGIC);
    if is_huge && block_bytes.is_power_of_two() { block_bytes.max(page_bytes) } else { page_bytes }
}
