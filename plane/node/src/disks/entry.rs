//! One disk: what it is to be, and what is open of it. Written by the control thread only.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_contract::{ApiError, Name, StorageState};
use suimon_image::Shape;
use suimon_ports::{DiskDevice, FileName, StoreFiles};
use suimon_quantity::DiskId;

use super::file_work::Opened;
use super::store_threads::StoreWork;
use super::wanted::WantedDisk;
use crate::failing::Failing;
use crate::port_table::EventBudget;

/// See the module.
pub(crate) struct DiskEntry {
    pub(crate) name: Name,
    pub(crate) id: DiskId,
    state: Mutex<DiskState>,
}

/// What is known of a disk.
pub(crate) struct DiskState {
    /// What it is, or is to be.
    pub(crate) wanted: WantedDisk,
    /// `None` if it could not be opened.
    pub(crate) open: Option<OpenDisk>,
    /// Its opening, if the store has not answered yet.
    pub(crate) opening: Option<OpeningUnderWay>,
    /// Counts openings, so that a notice of one that was closed is not taken for one of
    /// its successor.
    pub(crate) generation: u64,
    pub(crate) failing: Failing,
    /// Events that its clients may still cause.
    pub(crate) budget: EventBudget,
    /// What is being done to its file, for which it is out of service.
    pub(crate) work: Option<WorkUnderWay>,
    /// Whether it is copied to another node or from one, while it is in service.
    pub(crate) copying: Option<Copying>,
}

/// A disk that is being opened.
pub(crate) struct OpeningUnderWay {
    pub(crate) work: StoreWork<Result<Opened, ApiError>>,
    /// Whether an event says that it takes too long.
    pub(crate) is_told: bool,
}

/// Work on a disk that takes its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WorkUnderWay {
    /// Its operation.
    pub(crate) operation: u64,
    /// `check`, `compact`, …
    pub(crate) verb: &'static str,
}

/// Which way a disk is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Copying {
    /// To another node, which the disk's VM goes to.
    To,
    /// From another node, which the disk's VM comes from.
    From,
}

/// A disk that is in service.
pub(crate) struct OpenDisk {
    pub(crate) shape: Shape,
    pub(crate) files: Arc<dyn StoreFiles>,
    /// Its own file, then its parent's, and so on; none of a block device.
    pub(crate) layers: Vec<FileName>,
    /// What a VM has it by.
    pub(crate) device: Option<Box<dyn DiskDevice>>,
}

impl DiskEntry {
    pub(crate) fn new(name: Name, id: DiskId, wanted: WantedDisk) -> Self {
        let state = DiskState {
            wanted,
            open: None,
            opening: None,
            generation: 0,
            failing: Failing::default(),
            budget: EventBudget::default(),
            work: None,
            copying: None,
        };
        Self { name, id, state: Mutex::new(state) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As events and errors name it.
    pub(crate) fn label(&self) -> String {
        format!("disk/{}", self.name)
    }
}

impl DiskState {
    /// Whether it is as desired, and why not.
    pub(crate) fn condition(&self) -> (StorageState, Option<String>) {
        if let Some(WorkUnderWay { operation, verb }) = &self.work {
            let text = format!("it is out of service for operation {operation} (disk {verb})");
            return (StorageState::Working, Some(text));
        }
        if let Some(opening) = self.opening.as_ref().filter(|opening| opening.work.is_stalled()) {
            let text = format!(
                "the store has not answered for {} s; the disk is opened when it does",
                opening.work.waited().as_secs()
            );
            return (StorageState::Stalled, Some(text));
        }
        if let Some(failure) = &self.failing.now {
            return (StorageState::Failed, Some(failure.reason.clone()));
        }
        match self.open {
            Some(_) => (StorageState::Ready, None),
            None => (StorageState::Failed, Some("it is being opened".to_owned())),
        }
    }
}
