//! One region of a VM's memory, mapped into this process.
#![allow(unsafe_code, reason = "maps memory that is shared with a VM")]

use core::ffi::c_void;
use std::os::fd::BorrowedFd;

use rustix::fs::FileType;
use rustix::mm::{MapFlags, ProtFlags};
use suimon_mapping::CutGuard;

use crate::fault::MemoryError;

/// One region, as the front-end describes it.
#[derive(Debug)]
pub struct RegionSpec<'fd> {
    /// Guest-physical address of the first byte.
    pub guest_addr: u64,
    /// Length in bytes.
    pub size: u64,
    /// Address of the first byte in the front-end.
    pub user_addr: u64,
    /// Where the first byte lies in the file.
    pub mmap_offset: u64,
    /// The file.
    pub fd: BorrowedFd<'fd>,
}

/// One mapped region. Unmapped when the last holder lets go of it.
pub struct Region {
    guest_addr: u64,
    user_addr: u64,
    size: u64,
    /// Where the region's first byte is mapped.
    base: *mut u8,
    /// Taken back before the mapping goes.
    guard: Option<CutGuard>,
    map: *mut c_void,
    map_bytes: usize,
}

// SAFETY: the region is plain shared memory; the pointers are only used for
// copies that tolerate concurrent writers, and are unmapped by the last owner.
unsafe impl Send for Region {}
// SAFETY: as above.
unsafe impl Sync for Region {}

impl Region {
    /// Maps a region. `index` is its position in the table, for error texts.
    ///
    /// # Errors
    /// The numbers are inconsistent, the descriptor is not of a long enough
    /// regular file, or the host refuses.
    pub fn map(index: usize, spec: &RegionSpec<'_>) -> Result<Self, MemoryError> {
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
        let needed = spec
            .mmap_offset
            .checked_add(size)
            .filter(|end| *end <= i64::MAX as u64)
            .ok_or_else(|| overflow("mmap offset", spec.mmap_offset))?;
        let stat = rustix::fs::fstat(spec.fd).map_err(host("stat"))?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(MemoryError::NotAFile { index });
        }
        let file_bytes = u64::try_from(stat.st_size).unwrap_or(0);
        if file_bytes < needed {
            return Err(MemoryError::FileTooShort { index, file_bytes, needed });
        }
        // Files of huge pages can only be mapped in whole pages, and say so in
        // their block size.
        let page_bytes = page_bytes_of(spec.fd, u64::try_from(stat.st_blksize).unwrap_or(0));
        let skip = spec.mmap_offset & (page_bytes - 1);
        let map_bytes = skip
            .checked_add(size)
            .and_then(|bytes| bytes.checked_next_multiple_of(page_bytes))
            .and_then(|bytes| usize::try_from(bytes).ok())
            .ok_or_else(|| overflow("mmap offset", spec.mmap_offset))?;
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
        };
        region.guard = Some(
            CutGuard::new(map as usize, map_bytes, page_bytes as usize)
                .map_err(|source| MemoryError::Host { index, action: "guard", size, source })?,
        );
        Ok(region)
    }

    /// Guest-physical address of the first byte.
    pub fn guest_addr(&self) -> u64 {
        self.guest_addr
    }

    /// Where the first byte is mapped; good while the region lives.
    pub(crate) fn base(&self) -> *mut u8 {
        self.base
    }

    /// Address of the first byte in the front-end.
    pub fn user_addr(&self) -> u64 {
        self.user_addr
    }

    /// Length in bytes.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// Whether it was touched behind the end of its file.
    pub(crate) fn is_faulted(&self) -> bool {
        self.guard.as_ref().is_some_and(CutGuard::is_cut)
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.guard = None;
        // SAFETY: the mapping was made by `map`, and nobody holds the region any
        // more.
        let unmapped = unsafe { rustix::mm::munmap(self.map, self.map_bytes) };
        debug_assert!(unmapped.is_ok(), "munmap: {unmapped:?}");
    }
}

/// The page size of a file's mappings: huge for hugetlbfs, else the system's.
fn page_bytes_of(fd: BorrowedFd<'_>, block_bytes: u64) -> u64 {
    const HUGETLBFS_MAGIC: u32 = 0x9584_58f6;
    let page_bytes = rustix::param::page_size() as u64;
    let is_huge = rustix::fs::fstatfs(fd).is_ok_and(|stat| stat.f_type as u32 == HUGETLBFS_MAGIC);
    if is_huge && block_bytes.is_power_of_two() { block_bytes.max(page_bytes) } else { page_bytes }
}
