//! Observed state of VMQ: which processor works off which queue, and why.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Name, VmqConfig};

/// VMQ of a team or uplink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmqStatus {
    /// The team or uplink.
    pub uplink: Name,
    /// As desired.
    pub config: VmqConfig,
    /// All processors, by number.
    pub processors: Vec<VmqProcessorStatus>,
    /// All queues, by NIC, direction and number.
    pub queues: Vec<VmqQueueStatus>,
}

/// A processor, as VMQ sees it. Loads are parts per million of the processor's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmqProcessorStatus {
    /// Which.
    pub processor: u16,
    /// Whether it may be used.
    pub permitted: bool,
    /// Queues of this team or uplink that it works off; with none it is parked.
    pub queues: u32,
    /// How busy it is.
    pub load_ppm: u32,
    /// How much of that is not these queues'.
    pub other_load_ppm: u32,
}

/// A queue and where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmqQueueStatus {
    /// Like `web/rx/0`, as [`QueueStatus`](crate::QueueStatus) has it.
    pub queue: String,
    /// The NIC or uplink it belongs to.
    pub nic: Name,
    /// Whether it is the default queue, for its NIC has a `vmq_weight` of 0.
    pub default_queue: bool,
    /// The processor that works it off.
    pub processor: u16,
    /// What it takes of that processor's time, in parts per million.
    pub load_ppm: u32,
    /// Seconds since it came there.
    pub age_s: u64,
    /// How it came there.
    pub why: String,
    /// Why it stays, or how long.
    pub stays: String,
}

#[cfg(test)]
#[path = "vmq_status_tests.rs"]
mod tests;
