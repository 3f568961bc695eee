//! What `suimon top` shows of a disk.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{DiskCounters, DiskRequestCounters, Name, QosDelivery, StorageState};

/// What `suimon top` shows of a disk: counters since it was opened, and what it got in the
/// last 5 s.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TopDisk {
    /// Its name.
    pub name: Name,
    /// The store it is in.
    pub store: Name,
    /// Whether it is as desired.
    pub state: StorageState,
    /// Reads that were answered.
    pub reads: u64,
    /// Their bytes.
    pub read_bytes: u64,
    /// Writes that were answered.
    pub writes: u64,
    /// Their bytes.
    pub written_bytes: u64,
    /// Flushes, discards and writes of zeros that were answered.
    pub others: u64,
    /// Time from when each of all these was seen to when it was answered, in ns, in sum;
    /// waits for limits included.
    pub latency_ns: u64,
    /// What it was entitled to, wanted and got in the last 5 s, while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_5_s: Option<QosDelivery>,
}

impl TopDisk {
    /// The line of a disk with these counters.
    pub fn new(
        (name, store): (Name, Name),
        state: StorageState,
        counters: &DiskCounters,
        latency_ns: u64,
        last_5_s: Option<QosDelivery>,
    ) -> Self {
        let DiskCounters { reads, writes, flushes, discards } = counters;
        let of = |counters: &DiskRequestCounters| (counters.requests, counters.bytes);
        let ((reads, read_bytes), (writes, written_bytes)) = (of(reads), of(writes));
        let others = flushes.requests.saturating_add(discards.requests);
        Self {
            name,
            store,
            state,
            reads,
            read_bytes,
            writes,
            written_bytes,
            others,
            latency_ns,
            last_5_s,
        }
    }

    /// All requests that were answered.
    pub fn requests(&self) -> u64 {
        self.reads.saturating_add(self.writes).saturating_add(self.others)
    }
}
