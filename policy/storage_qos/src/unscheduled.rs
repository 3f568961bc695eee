//! Time in which workers were runnable but the kernel did not run them.

use serde::{Deserialize, Serialize};

use crate::DiskSlot;

/// Time in which a disk's worker was runnable but the kernel did not run it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiskUnscheduledTime {
    /// Disk that the worker services.
    pub disk: DiskSlot,
    /// Time of the disk's requests in flight, in nanoseconds, summed over the requests.
    pub in_flight_ns: u64,
    /// Time, in nanoseconds, in which the disk had no requests in flight and the client's queue was
    /// not empty.
    #[serde(rename = "untaken_ns")]
    pub unserviced_ns: u64,
}
