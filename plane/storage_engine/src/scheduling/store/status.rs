//! Status of a store on a worker.

use suimon_storage_qos::CapacityEstimate;

/// Role of a worker in the scheduling of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreRole {
    /// Only worker with disks of the store. It uses the scheduler without sharing it.
    Sole,
    /// Worker that borrows from a budget which it shares with other workers.
    Shared,
}

/// Status of a store on a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkerStoreStatus {
    /// Role of the worker. A worker that is to become the only user remains [`StoreRole::Shared`]
    /// while grants of other workers are outstanding.
    pub role: StoreRole,
    /// Number of requests of this worker that are queued for the store.
    pub waiting: u32,
    /// Number of requests of this worker that were dispatched and have not completed.
    pub in_flight_of_worker: u32,
    /// Number of requests of all workers in the device, as reported by the workers.
    pub in_flight_of_all_workers: u32,
    /// Maximum number of requests in the device, as adapted by the scheduler.
    pub depth_limit: u32,
    /// Mean device latency of a request in nanoseconds.
    pub mean_latency_ns: u64,
    /// Capacity estimate from the last time at which requests were queued for the store; `None`
    /// before.
    pub estimate: Option<CapacityEstimate>,
}
