//! Specification of a store.

use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::Normalization;

/// Maximum number of disks of a store.
pub const DISKS_MAX: usize = 4096;

/// Normalisation, queue depths and queue size of a store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoreSpec {
    /// Bytes that count as one operation.
    pub normalization: Normalization,
    /// Lower bound of the device's queue depth; at least 1.
    pub depth_min: u32,
    /// Upper bound of the device's queue depth. Within the bounds, the depth is adapted to the
    /// device's latency.
    pub depth_max: u32,
    /// Permitted device latency while one disk is the only user of the store, if it exceeds the
    /// latency permitted otherwise. It may delay the first request of another disk by this time
    /// once.
    #[serde(default)]
    #[serde(rename = "alone_latency")]
    pub single_disk_latency_max: Duration,
    /// Maximum number of queued requests of all disks. Memory for them is allocated when the
    /// scheduler is created.
    pub waiting_max: u32,
}

impl Default for StoreSpec {
    fn default() -> Self {
        Self {
            normalization: Normalization::default(),
            depth_min: 1,
            depth_max: 256,
            single_disk_latency_max: Duration::from_millis(2),
            waiting_max: 16_384,
        }
    }
}
