//! Moves, and why they are made.

use core::fmt;
use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_quantity::{Count, ProcessorId, QueueId};

use crate::Load;

/// A queue is to be handed over. Answer with [`crate::Vmq::handle_moved`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move {
    /// The queue.
    pub queue: QueueId,
    /// Its owner so far.
    pub from: ProcessorId,
    /// Its owner from now on.
    pub to: ProcessorId,
    /// Why.
    pub reason: Reason,
    /// What this is expected to do.
    pub predicted: Figures,
}

/// Loads of the processors of a move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Figures {
    /// Of the one that had the queue, before.
    pub from_before: Load,
    /// Of the one that had the queue, after.
    pub from_after: Load,
    /// Of the one that gets the queue, before.
    pub to_before: Load,
    /// Of the one that gets the queue, after.
    pub to_after: Load,
}

/// Why a queue moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// The processor is above the high mark.
    Overloaded {
        /// What the queue is taken to need.
        queue_load: Load,
        /// The processor did all it could, so that its queues are taken to want twice
        /// what they got.
        saturated: bool,
    },
    /// Something other than these queues takes the processor.
    Crowded {
        /// How much of it.
        other_load: Load,
    },
    /// The processor has little to do, and what it has fits elsewhere.
    Underused {
        /// What its queues need.
        queues_load: Load,
        /// For how long that has been so.
        for_time: Duration,
    },
    /// No more processors may be used than this.
    Limit {
        /// How many may be used.
        max_processors: u16,
    },
    /// The processor may not be used any more, or is gone.
    NotPermitted,
    /// Queues are assigned by weight, and the specification changed.
    Assigned {
        /// The weight of the queue.
        weight: u8,
    },
    /// The queue is now the default queue, which the base processor works off.
    DefaultQueue,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Overloaded { queue_load, saturated: false } => {
                write!(f, "the processor was overloaded; the queue takes {queue_load}")
            }
            Self::Overloaded { queue_load, saturated: true } => {
                write!(f, "the processor was saturated; the queue may want {queue_load}")
            }
            Self::Crowded { other_load } => {
                write!(f, "other work took {other_load} of the processor")
            }
            Self::Underused { queues_load, for_time } => write!(
                f,
                "the processor's queues took {queues_load} and fitted elsewhere for {:.1} s",
                for_time.as_secs_f32()
            ),
            Self::Limit { max_processors } => {
                let processors = Count::new(*max_processors, "processor");
                write!(f, "no more than {processors} may be used")
            }
            Self::NotPermitted => f.write_str("the processor may not be used any more"),
            Self::Assigned { weight } => {
                write!(f, "queues were assigned anew; this one has weight {weight}")
            }
            Self::DefaultQueue => {
                f.write_str("the base processor works off the default queue, which this now is")
            }
        }
    }
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} → {} there, {} → {} here",
            self.from_before, self.from_after, self.to_before, self.to_after
        )
    }
}
