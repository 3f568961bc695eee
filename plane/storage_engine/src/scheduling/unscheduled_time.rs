//! Time in which the worker's thread was runnable but not running.

use crate::disk::qos_slot::EngineDiskSlot;

/// Time span directly before this iteration in which the worker was runnable but not running, and
/// the disks that had requests during it.
#[derive(Debug, Default)]
pub(crate) struct UnscheduledTime {
    pub(crate) ns: u64,
    /// Disks with requests in flight, in ascending order without duplicates.
    pub(crate) busy_disks: Vec<EngineDiskSlot>,
}
