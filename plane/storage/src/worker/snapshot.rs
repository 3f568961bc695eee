//! State of a worker's disks and stores.

use std::time::Duration;

use suimon_quantity::{DiskId, StoreId, Time, WorkerId};
use suimon_storage_engine::{DiskIoCounters, FullStoreView, WorkerStoreStatus};

/// State of a disk on its worker.
#[derive(Clone, Debug)]
pub struct DiskView {
    /// Identifier of the disk that this state describes.
    pub disk: DiskId,
    /// Worker that serves the disk.
    pub worker: WorkerId,
    /// Number of clients other than virtqueues of a VM: connections of NBD clients and of QEMU.
    pub clients: usize,
    /// Counters of the disk since it was added to the worker.
    pub counters: DiskIoCounters,
    /// Time for which the store has not completed an operation, if it exceeds
    /// [`STALLED_AFTER`](suimon_storage_engine::STALLED_AFTER).
    pub stalled_for: Option<Duration>,
    /// Bytes of image metadata that are not durable and would be lost in a crash.
    pub uncommitted_bytes: u64,
    /// Requests for which the store has no space; `None` if there is space.
    pub full_store: Option<FullStoreView>,
    /// Error of the failed flush that makes writes and flushes fail; `None` if no flush has failed.
    pub flush_error: Option<String>,
    /// False if the worker did not respond, and the state is the last known one.
    pub is_current: bool,
}

/// State of a store on a worker.
#[derive(Clone, Debug)]
pub struct StoreView {
    /// Identifier of the store that this state describes.
    pub store: StoreId,
    /// Worker that this state belongs to.
    pub worker: WorkerId,
    /// Role and counters of the worker.
    pub status: WorkerStoreStatus,
    /// Time at which the worker read the state, by the workers' clock.
    pub read_at: Time,
    /// State of the store's disks on all workers; empty in all but one of the store's views. It is
    /// as current as that view, or read from the budget that the workers share.
    pub flows: Vec<suimon_storage_qos::DiskQosStatus>,
    /// False if the worker did not respond, and the state is the last known one.
    pub is_current: bool,
}

/// State of one worker's disks and stores.
#[derive(Clone, Default)]
pub(crate) struct WorkerSnapshot {
    pub(crate) disks: Vec<DiskView>,
    pub(crate) stores: Vec<StoreView>,
}
