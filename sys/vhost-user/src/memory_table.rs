//! Table of the VM's memory regions, which the front-end sets as a whole or region by region.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use suimon_ring::{GuestMemory, MappedMemoryCounter, MemoryError, REGIONS_MAX, Region, RegionSpec};

use crate::fault::DeviceFault;
use crate::message::RegionInfo;
use crate::request::Request;

/// Memory regions, and the guest memory built from them.
///
/// QEMU up to 7.2 has a vhost device for each queue pair, and each of them adds and removes the
/// same regions over the shared connection. The first addition of a region maps it. The first
/// removal unmaps it at once, because another region may be about to replace it. Further additions
/// and removals of the same region are counted and have no effect.
#[derive(Default)]
pub(crate) struct MemoryTable {
    regions: Vec<MappedRegion>,
    /// Unmapped regions with repeated additions, each with the number of repeated removals that are
    /// still expected.
    expected_removals: Vec<(Identity, u32)>,
    memory: Option<Arc<GuestMemory>>,
    mapped: Arc<MappedMemoryCounter>,
}

struct MappedRegion {
    region: Arc<Region>,
    /// Number of repeated additions of the region.
    repeats: u32,
}

/// Identity of a region: guest-physical address, address in the front-end, and size in bytes.
type Identity = (u64, u64, u64);

/// Effect of a message on the memory. After `NewMemory`, no ring may use the old memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryChange {
    None,
    NewMemory,
}

impl MemoryTable {
    /// Returns the mapped memory; `None` before the front-end has set it.
    pub(crate) fn memory(&self) -> Option<&Arc<GuestMemory>> {
        self.memory.as_ref()
    }

    /// Replaces all regions. The old memory is dropped even if this fails.
    pub(crate) fn replace(&mut self, table: &[(RegionInfo, OwnedFd)]) -> Result<(), DeviceFault> {
        let request = Request::SetMemTable;
        *self = Self::default();
        for (index, (info, fd)) in table.iter().enumerate() {
            self.regions
                .push(MappedRegion { region: self.map(request, index, *info, fd)?, repeats: 0 });
        }
        self.rebuild(request)
    }

    /// Adds and maps a region. If it exists already, only counts the addition.
    pub(crate) fn add(
        &mut self,
        info: RegionInfo,
        fd: &OwnedFd,
    ) -> Result<MemoryChange, DeviceFault> {
        let request = Request::AddMemReg;
        if let Some(position) = self.position(info) {
            if let Some(entry) = self.regions.get_mut(position) {
                entry.repeats = entry.repeats.saturating_add(1);
            }
            return Ok(MemoryChange::None);
        }
        if self.regions.len() >= REGIONS_MAX {
            let source = MemoryError::TooMany { count: self.regions.len() + 1, max: REGIONS_MAX };
            return Err(DeviceFault::Memory { request, source });
        }
        let region = self.map(request, self.regions.len(), info, fd)?;
        self.regions.push(MappedRegion { region, repeats: 0 });
        self.rebuild(request)?;
        Ok(MemoryChange::NewMemory)
    }

    /// Removes and unmaps a region. If it was unmapped already, only counts the removal.
    pub(crate) fn remove(&mut self, info: RegionInfo) -> Result<MemoryChange, DeviceFault> {
        let request = Request::RemMemReg;
        if let Some(index) =
            self.expected_removals.iter().position(|(entry, _)| *entry == identity(info))
        {
            if let Some((_, count)) = self.expected_removals.get_mut(index) {
                *count -= 1;
                if *count == 0 {
                    self.expected_removals.swap_remove(index);
                }
            }
            return Ok(MemoryChange::None);
        }
        let Some(position) = self.position(info) else {
            let RegionInfo { guest_addr, size, .. } = info;
            return Err(DeviceFault::NoRegion { request, guest_addr, size });
        };
        let entry = self.regions.remove(position);
        if entry.repeats > 0 {
            if self.expected_removals.len() >= REGIONS_MAX {
                self.expected_removals.remove(0);
            }
            self.expected_removals.push((identity(info), entry.repeats));
        }
        self.rebuild(request)?;
        Ok(MemoryChange::NewMemory)
    }

    /// Returns true if [`add`](Self::add) would change the memory.
    pub(crate) fn is_changed_by_adding(&self, info: RegionInfo) -> bool {
        self.position(info).is_none()
    }

    /// Returns true if [`remove`](Self::remove) would change the memory.
    pub(crate) fn is_changed_by_removing(&self, info: RegionInfo) -> bool {
        self.expected_removals.iter().all(|(entry, _)| *entry != identity(info))
            && self.position(info).is_some()
    }

    fn position(&self, info: RegionInfo) -> Option<usize> {
        self.regions.iter().position(|entry| {
            let region = &entry.region;
            (region.guest_addr(), region.user_addr(), region.size()) == identity(info)
        })
    }

    fn map(
        &self,
        request: Request,
        index: usize,
        info: RegionInfo,
        fd: &OwnedFd,
    ) -> Result<Arc<Region>, DeviceFault> {
        let RegionInfo { guest_addr, size, user_addr, mmap_offset } = info;
        let spec = RegionSpec { guest_addr, size, user_addr, mmap_offset, fd: fd.as_fd() };
        let region = Region::map(index, &spec, &self.mapped);
        region.map(Arc::new).map_err(|source| DeviceFault::Memory { request, source })
    }

    fn rebuild(&mut self, request: Request) -> Result<(), DeviceFault> {
        self.memory = None;
        let regions: Vec<_> = self.regions.iter().map(|entry| Arc::clone(&entry.region)).collect();
        let is_empty = regions.is_empty();
        let memory =
            GuestMemory::new(regions).map_err(|source| DeviceFault::Memory { request, source })?;
        self.memory = (!is_empty).then(|| Arc::new(memory));
        Ok(())
    }
}

fn identity(info: RegionInfo) -> Identity {
    (info.guest_addr, info.user_addr, info.size)
}

#[cfg(test)]
#[path = "memory_table_tests.rs"]
mod tests;
