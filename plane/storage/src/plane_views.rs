//! State of the disks and stores of all workers.

use std::sync::Arc;
use std::sync::mpsc::channel;

use crate::command::Command;
use crate::plane::{StoragePlane, lock};
use crate::worker_view::{DiskView, Looked, StoreView};

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
