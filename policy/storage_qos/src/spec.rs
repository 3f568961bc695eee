//! What is said of a store.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Normalization;

/// Disks that a store may have.
pub const DISKS_MAX: usize = 4096;

/// How a store's requests are counted and how many of them the device gets.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSpec {
    /// The bytes that count as one operation.
    pub normalization: Normalization,
    /// The device gets at least so many requests at a time; from 1.
    pub depth_min: u32,
    /// The device gets at most so many. Between the two the number follows the device's
    /// latency.
    pub depth_max: u32,
    /// While one disk has the store for itself, the device may take so long for each request,
    /// where that is more than it may take otherwise. Who comes then may have to wait as long, once.
    #[serde(default)]
    pub alone_latency: Duration,
    /// Requests that may wait at a time, of all disks together. Memory for them is taken
    /// when the scheduler is made.
    pub waiting_max: u32,
}

impl Default for StoreSpec {
    fn default() -> Self {
        Self {
            normalization: Normalization::default(),
            depth_min: 1,
            depth_max: 256,
            alone_latency: Duration::from_millis(2),
            waiting_max: 16_384,
        }
    }
}
