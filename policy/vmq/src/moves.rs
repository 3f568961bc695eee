//! Moves of queues, with their reasons.

use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::{CountedNoun, QueueId, WorkerId};

use crate::Load;

/// Decision to move a queue to another worker. The caller carries it out and reports the outcome
/// with [`crate::Vmq::handle_moved`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// Queue that is to be moved.
    pub queue: QueueId,
    /// Worker that services the queue now.
    pub from: WorkerId,
    /// Worker that must service the queue.
    pub to: WorkerId,
    /// Reason for which the queue is moved.
    pub reason: MoveReason,
    /// Predicted effect of the move.
    pub predicted: MoveLoads,
}

/// Loads of the two workers of a move, before and after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoveLoads {
    /// Load of the source before the move.
    pub from_before: Load,
    /// Load of the source after the move.
    pub from_after: Load,
    /// Load of the destination before the move.
    pub to_before: Load,
    /// Load of the destination after the move.
    pub to_after: Load,
}

/// Reason for which a queue is moved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum MoveReason {
    /// The worker is above the high mark.
    Overloaded {
        /// Assumed demand of the queue.
        queue_load: Load,
        /// True if the worker was saturated, so that its queues' demand is assumed to be twice
        /// their load.
        #[serde(rename = "saturated")]
        is_worker_saturated: bool,
    },
    /// The worker is above the high mark because of work other than its queues.
    #[serde(rename = "crowded")]
    OverloadedByOtherWork {
        /// Load of the other work.
        other_load: Load,
    },
    /// The worker is under-used, and its queues fit on other workers.
    Underused {
        /// Total load of the worker's queues.
        queues_load: Load,
        /// Time for which it was continuously possible to empty the worker.
        #[serde(rename = "for_time")]
        emptiable_for: Duration,
    },
    /// More than the permitted number of workers are in use.
    #[serde(rename = "limit")]
    WorkerLimit {
        /// Maximum number of workers in use.
        #[serde(rename = "max_processors")]
        max_workers: u16,
    },
    /// The worker is no longer permitted or has been removed.
    NotPermitted,
    /// The queue is assigned statically, by the weight of its NIC, after a configuration change.
    #[serde(rename = "assigned")]
    AssignedStatically {
        /// Weight of the queue's NIC.
        weight: u8,
    },
    /// The queue became the default queue, which the base worker services.
    DefaultQueue,
}

impl fmt::Display for MoveReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded { queue_load, is_worker_saturated: false } => {
                write!(f, "the worker was overloaded; the load of the queue is {queue_load}")
            }
            Self::Overloaded { queue_load, is_worker_saturated: true } => {
                write!(f, "the worker was saturated; the load of the queue may be {queue_load}")
            }
            Self::OverloadedByOtherWork { other_load } => {
                write!(f, "other work took {other_load} of the worker")
            }
            Self::Underused { queues_load, emptiable_for: for_time } => write!(
                f,
                "the load of the worker's queues was {queues_load} and fitted on other workers \
                 for {:.1} s",
                for_time.as_secs_f32()
            ),
            Self::WorkerLimit { max_workers } => {
                let workers = CountedNoun::new(*max_workers, "worker");
                write!(f, "the configuration permits at most {workers}")
            }
            Self::NotPermitted => {
                f.write_str("the configuration does not permit the worker any more")
            }
            Self::AssignedStatically { weight } => {
                write!(f, "queues were assigned again; this one has weight {weight}")
            }
            Self::DefaultQueue => {
                f.write_str("the queue became the default queue, which the base worker services")
            }
        }
    }
}

impl fmt::Display for MoveLoads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} → {} on the former worker, {} → {} on the new one",
            self.from_before, self.from_after, self.to_before, self.to_after
        )
    }
}
