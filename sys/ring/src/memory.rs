//! A VM's memory, mapped into this process.
//!
//! A front-end describes it as regions, each with an address in three spaces: the
//! guest's physical addresses (used by descriptors), the front-end's own virtual
//! addresses (used to say where a ring lies), and an offset in a file that we map.
#![allow(unsafe_code, reason = "maps memory shared with a VM and copies in and out of it")]

use core::ffi::c_void;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use rustix::fs::FileType;
use rustix::mm::{MapFlags, ProtFlags};

use crate::copy::copy;
use crate::fault::MemoryError;
use crate::sigbus::Guard;

/// Regions of one VM that are accepted.
pub const REGIONS_MAX: usize = 256;

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
    guard: Option<Guard>,
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
            Guard::new(map as usize, map_bytes, page_bytes as usize)
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

/// All of a VM's memory: an immutable table of regions, shared by its rings.
pub struct GuestMemory {
    /// Ascending by guest address, not overlapping.
    regions: Vec<Arc<Region>>,
}

impl core::fmt::Debug for GuestMemory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let regions = self.regions.iter().map(|r| (r.guest_addr, r.user_addr, r.size));
        f.debug_list().entries(regions).finish()
    }
}

impl GuestMemory {
    /// The memory made of these regions.
    ///
    /// # Errors
    /// There are too many, or two of them overlap in one of the address spaces.
    pub fn new(mut regions: Vec<Arc<Region>>) -> Result<Self, MemoryError> {
        if regions.len() > REGIONS_MAX {
            return Err(MemoryError::TooMany { count: regions.len(), max: REGIONS_MAX });
        }
        regions.sort_by_key(|region| region.user_addr);
        check_overlap(&regions, "user address", |region| region.user_addr)?;
        regions.sort_by_key(|region| region.guest_addr);
        check_overlap(&regions, "guest address", |region| region.guest_addr)?;
        Ok(Self { regions })
    }

    /// Maps all the regions and makes the memory of them.
    ///
    /// # Errors
    /// As [`Region::map`] and [`GuestMemory::new`].
    pub fn map(specs: &[RegionSpec<'_>]) -> Result<Self, MemoryError> {
        if specs.len() > REGIONS_MAX {
            return Err(MemoryError::TooMany { count: specs.len(), max: REGIONS_MAX });
        }
        let regions =
            specs.iter().enumerate().map(|(index, spec)| Region::map(index, spec).map(Arc::new));
        Self::new(regions.collect::<Result<_, _>>()?)
    }

    /// The regions, ascending by guest address.
    pub fn regions(&self) -> &[Arc<Region>] {
        &self.regions
    }

    /// Whether any of it was touched behind the end of its file.
    pub(crate) fn is_faulted(&self) -> bool {
        self.regions.iter().any(|r| r.guard.as_ref().is_some_and(Guard::is_faulted))
    }

    /// Where `bytes` bytes at the front-end's address are mapped, if one region
    /// holds them all. The pointer is good while this memory lives.
    pub(crate) fn user_pointer(&self, user_addr: u64, bytes: u64) -> Option<*mut u8> {
        self.regions.iter().find_map(|region| {
            let offset = user_addr.checked_sub(region.user_addr)?;
            let left = region.size.checked_sub(offset)?;
            // SAFETY: the offset lies inside the mapping.
            (bytes <= left).then(|| unsafe { region.base.add(offset as usize) })
        })
    }

    /// The guest address of what the front-end has at `user_addr`.
    pub(crate) fn guest_addr(&self, user_addr: u64) -> Option<u64> {
        self.regions.iter().find_map(|region| {
            let offset = user_addr.checked_sub(region.user_addr)?;
            (offset < region.size).then(|| region.guest_addr.saturating_add(offset))
        })
    }

    /// Walks a span that may cross from one region into the next. `each` is given
    /// a pointer, how many bytes came before and how many come now. Nothing is done
    /// unless the whole span is mapped. Returns the last region's window; `None` for
    /// an empty span.
    pub(crate) fn each_part(
        &self,
        addr: u64,
        bytes: usize,
        mut each: impl FnMut(*mut u8, usize, usize),
    ) -> Result<Option<Window>, OutOfRange> {
        let mut check = 0;
        while check < bytes {
            let at = addr.checked_add(check as u64).ok_or(OutOfRange)?;
            let window = self.window(at).ok_or(OutOfRange)?;
            let left = window.size - (at - window.start);
            check = check.saturating_add(usize::try_from(left).unwrap_or(usize::MAX));
        }
        let (mut done, mut last) = (0, None);
        while done < bytes {
            let at = addr.checked_add(done as u64).ok_or(OutOfRange)?;
            let window = self.window(at).ok_or(OutOfRange)?;
            let offset = at - window.start;
            let left = usize::try_from(window.size - offset).unwrap_or(usize::MAX);
            let now = left.min(bytes - done);
            // SAFETY: the offset lies inside the mapping.
            each(unsafe { window.base.add(offset as usize) }, done, now);
            done += now;
            last = Some(window);
        }
        Ok(last)
    }

    /// The mapped window around a guest address.
    fn window(&self, addr: u64) -> Option<Window> {
        let after = self.regions.partition_point(|region| region.guest_addr <= addr);
        let region = self.regions.get(after.checked_sub(1)?)?;
        (addr - region.guest_addr < region.size).then_some(Window {
            start: region.guest_addr,
            size: region.size,
            base: region.base,
        })
    }
}

fn check_overlap(
    sorted: &[Arc<Region>],
    field: &'static str,
    start: impl Fn(&Region) -> u64,
) -> Result<(), MemoryError> {
    let mut end = 0;
    for region in sorted {
        if start(region) < end {
            return Err(MemoryError::Overlap { field, address: start(region) });
        }
        end = start(region) + region.size;
    }
    Ok(())
}

/// One region as a translation: guest addresses from `start` on are at `base`.
#[derive(Clone, Copy)]
pub(crate) struct Window {
    start: u64,
    size: u64,
    base: *mut u8,
}

/// The address is not in the VM's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfRange;

/// A ring's way into guest memory: remembers the region it used last.
pub(crate) struct MemoryView {
    memory: Arc<GuestMemory>,
    cached: Window,
}

// SAFETY: the window points into `memory`, which is `Send` and held beside it.
unsafe impl Send for MemoryView {}

impl MemoryView {
    pub(crate) fn new(memory: Arc<GuestMemory>) -> Self {
        Self { memory, cached: Window { start: 0, size: 0, base: core::ptr::null_mut() } }
    }

    pub(crate) fn memory(&self) -> &Arc<GuestMemory> {
        &self.memory
    }

    /// Where `bytes` bytes at a guest address are mapped, if the region used last
    /// holds them all.
    #[inline(always)]
    fn cached_pointer(&self, addr: u64, bytes: usize) -> Option<*mut u8> {
        let offset = addr.wrapping_sub(self.cached.start);
        let fits = offset < self.cached.size && bytes as u64 <= self.cached.size - offset;
        // SAFETY: the offset lies inside the mapping.
        fits.then(|| unsafe { self.cached.base.add(offset as usize) })
    }

    /// Copies guest memory into `into`.
    #[inline(always)]
    pub(crate) fn read(&mut self, addr: u64, into: &mut [u8]) -> Result<(), OutOfRange> {
        match self.cached_pointer(addr, into.len()) {
            Some(src) => {
                // SAFETY: `src` is mapped for the length of `into`; our own memory
                // and the guest's do not overlap.
                unsafe { copy(src, into.as_mut_ptr(), into.len()) }
                Ok(())
            }
            None => self.each_part(addr, into.len(), |src, done, bytes| {
                // SAFETY: `each_part` stays inside the mapping and inside `into`.
                unsafe { copy(src, into.as_mut_ptr().add(done), bytes) }
            }),
        }
    }

    /// Whether so many bytes at a guest address are in memory.
    #[inline(always)]
    pub(crate) fn check(&mut self, addr: u64, bytes: usize) -> Result<(), OutOfRange> {
        match self.cached_pointer(addr, bytes) {
            Some(_) => Ok(()),
            None => self.each_part(addr, bytes, |_, _, _| ()),
        }
    }

    /// Copies `from` into guest memory.
    #[inline(always)]
    pub(crate) fn write(&mut self, addr: u64, from: &[u8]) -> Result<(), OutOfRange> {
        match self.cached_pointer(addr, from.len()) {
            Some(dst) => {
                // SAFETY: `dst` is mapped for the length of `from`; our own memory
                // and the guest's do not overlap.
                unsafe { copy(from.as_ptr(), dst, from.len()) }
                Ok(())
            }
            None => self.each_part(addr, from.len(), |dst, done, bytes| {
                // SAFETY: `each_part` stays inside the mapping and inside `from`.
                unsafe { copy(from.as_ptr().add(done), dst, bytes) }
            }),
        }
    }

    /// The twelve bytes at `addr` as two little-endian words.
    #[inline(always)]
    pub(crate) fn read_words(&mut self, addr: u64) -> Result<(u64, u32), OutOfRange> {
        if let Some(src) = self.cached_pointer(addr, 12) {
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

    /// Makes the twelve bytes at `addr` these two words, little-endian. Bytes that
    /// are so already are not written: headers are mostly alike from frame to
    /// frame, and a line that nobody writes need not travel between CPUs.
    #[inline(always)]
    pub(crate) fn write_words(&mut self, addr: u64, low: u64, high: u32) -> Result<(), OutOfRange> {
        if let Some(dst) = self.cached_pointer(addr, 12) {
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

    /// Asks for the first two cache lines of a buffer, to be read.
    #[inline(always)]
    pub(crate) fn prefetch_read(&self, addr: u64) {
        if let Some(pointer) = self.cached_pointer(addr, 65) {
            prefetch::<false>(pointer);
            // SAFETY: 65 bytes are mapped.
            prefetch::<false>(unsafe { pointer.add(64) });
        }
    }

    /// Asks for the line of a buffer's header, to be read, and for that of the
    /// first bytes behind it, to be written. They may be the same line.
    #[inline(always)]
    pub(crate) fn prefetch_write(&self, addr: u64, header_bytes: usize) {
        if let Some(pointer) = self.cached_pointer(addr, header_bytes + 64) {
            prefetch::<false>(pointer);
            // SAFETY: so many bytes are mapped.
            prefetch::<true>(unsafe { pointer.add(header_bytes) });
            // SAFETY: so many bytes are mapped.
            prefetch::<true>(unsafe { pointer.add(header_bytes + 63) });
        }
    }

    /// As [`GuestMemory::each_part`], and remembers the last region.
    #[cold]
    #[inline(never)]
    pub(crate) fn each_part(
        &mut self,
        addr: u64,
        bytes: usize,
        each: impl FnMut(*mut u8, usize, usize),
    ) -> Result<(), OutOfRange> {
        if let Some(last) = self.memory.each_part(addr, bytes, each)? {
            self.cached = last;
        }
        Ok(())
    }
}

/// A hint that the line at `pointer` is wanted soon.
#[inline(always)]
pub(crate) fn prefetch<const WRITE: bool>(pointer: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch never faults and changes nothing that can be seen.
    unsafe {
        if WRITE {
            core::arch::asm!("prefetchw [{}]", in(reg) pointer, options(nostack, preserves_flags, readonly));
        } else {
            core::arch::x86_64::_mm_prefetch::<{ core::arch::x86_64::_MM_HINT_T0 }>(pointer.cast());
        }
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: as above.
    unsafe {
        if WRITE {
            core::arch::asm!("prfm pstl1keep, [{}]", in(reg) pointer, options(nostack, preserves_flags, readonly));
        } else {
            core::arch::asm!("prfm pldl1keep, [{}]", in(reg) pointer, options(nostack, preserves_flags, readonly));
        }
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = pointer;
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
