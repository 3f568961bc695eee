//! State of the disks and stores of all workers.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use suimon_quantity::{DiskId, StoreId, Time, WorkerId};

use crate::command::Command;
use crate::full::FullView;
use crate::plane::{StoragePlane, lock};
use crate::store::StoreStatus;
use crate::tally::DiskCounterCells;

/// State of a disk on its worker.
#[derive(Clone, Debug)]
pub struct DiskView {
    /// Identifier of the disk.
    pub disk: DiskId,
    /// Worker that serves the disk.
    pub worker: WorkerId,
    /// Number of clients other than rings of a VM.
    pub clients: usize,
    /// Counters of the disk.
    pub tally: DiskCounterCells,
    /// Time for which the store has not completed an operation, if it exceeds
    /// [`STALLED_AFTER`](crate::STALLED_AFTER).
    pub stalled: Option<Duration>,
    /// Bytes of image metadata that are not durable and would be lost in a crash.
    pub uncommitted_bytes: u64,
    /// Requests for which the store has no space; `None` if there is space.
    pub full: Option<FullView>,
    /// Error of the flush because of which writes and flushes fail; `None` if no flush has failed.
    pub failed_flush: Option<String>,
}

/// State of a store on a worker.
#[derive(Clone, Debug)]
pub struct StoreView {
    /// Identifier of the store.
    pub store: StoreId,
    /// Worker of this state.
    pub worker: WorkerId,
    /// Role and counters of the worker.
    pub status: StoreStatus,
    /// Time of the reading, by the worker's clock.
    pub at: Time,
    /// State of the store's disks, if this worker holds the budget.
    pub flows: Vec<suimon_storage_qos::DiskFlow>,
}

/// State of one worker's disks and stores.
#[derive(Default)]
pub(crate) struct Looked {
    pub(crate) disks: Vec<DiskView>,
    pub(crate) stores: Vec<StoreView>,
}

impl StoragePlane {
    /// Returns the state of all disks, in ascending order.
    #[must_use]
    pub fn disks(&self) -> Vec<DiskView> {
        let mut views: Vec<DiskView> = self.query().into_iter().flat_map(|of| of.disks).collect();
        views.sort_by_key(|view| view.disk);
        views
    }

    /// Returns the state of stores on all workers, in ascending order of store and worker.
    #[must_use]
    pub fn stores(&self) -> Vec<StoreView> {
        let mut views: Vec<StoreView> = self.query().into_iter().flat_map(|of| of.stores).collect();
        views.sort_by_key(|view| (view.store, view.worker));
        views
    }

    fn query(&self) -> Vec<Looked> {
        let slots = lock(&self.0.stores).iter().map(|(id, of)| (*id, of.slots())).collect();
        let slots = Arc::new(slots);
        let (reply, answers) = channel();
        for worker_channel in lock(&self.0.channels).values() {
            worker_channel.send(Command::View(Arc::clone(&slots), reply.clone()));
        }
        drop(reply);
        answers.into_iter().collect()
    }
}
