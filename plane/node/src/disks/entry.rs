//! One disk: what it is to be, and what is open of it. Written by the control thread only.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_contract::{ApiError, Name, StorageState};
use suimon_image::Shape;
use suimon_ports::{DiskDevice, FileName, StoreFiles};
use suimon_quantity::DiskId;
use suimon_storage::{Freeing, images};

use super::file_work::Opened;
use super::store_threads::StoreWork;
use super::wanted::WantedDisk;
use crate::failing::Failing;

/// See the module.
pub(crate) struct DiskEntry {
    pub(crate) name: Name,
    pub(crate) id: DiskId,
    /// VMs whose guests do something that they finish only when their writes have ended. Held while
    /// the storage plane is told, and before `state`.
    pub(super) awaited_by: Mutex<BTreeSet<Name>>,
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
    /// Space that requests can free, of the images that were opened last.
    pub(crate) freeing: Freeing,
    /// True if a flush has failed since the disk was opened. Its metadata is checked when it is opened.
    pub(crate) has_failed_flush: bool,
    /// What is being done to its file, for which it is out of service.
    pub(crate) work: Option<WorkUnderWay>,
    /// Whether it goes to another node with its VM, or comes from one.
    pub(crate) moving: Option<Moving>,
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

/// How a disk moves from one node to another with its VM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moving {
    /// It is in service here, and copied to the other node.
    CopiedTo,
    /// The disk is in service on this node while the contents of the other node's disk are copied to it.
    CopiedFrom,
    /// Both nodes see its file. It is in service here, and will be handed over.
    HandedTo,
    /// The same, and it was let go of: the other node may have its file open.
    GoneTo,
    /// Both nodes see its file, which the other has open until its VM has come.
    ComesFrom,
}

/// A disk that is in service.
pub(crate) struct OpenDisk {
    /// Kind of its own image; `None` while another node has that open.
    pub(crate) kind: Option<images::DiskKind>,
    pub(crate) shape: Shape,
    pub(crate) files: Arc<dyn StoreFiles>,
    /// Names of the image files in the store: the disk's own, then its parent's and so on. Empty for a
    /// block device.
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
            freeing: Freeing { can_discard: true, can_zero_fast: false },
            has_failed_flush: false,
            work: None,
            moving: None,
        };
        Self { name, id, awaited_by: Mutex::default(), state: Mutex::new(state) }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// As events and errors name it.
    pub(crate) fn label(&self) -> String {
        format!("disk/{}", self.name)
    }

    /// Whether another node has its file: nobody here opens it, or removes it.
    pub(crate) fn is_away(&self) -> bool {
        self.lock().moving.is_some_and(Moving::is_away)
    }
}

impl Moving {
    pub(crate) const fn is_away(self) -> bool {
        matches!(self, Self::GoneTo | Self::ComesFrom)
    }

    /// What is being done to the disk.
    pub(crate) const fn way(self) -> &'static str {
        match self {
            Self::CopiedTo => "its VM goes to another node, and the disk is copied there",
            Self::CopiedFrom => "its VM comes from another node, and the disk is copied from there",
            Self::HandedTo => "its VM goes to another node, and the disk is handed over to that",
            Self::GoneTo => "its VM goes to another node, which the disk was handed over to",
            Self::ComesFrom => {
                "its VM comes from another node, which has the disk until the VM has come"
            }
        }
    }
}

impl DiskState {
    /// Whether it is as desired, and why not.
    pub(crate) fn condition(&self) -> (StorageState, Option<String>) {
        if let Some(WorkUnderWay { operation, verb }) = &self.work {
            let text = format!("it is out of service for operation {operation} (disk {verb})");
            return (StorageState::Working, Some(text));
        }
        if let Some(moving) = self.moving.filter(|moving| moving.is_away()) {
            return (StorageState::Away, Some(moving.way().to_owned()));
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
