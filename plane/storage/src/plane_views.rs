//! What disks and stores show, of all processors.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use suimon_quantity::{DiskId, ProcessorId, StoreId, Time};

use crate::command::Command;
use crate::full::FullView;
use crate::plane::{StoragePlane, lock};
use crate::store::StoreStatus;
use crate::tally::DiskTally;

/// What a disk has done, and where.
#[derive(Clone, Debug)]
pub struct DiskView {
    /// Which.
    pub disk: DiskId,
    /// The processor that serves it.
    pub processor: ProcessorId,
    /// Clients of other protocols than a VM's ring.
    pub clients: usize,
    /// Its counters.
    pub tally: DiskTally,
    /// For how long its store has not answered, if that is longer than
    /// [`STALLED_AFTER`](crate::STALLED_AFTER).
    pub stalled: Option<Duration>,
    /// Bytes of its image's metadata that are not durable: what a crash would take.
    pub uncommitted_bytes: u64,
    /// Requests that its store has no space for; `None` if there is space.
    pub full: Option<FullView>,
}

/// What a processor does for a store.
#[derive(Clone, Debug)]
pub struct StoreView {
    /// Which.
    pub store: StoreId,
    /// The processor.
    pub processor: ProcessorId,
    /// What it does.
    pub status: StoreStatus,
    /// When this was looked at, by the processor's clock.
    pub at: Time,
    /// What the store's disks get, where its budget is.
    pub flows: Vec<suimon_storage_qos::DiskFlow>,
}

/// What a processor has to show.
#[derive(Default)]
pub(crate) struct Looked {
    pub(crate) disks: Vec<DiskView>,
    pub(crate) stores: Vec<StoreView>,
}

impl StoragePlane {
    /// What all disks have done, ascending.
    #[must_use]
    pub fn disks(&self) -> Vec<DiskView> {
        let mut views: Vec<DiskView> = self.look().into_iter().flat_map(|of| of.disks).collect();
        views.sort_by_key(|view| view.disk);
        views
    }

    /// What all processors do for stores, ascending by store and processor.
    #[must_use]
    pub fn stores(&self) -> Vec<StoreView> {
        let mut views: Vec<StoreView> = self.look().into_iter().flat_map(|of| of.stores).collect();
        views.sort_by_key(|view| (view.store, view.processor));
        views
    }

    fn look(&self) -> Vec<Looked> {
        let slots = lock(&self.0.stores).iter().map(|(id, of)| (*id, of.slots())).collect();
        let slots = Arc::new(slots);
        let (reply, answers) = channel();
        for way in lock(&self.0.ways).values() {
            way.tell(Command::View(Arc::clone(&slots), reply.clone()));
        }
        drop(reply);
        answers.into_iter().collect()
    }
}
