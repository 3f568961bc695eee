//! Role of a worker in a store, and status of the store on the worker.

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
    /// Role of the worker. A worker that is to become the only one remains [`StoreRole::Shared`]
    /// while grants of other workers are outstanding.
    pub role: StoreRole,
    /// Requests of this worker that are queued for the store.
    pub waiting: u32,
    /// Requests of this worker that were dispatched and have not completed.
    pub in_flight_of_worker: u32,
    /// Requests of all workers in the device, as reported by the workers.
    pub in_flight: u32,
    /// Largest number of requests in the device.
    pub depth: u32,
    /// Mean device latency of a request in nanoseconds.
    pub latency_ns: u64,
    /// Capacity estimate of the last time at which requests were queued for the store.
    pub estimate: Option<CapacityEstimate>,
}
