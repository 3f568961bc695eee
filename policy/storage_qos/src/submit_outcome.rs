//! Results of submissions and polls.

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;
use thiserror::Error;

use crate::DiskSlot;

/// Result of the submission of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SubmitOutcome {
    /// The caller must dispatch the request now.
    Dispatch,
    /// The request is queued. [`crate::StoreScheduler::poll`] returns it later.
    #[serde(rename = "Waits")]
    Queued,
}

/// Reason for which a request is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// The slot contains no disk.
    #[error(
        "disk slot {} is empty; the caller must add the disk to the scheduler before submitting", .0.0)]
    NoDisk(DiskSlot),
    /// The queue of the store is full.
    #[error("the queue of the store is full; submit the request again after one was dispatched")]
    Full,
}

/// Next action of the scheduler's caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum NextAction {
    /// Dispatch this request, then poll again.
    Dispatch {
        /// Disk that the request belongs to.
        disk: DiskSlot,
        /// Identifier of the request in the engine.
        tag: u32,
    },
    /// Nothing to do until this time, unless a request is submitted or completes.
    WaitUntil(Time),
    /// Nothing to do until a request is submitted or completes.
    Idle,
}
