//! What was measured.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::{ProcessorId, QueueId};

/// What queues and processors cost in a period. Whatever is not named cost nothing;
/// what is not known is passed over; what is named twice is added up, so that a queue that
/// moved in the period may be named for either processor.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurements {
    /// How long the period was.
    pub period: Duration,
    /// Queues.
    pub queues: Vec<QueueBusy>,
    /// Processors.
    pub processors: Vec<ProcessorBusy>,
}

/// What a queue cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueBusy {
    /// The queue.
    pub queue: QueueId,
    /// Time of a processor that it took, in ns.
    pub busy_ns: u64,
}

/// How busy a processor was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessorBusy {
    /// The processor.
    pub processor: ProcessorId,
    /// Time in which it worked, in ns, for these queues or anything else. Looking for
    /// work in vain is not work.
    pub busy_ns: u64,
}
