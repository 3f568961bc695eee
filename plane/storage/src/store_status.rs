//! Role of a worker in a store, and status of the store on the worker.

use suimon_quantity::WorkerId;
use suimon_storage_qos::CapacityEstimate;

/// Role of a worker in the scheduling of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreRole {
    /// Only worker with disks of the store. It has the scheduler to itself.
    Sole,
    /// Worker that holds the budget of the store; other workers borrow from the budget.
    Home,
    /// Borrows from the budget, which this worker holds.
    Away(WorkerId),
}

/// Status of a store on a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    /// Role of the worker. While grants of other workers are outstanding, a worker that is to
    /// become the only one is [`StoreRole::Home`].
    pub role: StoreRole,
    /// Requests of this worker that are queued for the store.
    pub waiting: u32,
    /// Requests of this worker that were dispatched and have not completed.
    pub under_way: u32,
    /// Requests of all workers in the device, as reported by the workers. 0 if another worker holds
    /// the budget, like the next two fields.
    pub in_flight: u32,
    /// Largest number of requests in the device.
    pub depth: u32,
    /// Mean device latency of a request in nanoseconds.
    pub latency_ns: u64,
    /// Capacity estimate from the last time when requests were queued for the store; `None` if
    /// another worker holds the budget.
    pub estimate: Option<CapacityEstimate>,
}
