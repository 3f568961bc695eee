//! Time lost by workers that were not running.

use serde::{Deserialize, Serialize};

use crate::DiskSlot;

/// Time in which a disk's worker was runnable and not running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unscheduled {
    /// Disk serviced by the worker.
    pub disk: DiskSlot,
    /// Nanoseconds summed over the disk's requests in flight.
    pub in_flight_ns: u64,
    /// Nanoseconds in which the disk had no requests in flight and its queue was not empty.
    #[serde(rename = "untaken_ns")]
    pub unserviced_ns: u64,
}
