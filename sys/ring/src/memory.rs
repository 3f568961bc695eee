//! A VM's memory: a table of the regions that are mapped into this process.
//!
//! A front-end describes it as regions, each with an address in three spaces: the
//! guest's physical addresses (used by descriptors), the front-end's own virtual
//! addresses (used to say where a ring lies), and an offset in a file that we map.
#![allow(unsafe_code, reason = "makes pointers into memory that is shared with a VM")]

use std::sync::Arc;

use crate::fault::MemoryError;
use crate::region::{Region, RegionSpec};

/// Regions of one VM that are accepted.
pub const REGIONS_MAX: usize = 256;

/// All of a VM's memory: an immutable table of regions, shared by its rings.
pub struct GuestMemory {
    /// Ascending by guest address, not overlapping.
    regions: Vec<Arc<Region>>,
}

impl core::fmt::Debug for GuestMemory {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let regions = self.regions.iter().map(|r| (r.guest_addr(), r.user_addr(), r.size()));
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
        regions.sort_by_key(|region| region.user_addr());
        check_overlap(&regions, "user address", |region| region.user_addr())?;
        regions.sort_by_key(|region| region.guest_addr());
        check_overlap(&regions, "guest address", |region| region.guest_addr())?;
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
        self.regions.iter().any(|region| region.is_faulted())
    }

    /// Where `bytes` bytes at the front-end's address are mapped, if one region
    /// holds them all. The pointer is good while this memory lives.
    pub(crate) fn user_pointer(&self, user_addr: u64, bytes: u64) -> Option<*mut u8> {
        self.regions.iter().find_map(|region| {
            let offset = user_addr.checked_sub(region.user_addr())?;
            let left = region.size().checked_sub(offset)?;
            // SAFETY: the offset lies inside the mapping.
            (bytes <= left).then(|| unsafe { region.base().add(offset as usize) })
        })
    }

    /// The guest address of what the front-end has at `user_addr`.
    pub(crate) fn guest_addr(&self, user_addr: u64) -> Option<u64> {
        self.regions.iter().find_map(|region| {
            let offset = user_addr.checked_sub(region.user_addr())?;
            (offset < region.size()).then(|| region.guest_addr().saturating_add(offset))
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
        let after = self.regions.partition_point(|region| region.guest_addr() <= addr);
        let region = self.regions.get(after.checked_sub(1)?)?;
        (addr - region.guest_addr() < region.size()).then_some(Window {
            start: region.guest_addr(),
            size: region.size(),
            base: region.base(),
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
        end = start(region) + region.size();
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

impl Window {
    /// Where nothing is.
    pub(crate) const EMPTY: Self = Self { start: 0, size: 0, base: core::ptr::null_mut() };

    /// Where `bytes` bytes at a guest address are mapped, if the window holds them all.
    /// The pointer is good while the window's region lives.
    #[inline(always)]
    pub(crate) fn pointer(&self, addr: u64, bytes: usize) -> Option<*mut u8> {
        let offset = addr.wrapping_sub(self.start);
        let fits = offset < self.size && bytes as u64 <= self.size - offset;
        // SAFETY: the offset lies inside the mapping.
        fits.then(|| unsafe { self.base.add(offset as usize) })
    }
}

/// The address is not in the VM's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OutOfRange;

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
