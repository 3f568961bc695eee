//! Measurements of queues and workers.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::{QueueId, WorkerId};

/// Busy times of queues and workers in one period. Missing entries count as 0, unknown ones are
/// ignored, and duplicates are added: a queue that moved may be listed for both workers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurements {
    /// Length of the measured period.
    pub period: Duration,
    /// Busy time of each queue in the period.
    pub queues: Vec<QueueBusy>,
    /// Busy time of each worker in the period.
    #[serde(rename = "processors")]
    pub workers: Vec<WorkerBusy>,
}

/// Busy time of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueBusy {
    /// Queue that the busy time belongs to.
    pub queue: QueueId,
    /// Worker time used for the queue, in ns.
    pub busy_ns: u64,
}

/// Busy time of a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkerBusy {
    /// Worker that the busy time belongs to.
    #[serde(rename = "processor")]
    pub worker: WorkerId,
    /// Time spent on its queues and other work, in ns. Unsuccessful polling does not count.
    pub busy_ns: u64,
}
