//! Time in which workers were not scheduled by the kernel.

use serde::{Deserialize, Serialize};

use crate::DiskSlot;

/// Time in which a disk's worker was runnable but not running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unscheduled {
    /// Disk that the worker services.
    pub disk: DiskSlot,
    /// Nanoseconds of the disk's requests in flight, summed over the requests.
    pub in_flight_ns: u64,
    /// Nanoseconds in which the disk had no requests in flight and its queue was not empty.
    #[serde(rename = "untaken_ns")]
    pub unserviced_ns: u64,
}
