//! Guest memory of a VM: a table of the regions that are mapped into this process.
//!
//! A front-end describes each region by an address in three spaces: guest-physical addresses (used
//! by descriptors), the front-end's virtual addresses (used for the areas of a ring), and an offset
//! in a file that this process maps.
#![allow(unsafe_code, reason = "makes pointers into memory that is shared with a VM")]

use std::sync::Arc;

use crate::fault::MemoryError;
use crate::region::{Region, RegionSpec};

/// Maximum number of regions of one VM.
pub const REGIONS_MAX: usize = 256;

/// Guest memory of one VM: an immutable table of regions, shared by its rings.
pub struct GuestMemory {
    /// Regions, ascending by guest address, without overlap.
    regions: Vec<Arc<Region>>,
    /// Address translation of each of `regions`, in the same order. They are in one array, because
    /// a ring searches them whenever a buffer is in another region than the previous one.
    windows: Box<[RegionTranslation]>,
}

impl core::fmt::Debug for GuestMemory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let regions = self.regions.iter().map(|r| (r.guest_addr(), r.user_addr(), r.size()));
        f.debug_list().entries(regions).finish()
    }
}

impl GuestMemory {
    /// Creates guest memory that consists of these regions.
    ///
    /// # Errors
    /// There are more than [`REGIONS_MAX`] regions, or two overlap in one of the address spaces.
    pub fn new(mut regions: Vec<Arc<Region>>) -> Result<Self, MemoryError> {
        if regions.len() > REGIONS_MAX {
            return Err(MemoryError::TooMany { count: regions.len(), max: REGIONS_MAX });
        }
        regions.sort_by_key(|region| region.user_addr());
        check_overlap(&regions, "user address", |region| region.user_addr())?;
        regions.sort_by_key(|region| region.guest_addr());
        check_overlap(&regions, "guest address", |region| region.guest_addr())?;
        let windows = regions.iter().map(|region| RegionTranslation::from_region(region)).collect();
        Ok(Self { regions, windows })
    }

    /// Maps regions, counted for a device of their own, and creates guest memory of them.
    ///
    /// # Errors
    /// As [`Region::map`] and [`GuestMemory::new`].
    pub fn map(specs: &[RegionSpec<'_>]) -> Result<Self, MemoryError> {
        if specs.len() > REGIONS_MAX {
            return Err(MemoryError::TooMany { count: specs.len(), max: REGIONS_MAX });
        }
        let mapped = Arc::default();
        let map = |(index, spec)| Region::map(index, spec, &mapped).map(Arc::new);
        let regions = specs.iter().enumerate().map(map);
        Self::new(regions.collect::<Result<_, _>>()?)
    }

    /// Returns the regions, ascending by guest address.
    pub fn regions(&self) -> &[Arc<Region>] {
        &self.regions
    }

    /// Returns true if a page of any region was accessed beyond the end of its file.
    pub(crate) fn is_faulted(&self) -> bool {
        self.regions.iter().any(|region| region.is_faulted())
    }

    /// Returns the location in this process of `bytes` bytes at the front-end's address
    /// `user_addr`; `None` unless one region contains all of them. The pointer is valid while this
    /// memory exists.
    pub(crate) fn user_pointer(&self, user_addr: u64, bytes: u64) -> Option<*mut u8> {
        self.regions.iter().find_map(|region| {
            let offset = user_addr.checked_sub(region.user_addr())?;
            let available = region.size().checked_sub(offset)?;
            // SAFETY: the offset lies inside the mapping.
            (bytes <= available).then(|| unsafe { region.base().add(offset as usize) })
        })
    }

    /// Translates an address of the front-end to a guest-physical address; `None` if no region
    /// contains it.
    pub(crate) fn guest_addr(&self, user_addr: u64) -> Option<u64> {
        self.regions.iter().find_map(|region| {
            let offset = user_addr.checked_sub(region.user_addr())?;
            (offset < region.size()).then(|| region.guest_addr().saturating_add(offset))
        })
    }

    /// Calls `visit` for each contiguous range of this process that the bytes at the guest-physical
    /// address `addr` occupy; they may cross region boundaries. Its arguments are a pointer, the
    /// number of bytes before the range, and the length of the range. Returns the last region's
    /// window; `None` if `bytes` is 0.
    ///
    /// # Errors
    /// Not all of the bytes are mapped; `visit` was not called.
    pub(crate) fn for_each_range(
        &self,
        addr: u64,
        bytes: usize,
        mut visit: impl FnMut(*mut u8, usize, usize),
    ) -> Result<Option<RegionTranslation>, OutOfRange> {
        let mut check = 0;
        while check < bytes {
            let address = addr.checked_add(check as u64).ok_or(OutOfRange)?;
            let window = self.translation(address).ok_or(OutOfRange)?;
            let available = window.size - (address - window.start);
            check = check.saturating_add(usize::try_from(available).unwrap_or(usize::MAX));
        }
        let (mut visited, mut last) = (0, None);
        while visited < bytes {
            let address = addr.checked_add(visited as u64).ok_or(OutOfRange)?;
            let window = self.translation(address).ok_or(OutOfRange)?;
            let offset = address - window.start;
            let available = usize::try_from(window.size - offset).unwrap_or(usize::MAX);
            let now = available.min(bytes - visited);
            // SAFETY: the offset lies inside the mapping.
            visit(unsafe { window.base.add(offset as usize) }, visited, now);
            visited += now;
            last = Some(*window);
        }
        Ok(last)
    }

    /// Returns the translation of the region that contains a guest-physical address; `None` if no
    /// region does.
    #[inline]
    pub(crate) fn translation(&self, addr: u64) -> Option<&RegionTranslation> {
        let after = self.windows.partition_point(|window| window.start <= addr);
        let window = self.windows.get(after.checked_sub(1)?)?;
        (addr - window.start < window.size).then_some(window)
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
        end = start(region) + region.size();
    }
    Ok(())
}

/// Address translation of one region: guest-physical addresses from `start` on are mapped at
/// `base`.
#[derive(Clone, Copy)]
pub(crate) struct RegionTranslation {
    start: u64,
    size: u64,
    base: *mut u8,
}

// SAFETY: `base` points into plain shared memory and is only used for copies that tolerate
// concurrent writers, as that of the region.
unsafe impl Send for RegionTranslation {}
// SAFETY: as above.
unsafe impl Sync for RegionTranslation {}

impl RegionTranslation {
    fn from_region(region: &Region) -> Self {
        Self { start: region.guest_addr(), size: region.size(), base: region.base() }
    }

    /// Translation of a region without addresses.
    pub(crate) const EMPTY: Self = Self { start: 0, size: 0, base: core::ptr::null_mut() };

    /// Returns the location in this process of `bytes` bytes at a guest-physical address; `None`
    /// unless the region contains all of them. The pointer is valid while the region exists.
    #[inline(always)]
    pub(crate) fn pointer(&self, addr: u64, bytes: usize) -> Option<*mut u8> {
        let offset = addr.wrapping_sub(self.start);
        let is_inside = offset < self.size && bytes as u64 <= self.size - offset;
        // SAFETY: the offset lies inside the mapping.
        is_inside.then(|| unsafe { self.base.add(offset as usize) })
    }
}

/// Error: an address is not in guest memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfRange;

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
