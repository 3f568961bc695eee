//! Limits on the address space and the mappings that front-ends make this process use.
//!
//! A memory file can be sparse, so that a front-end can describe any amount of memory. Without a
//! limit, a few front-ends would use the whole address space of the process, and the memory of
//! other VMs could not be mapped.
//!
//! Each device may map a guaranteed share. It may map more as long as all devices together use at
//! most half of the limit of the host. The other half is reserved for shares.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Maximum size in bytes of the mappings of all devices: half of the user address space of an
/// x86-64 process.
pub(crate) const HOST_BYTES_MAX: u64 = 64 << 40;
/// Maximum number of regions of all devices: three quarters of the guarded mappings. The others are
/// reserved for disk images in memory.
pub(crate) const HOST_REGIONS_MAX: u64 = suimon_mapping::GUARDS_MAX as u64 / 4 * 3;
/// Share of each device in bytes, guaranteed unless the limit of the host is reached.
pub(crate) const DEVICE_SHARE_BYTES: u64 = 64 << 30;
/// Share of each device in regions, guaranteed unless the limit of the host is reached.
pub(crate) const DEVICE_SHARE_REGIONS: u64 = 32;

/// Size and number of mapped regions, of one device or of all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Usage {
    bytes: u64,
    regions: u64,
}

static HOST: Mutex<Usage> = Mutex::new(Usage { bytes: 0, regions: 0 });

/// Limit that another mapping would exceed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MappingLimitExceeded {
    /// The limit of the device, [`device_bytes_max`].
    Device,
    /// A limit of the host.
    Host,
}

/// Counter of the memory that one device maps. All regions of a device use the same one.
#[derive(Debug, Default)]
pub struct MappedMemoryCounter(Mutex<Usage>);

/// Mapped region that is counted for its device and the host until this value is dropped.
#[derive(Debug)]
pub(crate) struct CountedMapping {
    memory: Arc<MappedMemoryCounter>,
    bytes: u64,
}

/// Returns the maximum number of bytes that one device may map: twice the memory of the host, at
/// least [`DEVICE_SHARE_BYTES`]. The first call reads the size of the host's memory (sysinfo(2)).
pub fn device_bytes_max() -> u64 {
    static MAX: OnceLock<u64> = OnceLock::new();
    *MAX.get_or_init(|| {
        let info = rustix::system::sysinfo();
        let memory = info.totalram.saturating_mul(u64::from(info.mem_unit));
        memory.saturating_mul(2).clamp(DEVICE_SHARE_BYTES, HOST_BYTES_MAX)
    })
}

impl Usage {
    /// Returns the usage with one more region of `bytes` bytes.
    fn with(self, bytes: u64) -> Self {
        Self { bytes: self.bytes.saturating_add(bytes), regions: self.regions.saturating_add(1) }
    }

    fn without(self, bytes: u64) -> Self {
        Self { bytes: self.bytes.saturating_sub(bytes), regions: self.regions.saturating_sub(1) }
    }

    fn is_within(self, bytes: u64, regions: u64) -> bool {
        self.bytes <= bytes && self.regions <= regions
    }
}

/// Checks the usage of a device and of the host, both including the new region.
///
/// # Errors
/// The limit that is exceeded.
fn check(device: Usage, host: Usage, device_bytes_max: u64) -> Result<(), MappingLimitExceeded> {
    if device.bytes > device_bytes_max {
        return Err(MappingLimitExceeded::Device);
    }
    let part = if device.is_within(DEVICE_SHARE_BYTES, DEVICE_SHARE_REGIONS) { 1 } else { 2 };
    let is_free = host.is_within(HOST_BYTES_MAX / part, HOST_REGIONS_MAX / part);
    if is_free { Ok(()) } else { Err(MappingLimitExceeded::Host) }
}

impl MappedMemoryCounter {
    /// Counts one more region of `bytes` bytes for this device and the host.
    ///
    /// # Errors
    /// The limit that would be exceeded; the region is not counted.
    pub(crate) fn charge(
        self: &Arc<Self>,
        bytes: u64,
    ) -> Result<CountedMapping, MappingLimitExceeded> {
        let max = device_bytes_max();
        let mut host = HOST.lock().unwrap_or_else(PoisonError::into_inner);
        let mut device = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (new_device, new_host) = (device.with(bytes), host.with(bytes));
        check(new_device, new_host, max)?;
        (*device, *host) = (new_device, new_host);
        Ok(CountedMapping { memory: Arc::clone(self), bytes })
    }
}

impl Drop for CountedMapping {
    fn drop(&mut self) {
        let mut host = HOST.lock().unwrap_or_else(PoisonError::into_inner);
        let mut device = self.memory.0.lock().unwrap_or_else(PoisonError::into_inner);
        (*device, *host) = (device.without(self.bytes), host.without(self.bytes));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEVICE_MAX: u64 = 1 << 40;

    fn usage(bytes: u64, regions: u64) -> Usage {
        Usage { bytes, regions }
    }

    #[test]
    fn a_device_maps_at_most_its_limit() {
        let host = usage(DEVICE_MAX, 1);
        assert_eq!(check(usage(DEVICE_MAX, 1), host, DEVICE_MAX), Ok(()));
        assert_eq!(
            check(usage(DEVICE_MAX + 1, 1), host, DEVICE_MAX),
            Err(MappingLimitExceeded::Device)
        );
    }

    #[test]
    fn devices_beyond_their_share_leave_half_of_the_host_for_the_shares_of_others() {
        let half = usage(HOST_BYTES_MAX / 2 + 1, 1);
        assert_eq!(
            check(usage(DEVICE_SHARE_BYTES + 1, 1), half, DEVICE_MAX),
            Err(MappingLimitExceeded::Host)
        );
        assert_eq!(
            check(usage(DEVICE_SHARE_BYTES, DEVICE_SHARE_REGIONS), half, DEVICE_MAX),
            Ok(())
        );
        let regions = usage(0, HOST_REGIONS_MAX / 2 + 1);
        assert_eq!(
            check(usage(0, DEVICE_SHARE_REGIONS + 1), regions, DEVICE_MAX),
            Err(MappingLimitExceeded::Host)
        );
        assert_eq!(check(usage(0, DEVICE_SHARE_REGIONS), regions, DEVICE_MAX), Ok(()));
        let full = usage(HOST_BYTES_MAX + 1, 1);
        assert_eq!(check(usage(1, 1), full, DEVICE_MAX), Err(MappingLimitExceeded::Host));
    }

    #[test]
    fn a_dropped_charge_is_not_counted() {
        let device = Arc::new(MappedMemoryCounter::default());
        let max = device_bytes_max();
        let charge = device.charge(max).unwrap();
        assert_eq!(device.charge(1).unwrap_err(), MappingLimitExceeded::Device);
        drop(charge);
        assert_eq!(*device.0.lock().unwrap(), Usage::default());
        assert!(device.charge(1).is_ok());
    }
}
