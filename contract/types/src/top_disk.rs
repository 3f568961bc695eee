//! Values of `suimon top` for a disk.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{DiskCounters, DiskRequestCounters, Name, QosDelivery, StorageState};

/// Values of `suimon top` for a disk: counters since it was opened, and rates of the last 5 s.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopDisk {
    /// Name of the disk.
    pub name: Name,
    /// Store that contains the disk.
    pub store: Name,
    /// Current state of the disk.
    pub state: StorageState,
    /// Number of completed reads.
    pub reads: u64,
    /// Number of bytes of completed reads.
    pub read_bytes: u64,
    /// Number of completed writes.
    pub writes: u64,
    /// Number of bytes of completed writes.
    pub written_bytes: u64,
    /// Completed flushes, discards and write-zeroes requests.
    #[serde(rename = "others")]
    pub other_requests: u64,
    /// Sum of the latencies of these requests in ns, from their detection to completion, including
    /// time queued for limits.
    #[serde(rename = "latency_ns")]
    pub latency_sum_ns: u64,
    /// Guaranteed, demanded and delivered rates of the last 5 s; absent while the disk is not open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_5_s: Option<QosDelivery>,
    /// True if the disk's worker does not respond: counters and rates are the last known ones.
    #[serde(default)]
    pub stale: bool,
}

impl TopDisk {
    /// Returns the values of a disk with the given counters. `stale` is true if they are the last
    /// known ones.
    pub fn new(
        (name, store): (Name, Name),
        (state, stale): (StorageState, bool),
        counters: &DiskCounters,
        latency_ns: u64,
        last_5_s: Option<QosDelivery>,
    ) -> Self {
        let DiskCounters { reads, writes, flushes, discards } = counters;
        let totals = |counters: &DiskRequestCounters| (counters.requests, counters.bytes);
        let ((reads, read_bytes), (writes, written_bytes)) = (totals(reads), totals(writes));
        let other_requests = flushes.requests.saturating_add(discards.requests);
        Self {
            name,
            store,
            state,
            reads,
            read_bytes,
            writes,
            written_bytes,
            other_requests,
            latency_sum_ns: latency_ns,
            last_5_s,
            stale,
        }
    }

    /// Returns the number of completed requests.
    pub fn requests(&self) -> u64 {
        self.reads.saturating_add(self.writes).saturating_add(self.other_requests)
    }
}
