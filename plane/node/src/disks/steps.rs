//! Execution of the steps of a change that concern disks, and their reversal.

use std::collections::BTreeMap;
use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode, HostConfig, Name};
use suimon_image::DiskGeometry;

use super::entry::{DiskEntry, DiskMigrationState};
use super::notices::disk_failed_event;
use super::opening::errors::OpenError;
use super::required::{RequiredDisk, RequiredDisks, required_sockets};
use super::store_threads::OPTIONAL_RESULT_TIMEOUT;
use crate::ChangeOptions;
use crate::change::ValidatedChange;
use crate::control::Controller;
use crate::transaction::ChangePhase;

/// Step of a change of the desired state. Steps are carried out in order, and undone if a later one
/// fails.
pub(crate) enum DiskStep {
    /// Sets stores, policies and limits of this configuration. Those absent from it remain until
    /// the change is complete.
    SetLimits(Box<HostConfig>),
    /// Closes a disk that holds a resource of another disk, or is opened again with other
    /// properties.
    Close(Name),
    /// Removes the NBD exports of a disk whose socket another disk or NIC needs. The disk gets this
    /// configuration in a later step.
    RemoveExports(Name, RequiredDisk),
    /// Changes a disk while it is in service.
    Change(Name, RequiredDisk),
    /// Opens a disk that is added or was closed by an earlier step.
    Open {
        /// Name of the disk.
        name: Name,
        /// Configuration of the disk.
        required: RequiredDisk,
        /// True if the disk counts as new, so that a missing image file is created. `None` if the
        /// change does not alter that.
        is_new: Option<bool>,
    },
}

/// Action that undoes a completed [`DiskStep`].
pub(crate) enum DiskUndo {
    /// Restores the limits from before the change.
    RestoreLimits,
    /// Opens a closed disk again.
    Reopen(Arc<DiskEntry>),
    /// Sets the former configuration of a disk in service.
    Restore(Arc<DiskEntry>, RequiredDisk),
    /// Closes a disk and sets its former configuration.
    Close {
        /// Changed disk.
        entry: Arc<DiskEntry>,
        /// Configuration before the change.
        previous_config: RequiredDisk,
        /// True if the disk was new before the change.
        was_new: bool,
        /// True if the disk's file was to be checked before the change.
        was_unchecked: bool,
        /// True if the image file was created by the change; it is removed.
        is_file_created: bool,
    },
    /// Removes an added disk, and its file if the flag says that it was created for the disk.
    Discard(Arc<DiskEntry>, bool),
}

/// Rollback that [`Controller::begin_rollback`] has begun and [`Controller::finish_rollback`]
/// completes.
#[derive(Default)]
pub(crate) struct PendingRollback {
    has_limits: bool,
    /// Disks in service, and their former configurations.
    changed: BTreeMap<Name, (Arc<DiskEntry>, RequiredDisk)>,
    closed: Vec<Arc<DiskEntry>>,
}

impl DiskStep {
    /// Returns the phase in which the step is executed.
    pub(crate) const fn phase(&self) -> ChangePhase {
        match self {
            Self::SetLimits(_) => ChangePhase::SetDiskLimits,
            Self::Close(_) | Self::RemoveExports(..) => ChangePhase::CloseDisks,
            Self::Change(..) => ChangePhase::ChangeDisks,
            Self::Open { .. } => ChangePhase::OpenDisks,
        }
    }
}

impl Controller {
    pub(crate) fn execute_disk_step(
        &mut self,
        step: &DiskStep,
        options: ChangeOptions,
        undo: &mut Vec<DiskUndo>,
    ) -> Result<(), ApiError> {
        match step {
            DiskStep::SetLimits(config) => {
                undo.push(DiskUndo::RestoreLimits);
                self.shared.disks.set_limits(config, false)
            }
            DiskStep::Close(name) => {
                if let Some(entry) = self.shared.disks.find(name) {
                    self.close_disk(&entry);
                    undo.push(DiskUndo::Reopen(entry));
                }
                Ok(())
            }
            DiskStep::RemoveExports(name, required) => {
                let Some(entry) = self.shared.disks.find(name) else { return Ok(()) };
                let old = entry.lock().required.clone();
                undo.push(DiskUndo::Restore(entry.clone(), old));
                self.unexport_nbd(&entry, required);
                if required.config.nbd.is_none() {
                    self.shared.disks.dependencies.plane.detach_clients(entry.id);
                }
                Ok(())
            }
            DiskStep::Change(name, required) => {
                let Some(entry) = self.shared.disks.find(name) else { return Ok(()) };
                let old = entry.lock().required.clone();
                undo.push(DiskUndo::Restore(entry.clone(), old));
                self.change_disk(&entry, required)
            }
            DiskStep::Open { name, required, is_new } => match self.shared.disks.find(name) {
                Some(entry) => self.open_closed(entry, (required, *is_new), options, undo),
                None => {
                    let entry = self.shared.disks.insert(name.clone(), required.clone());
                    if let Some(shape) = self.awaited_shape(name) {
                        entry.lock().migration = Some(DiskMigrationState::AwaitingHandover);
                        undo.push(DiskUndo::Discard(entry.clone(), false));
                        return self.add_incoming(&entry, shape);
                    }
                    entry.set_new(is_new.unwrap_or_default());
                    if !options.replaces_images {
                        entry.set_checks_children(true);
                    }
                    let opened = self.open_or_keep_faulty(&entry, options);
                    let is_created = *opened.as_ref().unwrap_or(&false);
                    undo.push(DiskUndo::Discard(entry, is_created));
                    opened.map(|_| ())
                }
            },
        }
    }

    /// Opens a disk that an earlier step has closed, with its new configuration. The reversal of
    /// that step opens it again.
    fn open_closed(
        &mut self,
        entry: Arc<DiskEntry>,
        (required, is_new): (&RequiredDisk, Option<bool>),
        options: ChangeOptions,
        undo: &mut Vec<DiskUndo>,
    ) -> Result<(), ApiError> {
        let (was_new, was_unchecked) = (entry.is_new(), entry.checks_children());
        let old = std::mem::replace(&mut entry.lock().required, required.clone());
        entry.set_new(is_new.unwrap_or(was_new));
        if options.replaces_images {
            // The merge has checked that the image has no other child. The merged child is removed
            // once the disk has the image.
            entry.set_checks_children(false);
        } else if may_write_to_parent(&old, required) {
            entry.set_checks_children(true);
        }
        // Only the new image of a disk with an earlier one could be mistaken for the earlier one.
        entry.lock().is_image_requested = is_new == Some(true);
        let opened = self.open_or_keep_faulty(&entry, options);
        entry.lock().is_image_requested = false;
        let is_made = *opened.as_ref().unwrap_or(&false);
        undo.push(DiskUndo::Close {
            entry,
            previous_config: old,
            was_new,
            was_unchecked,
            is_file_created: is_made,
        });
        opened.map(|_| ())
    }

    /// Opens a disk. A disk that cannot be opened fails the change, or is kept as failed, depending
    /// on [`ChangeOptions::keeps_faulty_disks`]. Returns true if the disk's file was created.
    fn open_or_keep_faulty(
        &mut self,
        entry: &DiskEntry,
        options: ChangeOptions,
    ) -> Result<bool, ApiError> {
        match self.open_disk(entry) {
            Err(error) if options.keeps_faulty_disks => {
                let reason = error.to_string();
                self.drafts.push(disk_failed_event(entry, &reason));
                self.fail_disk(entry, reason);
                Ok(false)
            }
            opened => opened,
        }
    }

    /// Returns the guest-visible properties of a disk that the current change adds for an incoming
    /// VM, while the source has it open.
    fn awaited_shape(&self, disk: &Name) -> Option<DiskGeometry> {
        let request = self.incoming_vm.as_ref()?;
        let handed_over =
            request.handed_over_disks.iter().find(|handed_over| handed_over.name == *disk)?;
        Some(DiskGeometry {
            size_bytes: handed_over.size_bytes,
            logical_sector_bytes: handed_over.logical_sector_bytes,
            physical_sector_bytes: handed_over.physical_sector_bytes,
            block_bytes: 0,
        })
    }

    /// Changes a disk in service to a configuration that it can take.
    fn change_disk(&mut self, entry: &DiskEntry, required: &RequiredDisk) -> Result<(), ApiError> {
        let old = std::mem::replace(&mut entry.lock().required, required.clone());
        let open = entry.lock().open.as_ref().map(|open| (open.geometry, open.kind));
        let Some((shape, image_kind)) = open else {
            // The disk has failed. Its retry uses the new configuration.
            return Ok(());
        };
        let plan = required.plan();
        if let (true, Some(planned), Some(image_kind)) =
            (plan.has_metadata(), plan.kind, image_kind)
        {
            if planned != image_kind {
                let (planned, image_kind) = (planned.as_str(), image_kind.as_str());
                let text = format!(
                    "is {planned} in the configuration and {image_kind} in the image; set it to \
                     {image_kind}, or remove it"
                );
                let error = ApiError::new(ErrorCode::InvalidValue, text);
                return Err(error.with_resource(entry.label()).with_field("kind"));
            }
        }
        self.shared.disks.apply_full_policy(entry);
        let shape = self.grow_disk(entry, required, shape)?;
        self.change_nbd(entry, old.config.nbd.as_ref(), required, shape)
    }

    /// Removes the NBD exports of a disk if they differ in the configuration `to`. Connected
    /// clients stay.
    fn unexport_nbd(&self, entry: &DiskEntry, to: &RequiredDisk) {
        let mut state = entry.lock();
        if state.required.config.nbd == to.config.nbd {
            return;
        }
        let old = state.required.clone();
        state.required.config.nbd = None;
        drop(state);
        self.remove_nbd_exports(entry, &old);
    }

    /// Reverts the steps of a failed change as far as closing disks and removing exports.
    /// [`Self::finish_rollback`] reverts the rest, when all resources are released.
    pub(crate) fn begin_rollback(&mut self, undo: Vec<DiskUndo>) -> PendingRollback {
        let mut returns = PendingRollback::default();
        for step in undo.into_iter().rev() {
            match step {
                DiskUndo::RestoreLimits => returns.has_limits = true,
                DiskUndo::Reopen(entry) => returns.closed.push(entry),
                DiskUndo::Restore(entry, old) => {
                    self.unexport_nbd(&entry, &old);
                    // Steps are reverted in reverse order, so that the last insertion is the
                    // original configuration.
                    returns.changed.insert(entry.name.clone(), (entry, old));
                }
                DiskUndo::Close {
                    entry,
                    previous_config: old,
                    was_new,
                    was_unchecked,
                    is_file_created: is_created,
                } => {
                    self.close_and_unmake(&entry, is_created);
                    entry.lock().required = old;
                    entry.set_new(was_new);
                    entry.set_checks_children(was_unchecked);
                }
                DiskUndo::Discard(entry, is_created) => {
                    self.close_and_unmake(&entry, is_created);
                    self.shared.disks.remove(&entry.name);
                }
            }
        }
        returns
    }

    /// Sets the former limits and configurations of disks, and opens closed disks again.
    pub(crate) fn finish_rollback(&mut self, returns: PendingRollback, from: &HostConfig) {
        let PendingRollback { has_limits, changed, closed } = returns;
        let set_back = if has_limits { self.shared.disks.set_limits(from, true) } else { Ok(()) };
        if let Err(error) = set_back {
            tracing::error!(%error, "cannot restore the former limits");
        }
        for (entry, old) in changed.into_values() {
            if let Err(error) = self.change_disk(&entry, &old) {
                self.fail_disk(&entry, error.to_string());
            }
            if old.config.nbd.is_none() {
                self.shared.disks.dependencies.plane.detach_clients(entry.id);
            }
        }
        for entry in closed {
            if entry.lock().open.is_some() {
                continue;
            }
            if let Err(OpenError::Failed(error)) =
                self.open_disk_with_timeout(&entry, OPTIONAL_RESULT_TIMEOUT)
            {
                self.fail_disk(&entry, error.to_string());
            }
        }
        self.restore_new_disks(from);
        self.restore_unchecked_disks(from);
    }

    /// Closes a disk, and removes its image file if the change that is rolled back has created it.
    fn close_and_unmake(&self, entry: &DiskEntry, is_created: bool) {
        let opened =
            entry.lock().open.as_ref().map(|open| (open.files.clone(), open.created_file_id));
        self.close_disk(entry);
        if let Some((files, created)) = opened.filter(|_| is_created) {
            self.remove_created(entry, &files, created, None);
        }
    }

    /// Completes a change: closes disks that are absent from the new configuration, and removes
    /// their files if requested.
    pub(crate) fn finish_disks(&mut self, before: &RequiredDisks, to: &ValidatedChange) {
        let after = &to.disks;
        if let Err(error) = self.devices.created.record_socket_identities(required_sockets(after)) {
            tracing::warn!(%error, "cannot record which sockets of disks belong to the daemon");
        }
        for name in before.keys().filter(|name| !after.contains_key(*name)) {
            if let Some(entry) = self.shared.disks.remove(name) {
                // The path of the store may refer to another directory by now, with another file of
                // this name.
                let opened = entry.lock().open.as_ref().map(|open| open.files.clone());
                self.close_disk(&entry);
                self.devices.negotiated_features.remove_disk(&entry.label());
                // The file of a disk that another node has belongs to that node.
                if to.options.deletes_files && !entry.is_owned_by_other_node() {
                    let work = self.shared.image_task(&entry);
                    let unsettled = work.reserve_for_removal();
                    let remove = move || {
                        let files = opened.map_or_else(|| work.files(), Ok)?;
                        work.remove_file(&files);
                        drop(unsettled);
                        Ok(())
                    };
                    let removed = self.shared.with_store(&entry, remove, drop);
                    if let Err(error) = removed.and_then(|removed| removed) {
                        tracing::warn!(disk = %name, %error, "cannot delete a disk's file");
                    }
                }
            }
        }
        if let Err(error) = self.shared.disks.set_limits(&to.state.config, true) {
            tracing::error!(%error, "cannot remove limits of a deleted object");
        }
        self.shared.disks.close_unused_stores(after);
        self.shared.disks.remove_unconfigured_measurements(&to.state.config);
    }
}

/// Returns true if the change of a disk from `old` to `new` may open a parent of an image for
/// writing: the disk gets another file, or was read-only.
fn may_write_to_parent(old: &RequiredDisk, new: &RequiredDisk) -> bool {
    let becomes_writable = old.config.read_only && !new.config.read_only;
    becomes_writable || old.image_path() != new.image_path()
}

impl std::fmt::Display for DiskStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SetLimits(_) => f.write_str("set limits of disks"),
            Self::Close(name) => write!(f, "close disk/{name}"),
            Self::RemoveExports(name, _) => write!(f, "end the NBD export of disk/{name}"),
            Self::Change(name, _) => write!(f, "change disk/{name}"),
            Self::Open { name, .. } => write!(f, "open disk/{name}"),
        }
    }
}
