//! Reason of a queue's placement.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_quantity::WorkerId;

use crate::{MoveLoads, MoveReason};

/// Reason for which a queue was placed on its worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum PlacementReason {
    /// The queue was placed on its worker when it was added.
    #[serde(rename = "home")]
    InitialPlacement,
    /// The queue is a default queue, which the base worker services.
    DefaultQueue,
    /// The queue was assigned statically, by the weight of its NIC.
    #[serde(rename = "assigned")]
    AssignedStatically {
        /// Weight of the queue's NIC.
        weight: u8,
    },
    /// The queue was moved to its worker.
    Moved {
        /// Worker it was moved from.
        from: WorkerId,
        /// Reason for which the queue is moved.
        #[serde(rename = "because")]
        reason: MoveReason,
        /// Predicted effect of the move.
        predicted: MoveLoads,
    },
    /// A move to another worker failed.
    NotMoved {
        /// Destination of the failed move.
        #[serde(rename = "wanted")]
        preferred: WorkerId,
    },
    /// A program other than the daemon moved the queue to its worker.
    #[serde(rename = "found")]
    MovedExternally,
}

impl fmt::Display for PlacementReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InitialPlacement => f.write_str("first assigned there"),
            Self::DefaultQueue => f.write_str("the default queue, which the base worker services"),
            Self::AssignedStatically { weight } => write!(f, "assigned there with weight {weight}"),
            Self::Moved { from, reason, predicted } => {
                write!(f, "moved from worker {from}: {reason} (predicted {predicted})")
            }
            Self::NotMoved { preferred } => {
                write!(f, "its move to worker {preferred} failed")
            }
            Self::MovedExternally => f.write_str("moved there by another cause than VMQ"),
        }
    }
}
