//! Device that a worker serves at this moment, readable by other threads.

use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

use suimon_quantity::{DiskId, PortId};

/// Device whose queue a worker serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedDevice {
    /// A NIC, uplink or other port of a switch.
    Port(PortId),
    /// Disk served by the worker.
    Disk(DiskId),
}

/// Device that one worker serves at this moment. The worker sets it before each queue; a thread
/// that detects that the worker does not proceed reads it.
#[derive(Debug, Default)]
pub struct ServedDeviceCell(AtomicU64);

impl ServedDeviceCell {
    const PORT: u64 = 1 << 32;
    const DISK: u64 = 2 << 32;

    /// Records that the worker serves a queue of this device.
    #[inline]
    pub fn set(&self, device: ServedDevice) {
        let code = match device {
            ServedDevice::Port(PortId(id)) => Self::PORT | u64::from(id),
            ServedDevice::Disk(DiskId(id)) => Self::DISK | u64::from(id),
        };
        self.0.store(code, Relaxed);
    }

    /// Clears the device: the worker serves no queue.
    #[inline]
    pub fn clear(&self) {
        self.0.store(0, Relaxed);
    }

    /// Returns the device; `None` if the worker serves no queue.
    pub fn get(&self) -> Option<ServedDevice> {
        let code = self.0.load(Relaxed);
        let id = u32::try_from(code & u64::from(u32::MAX)).unwrap_or(0);
        match code - u64::from(id) {
            Self::PORT => Some(ServedDevice::Port(PortId(id))),
            Self::DISK => Some(ServedDevice::Disk(DiskId(id))),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_device_is_returned_as_it_was_set() {
        let serving = ServedDeviceCell::default();
        assert_eq!(serving.get(), None);
        for id in [0, 7, u32::MAX] {
            for device in [ServedDevice::Port(PortId(id)), ServedDevice::Disk(DiskId(id))] {
                serving.set(device);
                assert_eq!(serving.get(), Some(device));
            }
        }
        serving.clear();
        assert_eq!(serving.get(), None);
    }
}
