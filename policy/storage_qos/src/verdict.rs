//! What is said of requests.

use serde::{Deserialize, Serialize};
use suimon_quantity::Time;
use thiserror::Error;

use crate::DiskSlot;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Submitted {
    /// It goes to the device now.
    Dispatch,
    /// It waits; [`crate::StoreScheduler::poll`] will tell when it goes.
    Waits,
}

/// Why a request was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// There is no disk there.
    #[error("there is no disk in slot {}; carry out the store's changes first", .0.0)]
    NoDisk(DiskSlot),
    /// As many requests wait as may wait.
    #[error("the store's queue is full; leave the request where it is until one was dispatched")]
    Full,
}

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Next {
    /// This request goes to the device; ask again.
    Dispatch {
        /// Whose it is.
        disk: DiskSlot,
        /// The engine's word for it.
        tag: u32,
    },
    /// Nothing may go before this time, unless something is submitted or completes.
    WaitUntil(Time),
    /// Nothing may go until something is submitted or completes.
    Idle,
}
