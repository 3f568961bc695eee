//! What can be done to a disk's file, and what stands against it.

use serde::{Deserialize, Serialize};
use suimon_contract::{
    ApiError, ConvertDiskRequest, ErrorCode, Kind, Name, SnapshotDiskRequest, StorageState,
};
use suimon_storage::images::LAYERS_MAX;

use super::Disks;
use super::entry::{DiskEntry, DiskState, WorkUnderWay};
use super::wanted::WantedDisks;
use crate::edit::not_found;
use crate::shared::Shared;

/// Work on a disk's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DiskWork {
    /// Look whether it is sound.
    Check,
    /// Give space that it does not need back to the store.
    Compact,
    /// Copy the disk to another file.
    Convert(ConvertDiskRequest),
    /// Keep what the disk has, and go on with a new file over it.
    Snapshot(SnapshotDiskRequest),
    /// Write what it has into its parent, and go on with that.
    Merge,
    /// Close its images, and open them again.
    Reopen,
}

impl DiskWork {
    /// The word for it: `check`, `compact`, …
    #[must_use]
    pub const fn verb(&self) -> &'static str {
        match self {
            Self::Check => "check",
            Self::Compact => "compact",
            Self::Convert(_) => "convert",
            Self::Snapshot(_) => "snapshot",
            Self::Merge => "merge",
            Self::Reopen => "reopen",
        }
    }

    /// Whether the disk serves nobody meanwhile.
    const fn needs_quiet(&self) -> bool {
        !matches!(self, Self::Snapshot(_) | Self::Reopen)
    }
}

impl Shared {
    /// Whether work on a disk can begin now.
    ///
    /// # Errors
    /// There is no such disk, something else is being done to it, or it is used.
    pub(crate) fn check_disk_work(&self, disk: &Name, work: &DiskWork) -> Result<(), ApiError> {
        let entry = self.disks.find(disk).ok_or_else(|| not_found(Kind::Disk, disk))?;
        check_idle(&entry)?;
        if work.needs_quiet() {
            return self.disks.check_unused(&entry, work);
        }
        if *work == DiskWork::Reopen {
            return Ok(());
        }
        let state = entry.lock();
        match state.condition() {
            (StorageState::Ready, _) => check_layers(&entry, &state),
            (_, reason) => {
                let text = format!("the disk does not work: {}", reason.unwrap_or_default());
                Err(ApiError::new(ErrorCode::Conflict, text).about(entry.label()))
            }
        }
    }
}

impl Disks {
    /// Whether nobody uses the disk.
    fn check_unused(&self, entry: &DiskEntry, work: &DiskWork) -> Result<(), ApiError> {
        let verb = work.verb();
        let in_use = |text: String| Err(ApiError::new(ErrorCode::InUse, text).about(entry.label()));
        let (has_vm, clients) = self.users_of(entry);
        if has_vm {
            return in_use(format!(
                "a VM uses the disk, and it is out of service while it lasts: shut the VM down, \
                 then {verb} the disk"
            ));
        }
        if clients > 0 {
            return in_use(format!(
                "{clients} NBD connections use the disk, and it is out of service while it lasts: \
                 disconnect them, then {verb} the disk"
            ));
        }
        Ok(())
    }

    /// Whether a VM uses a disk, and how many NBD connections do.
    pub(super) fn users_of(&self, entry: &DiskEntry) -> (bool, usize) {
        let views = self.parts.plane.disks();
        let clients = views.iter().find(|view| view.disk == entry.id).map_or(0, |of| of.clients);
        (has_vm(&entry.lock()), clients)
    }

    /// Changes of disks that something is being done to.
    pub(crate) fn check_no_work(&self, from: &WantedDisks, to: &WantedDisks) -> Vec<ApiError> {
        let changed = from.iter().filter(|(name, wanted)| to.get(*name) != Some(wanted));
        let errors = changed.filter_map(|(name, _)| {
            // One that another node has is deleted here when its VM is that node's.
            let entry = self.find(name).filter(|entry| !entry.is_away())?;
            check_idle(&entry).err()
        });
        errors.collect()
    }
}

/// Whether a disk may have another file.
fn check_layers(entry: &DiskEntry, state: &DiskState) -> Result<(), ApiError> {
    let layers = state.open.as_ref().map_or(0, |open| open.layers.len());
    if layers < LAYERS_MAX {
        return Ok(());
    }
    let text = format!(
        "the disk has {layers} files, its own and its parents', and may have no more: merge it \
         into its parent first (`suimon disk merge {}`), or convert it",
        entry.name
    );
    Err(ApiError::new(ErrorCode::Conflict, text).about(entry.label()))
}

/// Whether nothing is being done to a disk that stands against all else.
///
/// # Errors
/// What it is.
pub(super) fn check_idle(entry: &DiskEntry) -> Result<(), ApiError> {
    let (work, moving) = {
        let state = entry.lock();
        (state.work.clone(), state.moving)
    };
    if let Some(under_way) = &work {
        return Err(conflict(entry, under_way));
    }
    let Some(moving) = moving else { return Ok(()) };
    let text = format!("{}: wait until the migration has ended, or cancel it", moving.way());
    Err(ApiError::new(ErrorCode::Conflict, text).about(entry.label()))
}

fn has_vm(state: &DiskState) -> bool {
    let device = state.open.as_ref().and_then(|open| open.device.as_ref());
    device.is_some_and(|device| device.status().features.is_some())
}

/// Returns true if a VM is connected to the disk and none of its queues runs: the VM is paused, or its
/// guest has no driver yet.
pub(super) fn has_stopped_vm(state: &DiskState) -> bool {
    let device = state.open.as_ref().and_then(|open| open.device.as_ref());
    device.map(|device| device.status()).is_some_and(|of| of.features.is_some() && of.queues == 0)
}

pub(super) fn conflict(entry: &DiskEntry, work: &WorkUnderWay) -> ApiError {
    let WorkUnderWay { operation, verb } = work;
    let text = format!(
        "operation {operation} (disk {verb}) is under way: wait until it has ended, or cancel it \
         with `suimon operation cancel {operation}`"
    );
    ApiError::new(ErrorCode::Conflict, text).about(entry.label())
}
