//! Slots of disks in Storage QoS.

use suimon_quantity::StoreId;
use suimon_storage_qos::DiskSlot;

/// Slot of a disk in the Storage QoS of its store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreDiskSlot {
    /// Store that contains the disk.
    pub store: StoreId,
    /// Slot in the store's scheduler.
    pub slot: DiskSlot,
}

/// Slot of a disk, with the store's number on the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EngineDiskSlot {
    pub(crate) store_number: usize,
    pub(crate) slot: DiskSlot,
}
