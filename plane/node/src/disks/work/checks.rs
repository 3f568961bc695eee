//! Checks whether an operation on a disk can begin.

use suimon_contract::{ApiError, ErrorCode, Name, ResourceKind, StorageState};
use suimon_image_files::LAYERS_MAX;
use suimon_quantity::DiskId;
use suimon_storage::DiskView;

use super::{DiskFileJob, conflict_error};
use crate::disks::Disks;
use crate::disks::entry::{DiskEntry, DiskState};
use crate::disks::required::RequiredDisks;
use crate::errors::not_found;
use crate::shared::Shared;

impl Shared {
    /// Checks whether an operation on a disk can begin.
    ///
    /// # Errors
    /// Fails if there is no such disk, another operation uses it, or it is in use; for a snapshot
    /// also if the disk is not ready or has the maximum number of files.
    pub(crate) fn check_disk_job(&self, disk: &Name, work: &DiskFileJob) -> Result<(), ApiError> {
        let entry = self.disks.find(disk).ok_or_else(|| not_found(ResourceKind::Disk, disk))?;
        check_idle(&entry)?;
        if work.needs_exclusive_use() {
            return self.disks.check_unused(&entry, work);
        }
        if *work == DiskFileJob::Reopen {
            return Ok(());
        }
        let state = entry.lock();
        match state.condition() {
            (StorageState::Ready, _) => check_layers(&entry, &state),
            (_, reason) => {
                let text = format!("the disk is not in service: {}", reason.unwrap_or_default());
                Err(ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label()))
            }
        }
    }
}

impl Disks {
    /// Checks that neither a VM nor an NBD client uses the disk.
    fn check_unused(&self, entry: &DiskEntry, work: &DiskFileJob) -> Result<(), ApiError> {
        let verb = work.verb();
        let in_use =
            |text: String| Err(ApiError::new(ErrorCode::InUse, text).with_resource(entry.label()));
        let DiskUsers { has_vm, client_count: clients } = self.disk_users(entry);
        if has_vm {
            return in_use(format!(
                "the disk would be out of service during the job, but a VM uses it; shut down the \
                 VM, then {verb} the disk"
            ));
        }
        let clients = clients.ok_or_else(|| unknown_clients_error(entry))?;
        if clients > 0 {
            return in_use(format!(
                "the disk would be out of service during the job, but {clients} NBD connections \
                 use it; disconnect them, then {verb} the disk"
            ));
        }
        Ok(())
    }

    /// Returns true if a disk is in service in the storage plane, whether or not its worker
    /// responds.
    pub(crate) fn is_in_service(&self, disk: DiskId) -> bool {
        self.dependencies.plane.has_disk(disk)
    }

    /// Returns true if the worker of a disk does not respond. A worker that has not responded since
    /// the disk was opened has no view of the disk.
    pub(in crate::disks) fn is_worker_unresponsive(
        &self,
        disk: DiskId,
        view: Option<&DiskView>,
    ) -> bool {
        view.map_or_else(|| self.is_in_service(disk), |view| !view.is_current)
    }

    /// Returns whether a VM uses the disk, and the number of its NBD connections.
    pub(in crate::disks) fn disk_users(&self, entry: &DiskEntry) -> DiskUsers {
        let views = self.dependencies.plane.disks();
        let clients = match views.iter().find(|view| view.disk == entry.id) {
            Some(view) => Some(view.clients).filter(|_| view.is_current),
            None => Some(0).filter(|_| !self.is_in_service(entry.id)),
        };
        DiskUsers { has_vm: has_vm(&entry.lock()), client_count: clients }
    }

    /// Returns an error for each disk that an operation uses and that the change alters.
    pub(crate) fn check_no_job(&self, from: &RequiredDisks, to: &RequiredDisks) -> Vec<ApiError> {
        let changed = from.iter().filter(|(name, required)| to.get(*name) != Some(required));
        let errors = changed.filter_map(|(name, _)| {
            // A disk that was handed over to another node is deleted here when that node runs its
            // VM.
            let entry = self.find(name).filter(|entry| !entry.is_owned_by_other_node())?;
            check_idle(&entry).err()
        });
        errors.collect()
    }
}

/// Users of a disk.
pub(in crate::disks) struct DiskUsers {
    /// True if a VM uses the disk.
    pub(in crate::disks) has_vm: bool,
    /// Number of NBD connections; `None` if the disk's worker does not respond.
    pub(in crate::disks) client_count: Option<usize>,
}

/// Returns the error that the NBD connections of a disk are not known.
pub(in crate::disks) fn unknown_clients_error(entry: &DiskEntry) -> ApiError {
    let text = "the worker of the disk does not respond (event 5006), so it is not known whether \
                NBD connections use the disk; retry when the worker proceeds (event 5007)";
    ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label())
}

/// Checks that the number of a disk's files permits another snapshot.
fn check_layers(entry: &DiskEntry, state: &DiskState) -> Result<(), ApiError> {
    let layers = state.open.as_ref().map_or(0, |open| open.layer_files.len());
    if layers < LAYERS_MAX {
        return Ok(());
    }
    let text = format!(
        "the disk has {layers} layers (its own file and its parents), the most it can have; merge \
         it into its parent first (`suimon disk merge {}`), or convert it",
        entry.name
    );
    Err(ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label()))
}

/// Checks that no operation or migration uses the disk exclusively.
///
/// # Errors
/// Returns the operation or migration.
pub(in crate::disks) fn check_idle(entry: &DiskEntry) -> Result<(), ApiError> {
    let (work, moving) = {
        let state = entry.lock();
        (state.job.clone(), state.migration)
    };
    if let Some(under_way) = &work {
        return Err(conflict_error(entry, under_way));
    }
    let Some(moving) = moving else { return Ok(()) };
    let text =
        format!("{}: wait until the migration has ended, or cancel it", moving.description());
    Err(ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label()))
}

fn has_vm(state: &DiskState) -> bool {
    let device = state.open.as_ref().and_then(|open| open.device.as_ref());
    device.is_some_and(|device| device.status().features.is_some())
}

/// Returns true if a VM is connected to the disk and none of its queues runs: the VM is paused, or
/// its guest has no driver yet.
pub(in crate::disks) fn has_stopped_vm(state: &DiskState) -> bool {
    let device = state.open.as_ref().and_then(|open| open.device.as_ref());
    device
        .map(|device| device.status())
        .is_some_and(|status| status.features.is_some() && status.queues == 0)
}
