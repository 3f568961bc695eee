//! State of one disk: its configuration, and its images and front-ends while it is open. Only the
//! control thread changes the state.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use suimon_contract::{ApiError, ErrorCode, Name, StorageState};
use suimon_image::DiskGeometry;
use suimon_image_files::DiscardSupport;
use suimon_ports::{DeviceError, DiskDevice, FileId, FileName, StoreFiles};
use suimon_quantity::DiskId;
use suimon_storage::PlaneError;

use super::image_task::OpenResult;
use super::required::RequiredDisk;
use super::store_threads::PendingStoreOperation;
use crate::errors::error_code;
use crate::retry::RetryState;

/// One disk of the desired state.
pub(crate) struct DiskEntry {
    pub(crate) name: Name,
    pub(crate) id: DiskId,
    /// VMs whose guests currently shut down or release the disk and therefore must complete their
    /// writes. Lock order: before `state`; held while the full-store policy is set in the storage
    /// plane.
    pub(super) vms_awaiting_writes: Mutex<BTreeSet<Name>>,
    /// True if the disk has had no image yet. Only then a missing image file is created
    /// (`new_disks.rs`). An attempt to open the disk uses the value from its beginning.
    is_new: AtomicBool,
    /// True if the disk may have a file that is the parent of an image in its store
    /// (`unchecked_disks.rs`). An attempt to open the disk uses the value from its beginning.
    checks_children: AtomicBool,
    state: Mutex<DiskState>,
}

/// Mutable state of a disk.
pub(crate) struct DiskState {
    /// Configuration in effect, or the one that the change in progress puts into effect.
    pub(crate) required: RequiredDisk,
    /// Images and front-end; `None` while the disk is not open.
    pub(crate) open: Option<OpenDisk>,
    /// Pending attempt to open the disk; the store has not responded yet.
    pub(crate) opening: Option<PendingOpen>,
    /// Number of the current attempt to open the disk. A notice with another number is from a
    /// closed front-end and ignored.
    pub(crate) generation: u64,
    pub(crate) retry: RetryState,
    /// Space that requests can free, of the images that were opened last.
    pub(crate) discard_support: DiscardSupport,
    /// True if a flush has failed since the disk was opened. Its metadata is checked when it is
    /// opened.
    pub(crate) has_failed_flush: bool,
    /// True while a change opens the disk whose missing image it creates on request.
    pub(crate) is_image_requested: bool,
    /// Job on the disk's file, for which the disk is out of service.
    pub(crate) job: Option<CurrentJob>,
    /// Migration of the disk's VM between this node and another; `None` without a migration.
    pub(crate) migration: Option<DiskMigrationState>,
}

/// Pending attempt to open a disk.
pub(crate) struct PendingOpen {
    pub(crate) operation: PendingStoreOperation<OpenResult>,
    /// True if an event has reported that the store does not respond.
    pub(crate) is_reported: bool,
}

/// Job for which a disk is out of service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CurrentJob {
    /// Number of the operation that runs the job.
    pub(crate) operation_id: u64,
    /// Name of the job, such as `check` or `compact`.
    pub(crate) verb: &'static str,
}

/// State of a disk whose VM migrates between this node and another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DiskMigrationState {
    /// In service on this node, and copied to the other node.
    CopyOut,
    /// In service on this node, while the contents of the other node's disk are copied to it.
    CopyIn,
    /// On a store that both nodes share. In service on this node until the handover.
    HandoverPending,
    /// On a store that both nodes share, and closed here for the handover. The other node may have
    /// the file open.
    HandedOver,
    /// On a store that both nodes share. The other node has the file open until the VM runs here.
    AwaitingHandover,
}

/// Resources of a disk in service.
pub(crate) struct OpenDisk {
    /// Kind of the disk's own image; `None` while the other node of a migration has the image open.
    pub(crate) kind: Option<suimon_image_files::DiskKind>,
    pub(crate) geometry: DiskGeometry,
    pub(crate) files: Arc<dyn StoreFiles>,
    /// Names of the image files in the store: the disk's own image, its parent, and so on. Empty
    /// for a block device.
    pub(crate) layer_files: Vec<FileName>,
    /// vhost-user front-end for the VM.
    pub(crate) device: Option<Box<dyn DiskDevice>>,
    /// Identity of the image file if it was created when the disk was opened.
    pub(crate) created_file_id: Option<FileId>,
}

impl DiskEntry {
    pub(crate) fn new(name: Name, id: DiskId, required: RequiredDisk) -> Self {
        let state = DiskState {
            required,
            open: None,
            opening: None,
            generation: 0,
            retry: RetryState::default(),
            discard_support: DiscardSupport { can_discard: true, can_zero_fast: false },
            has_failed_flush: false,
            is_image_requested: false,
            job: None,
            migration: None,
        };
        let (awaited_by, is_new) = (Mutex::default(), AtomicBool::new(false));
        let checks_children = AtomicBool::new(false);
        Self {
            name,
            id,
            vms_awaiting_writes: awaited_by,
            is_new,
            checks_children,
            state: Mutex::new(state),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, DiskState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the name of the disk in events and errors, `disk/NAME`.
    pub(crate) fn label(&self) -> String {
        format!("disk/{}", self.name)
    }

    /// Returns true if the disk has had no image yet.
    pub(crate) fn is_new(&self) -> bool {
        self.is_new.load(Ordering::Acquire)
    }

    /// Sets whether the disk has had no image yet. The file of a new disk must be checked.
    pub(super) fn set_new(&self, is_new: bool) {
        self.is_new.store(is_new, Ordering::Release);
        if is_new {
            self.set_checks_children(true);
        }
    }

    /// Returns true if the disk's file may be the parent of an image in its store.
    pub(crate) fn checks_children(&self) -> bool {
        self.checks_children.load(Ordering::Acquire)
    }

    /// Sets whether the disk's file may be the parent of an image in its store.
    pub(super) fn set_checks_children(&self, checks_children: bool) {
        self.checks_children.store(checks_children, Ordering::Release);
    }

    /// Returns true if another node owns the file during a migration. This node must neither open
    /// nor remove the file.
    pub(crate) fn is_owned_by_other_node(&self) -> bool {
        self.lock().migration.is_some_and(DiskMigrationState::is_owned_by_other_node)
    }
}

impl DiskMigrationState {
    pub(crate) const fn is_owned_by_other_node(self) -> bool {
        matches!(self, Self::HandedOver | Self::AwaitingHandover)
    }

    /// Returns the description of the migration for errors and status.
    pub(crate) const fn description(self) -> &'static str {
        match self {
            Self::CopyOut => "its VM is migrating to another node, to which the disk is copied",
            Self::CopyIn => "its VM is migrating from another node, from which the disk is copied",
            Self::HandoverPending => {
                "its VM is migrating to another node, to which the disk is handed over"
            }
            Self::HandedOver => {
                "its VM is migrating to another node, which has taken over the disk"
            }
            Self::AwaitingHandover => {
                "its VM is migrating from another node, which uses the disk until the VM arrives"
            }
        }
    }
}

impl DiskState {
    /// Returns the state of the disk in the API, and the reason unless it is ready.
    pub(crate) fn condition(&self) -> (StorageState, Option<String>) {
        if let Some(CurrentJob { operation_id: operation, verb }) = &self.job {
            let text = format!("out of service for operation {operation} (disk {verb})");
            return (StorageState::OperationInProgress, Some(text));
        }
        if let Some(moving) = self.migration.filter(|moving| moving.is_owned_by_other_node()) {
            return (StorageState::OpenOnOtherNode, Some(moving.description().to_owned()));
        }
        if let Some(opening) =
            self.opening.as_ref().filter(|opening| opening.operation.is_stalled())
        {
            let text = format!(
                "the store has not responded for {} s; the disk opens when it responds",
                opening.operation.elapsed().as_secs()
            );
            return (StorageState::Stalled, Some(text));
        }
        if let Some(failure) = &self.retry.current_failure {
            return (StorageState::Failed, Some(failure.reason.clone()));
        }
        match self.open {
            Some(_) => (StorageState::Ready, None),
            None => (StorageState::Failed, Some("being opened".to_owned())),
        }
    }
}

pub(crate) fn disk_device_error(entry: &DiskEntry, table: &str, error: &DeviceError) -> ApiError {
    ApiError::new(error_code(error.kind), error.detail.clone())
        .with_resource(entry.label())
        .with_field(format!("{table}.{}", error.field))
}

/// Converts an error of the storage plane about a disk into an API error.
pub(super) fn plane_error(entry: &DiskEntry, error: &PlaneError) -> ApiError {
    ApiError::new(ErrorCode::HostError, error.to_string()).with_resource(entry.label())
}
