//! Observed state of VMQ: assignment of queues to workers, with reasons.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Name, VmqConfig};

/// Observed state of VMQ of a team or uplink.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmqStatus {
    /// Name of the team or uplink.
    pub uplink: Name,
    /// Desired state of VMQ.
    pub config: VmqConfig,
    /// State of workers, by number.
    pub workers: Vec<VmqWorkerStatus>,
    /// Queues, by NIC, direction and number.
    pub queues: Vec<VmqQueueStatus>,
}

/// State of a worker in VMQ. Loads are parts per million of the worker's time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename = "VmqProcessorStatus")]
#[schema(as = VmqProcessorStatus)]
pub struct VmqWorkerStatus {
    /// Number of the worker.
    pub worker: u16,
    /// True if the configuration permits the worker.
    pub permitted: bool,
    /// Number of queues of this team or uplink assigned to the worker. Without queues, the worker
    /// is parked.
    pub queues: u32,
    /// Total load of the worker.
    pub load_ppm: u32,
    /// Load not caused by these queues.
    pub other_load_ppm: u32,
}

/// Queue and its assignment to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct VmqQueueStatus {
    /// Id of the queue, such as `web/rx/0`, as shown by `suimon queue list`.
    pub queue: String,
    /// NIC or uplink that the queue belongs to.
    pub nic: Name,
    /// True if the queue is the default queue, because its NIC has `vmq_weight` 0.
    #[serde(rename = "default_queue")]
    pub is_default_queue: bool,
    /// Worker that services the queue.
    pub worker: u16,
    /// Load that the queue causes, in parts per million of its worker's time.
    pub load_ppm: u32,
    /// Seconds since the queue was assigned to the worker.
    pub age_s: u64,
    /// Reason for the assignment to this worker.
    pub reason: String,
    /// Reason why VMQ does not move the queue now, with the remaining time if a later move is
    /// possible.
    pub stay_reason: String,
}

#[cfg(test)]
#[path = "vmq_status_tests.rs"]
mod tests;
