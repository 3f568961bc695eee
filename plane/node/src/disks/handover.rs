//! Handover of disks on shared stores: the disk migrates with its VM without being copied.
//!
//! ```text
//! outgoing: in service ── release: suspended, closed ─► away ── VM runs there ──► deleted
//!               ▲                                         │      (the file remains)
//!               └──────────── reclaim: opened ────────────┘
//! incoming: away, no images ── open_incoming ──► in service ── accept_incoming ──► owned here
//!               ▲                                    │
//!               └────────── close_incoming ───────────┘
//! ```
//!
//! The source closes a file before it requests the destination to run the VM, and opens the file
//! again only after the destination has confirmed that it never will. So at most one node has the
//! file open. While a disk is away, this process neither opens nor removes its file, whatever the
//! request.

use std::sync::Arc;
use std::time::Instant;

use suimon_contract::{ApiError, ErrorCode, HandedOverDisk, Name, ResourceKind, StorageState};
use suimon_image::DiskGeometry;
use suimon_image_files::LayerStack;
use suimon_image_files::RemainingRecordPolicy;
use suimon_storage::{PlaneError, ResumeDiskError};

use super::entry::{DiskEntry, DiskMigrationState, OpenDisk};
use super::image_task::OpenedImages;
use super::lock_retry::{LOCK_RELEASE_TIMEOUT, retry_until_unlocked};
use super::notices::disk_failed_event;
use super::opening::errors::{OpenError, disk_error};
use super::store_threads::OPTIONAL_RESULT_TIMEOUT;
use super::work::check_idle;
use crate::control::Controller;
use crate::disks::entry::plane_error;
use crate::errors::not_found;
use crate::shared::Shared;

/// Disk of an outgoing VM. Dropping it before [`Self::release`] ends the handover, and the disk
/// stays in service. After [`Self::release`] the disk is closed, and other operations on it are
/// rejected, until [`Self::reclaim`].
pub(crate) struct OutgoingDisk {
    shared: Arc<Shared>,
    entry: Arc<DiskEntry>,
}

impl OutgoingDisk {
    /// Marks a disk for handover. Other operations on the disk are rejected from then on.
    ///
    /// # Errors
    /// Fails if there is no such disk, the disk is not ready, or another operation uses it.
    pub(crate) fn begin(shared: &Arc<Shared>, disk: &Name) -> Result<Self, ApiError> {
        let entry = shared.disks.find(disk).ok_or_else(|| not_found(ResourceKind::Disk, disk))?;
        check_idle(&entry)?;
        {
            let mut state = entry.lock();
            let text = match state.condition() {
                (StorageState::Ready, _) if state.job.is_some() || state.migration.is_some() => Some(
                    "another job on the disk is in progress (`suimon operation list`); retry when \
                     it has ended"
                        .to_owned(),
                ),
                (StorageState::Ready, _) => None,
                (_, reason) => {
                    Some(format!("the disk is not in service: {}", reason.unwrap_or_default()))
                }
            };
            if let Some(text) = text {
                return Err(ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label()));
            }
            state.migration = Some(DiskMigrationState::HandoverPending);
        }
        Ok(Self { shared: Arc::clone(shared), entry })
    }

    /// Suspends the disk and closes its file. The VM must be paused. When this function returns,
    /// all requests have completed and are durable. Other clients see a pause. Blocks until the
    /// store responds, at most
    /// [`OPTIONAL_RESULT_TIMEOUT`](super::store_threads::OPTIONAL_RESULT_TIMEOUT) for closing.
    ///
    /// # Errors
    /// Fails if the disk cannot be suspended or its store does not respond. The disk may be away
    /// nevertheless.
    pub(crate) fn release(&self) -> Result<(), ApiError> {
        let plane = &self.shared.disks.dependencies.plane;
        let spec = plane.suspend_disk(self.entry.id);
        let spec = spec.map_err(|error| plane_error(&self.entry, &error))?;
        self.entry.lock().migration = Some(DiskMigrationState::HandedOver);
        self.shared.close_now(&self.entry, spec)
    }

    /// Opens the disk again and resumes it, if [`Self::release`] has closed it. Must be called only
    /// after the other node has confirmed that it will not open the file.
    ///
    /// # Errors
    /// Fails if the disk cannot be opened. The caller must have it retried
    /// ([`Controller::return_disk`]).
    pub(crate) fn reclaim(&self) -> Result<(), ApiError> {
        if !self.entry.is_owned_by_other_node() {
            return Ok(());
        }
        let opened = self.shared.open_suspended(&self.entry, None);
        self.entry.lock().migration = Some(DiskMigrationState::HandoverPending);
        opened
    }

    pub(crate) fn name(&self) -> &Name {
        &self.entry.name
    }
}

impl Drop for OutgoingDisk {
    fn drop(&mut self) {
        let mut state = self.entry.lock();
        if state.migration == Some(DiskMigrationState::HandoverPending) {
            state.migration = None;
        }
    }
}

impl Shared {
    /// Returns the guest-visible properties of a disk in service, for the destination.
    pub(crate) fn handover_properties(&self, disk: &Name) -> Option<HandedOverDisk> {
        let shape = self.disks.find(disk)?.lock().open.as_ref().map(|open| open.geometry)?;
        Some(HandedOverDisk {
            name: disk.clone(),
            size_bytes: shape.size_bytes,
            logical_sector_bytes: shape.logical_sector_bytes,
            physical_sector_bytes: shape.physical_sector_bytes,
        })
    }

    /// Opens a disk of an incoming VM after the source has closed it. The disk stays marked as the
    /// source's until [`Self::accept_incoming`].
    ///
    /// # Errors
    /// Fails if the disk cannot be opened, or differs from the disk that the guest uses; then the
    /// disk is closed.
    pub(crate) fn open_incoming(&self, disk: &Name) -> Result<(), ApiError> {
        let entry = self.disks.find(disk).ok_or_else(|| not_found(ResourceKind::Disk, disk))?;
        let geometry = {
            let state = entry.lock();
            let is_awaited = state.migration == Some(DiskMigrationState::AwaitingHandover);
            state.open.as_ref().filter(|_| is_awaited).map(|open| open.geometry)
        };
        let Some(geometry) = geometry else {
            let text = "no migration to this host waits for the disk: it ended or was cancelled";
            return Err(ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label()));
        };
        self.open_suspended(&entry, Some(geometry))
    }

    /// Closes a disk that was opened for an incoming VM whose migration failed.
    ///
    /// # Errors
    /// Fails if the store does not respond; the disk is closed when it does.
    pub(crate) fn close_incoming(&self, disk: &Name) -> Result<(), ApiError> {
        let Some(entry) = self.disks.find(disk) else { return Ok(()) };
        match self.disks.dependencies.plane.suspend_disk(entry.id) {
            Ok(spec) => self.close_now(&entry, spec),
            Err(PlaneError::Suspended | PlaneError::NoSuchDisk) => Ok(()),
            Err(error) => Err(plane_error(&entry, &error)),
        }
    }

    /// Makes the disk an ordinary disk of this node. Called when the VM runs here.
    pub(crate) fn accept_incoming(&self, disk: &Name) {
        if let Some(entry) = self.disks.find(disk) {
            entry.lock().migration = None;
        }
    }

    /// Clears the migration state of a disk that stays on this node, for example after a daemon
    /// restart during a handover. Returns true if the disk was away and must be opened.
    pub(crate) fn clear_handover(&self, disk: &Name) -> bool {
        let Some(entry) = self.disks.find(disk) else { return false };
        let mut state = entry.lock();
        let was_away = state.migration.is_some_and(DiskMigrationState::is_owned_by_other_node);
        state.migration = None;
        was_away
    }

    /// Closes images in a store thread, and returns the result.
    fn close_now(&self, entry: &DiskEntry, spec: LayerStack) -> Result<(), ApiError> {
        let label = entry.label();
        let close = move || {
            suimon_image_files::close(spec, &label).map_err(|error| disk_error(&label, &error))
        };
        self.with_store(entry, close, drop)?
    }

    /// Opens the images of a suspended disk and resumes it. `geometry`: guest-visible properties
    /// that the disk must have. Retries while the image is locked, at most
    /// [`LOCK_RELEASE_TIMEOUT`].
    fn open_suspended(
        &self,
        entry: &DiskEntry,
        geometry: Option<DiskGeometry>,
    ) -> Result<(), ApiError> {
        let is_busy = |error: &ApiError| error.code == ErrorCode::DeviceBusy;
        let open = || self.try_to_open_suspended(entry, geometry);
        retry_until_unlocked(Instant::now() + LOCK_RELEASE_TIMEOUT, is_busy, open)
    }

    fn try_to_open_suspended(
        &self,
        entry: &DiskEntry,
        geometry: Option<DiskGeometry>,
    ) -> Result<(), ApiError> {
        let mut work = self.image_task(entry);
        let required = work.required.clone();
        if geometry.is_some() {
            // The other node may have overwritten the blocks that redo records of this node refer
            // to.
            work.remaining_redo_records = RemainingRecordPolicy::Discard;
        }
        let open = move || {
            let files = work.files()?;
            let images = work.open_images(&files)?;
            Ok(OpenedImages { task: work, files, images, created_file: None })
        };
        let OpenedImages { files, images, .. } =
            self.with_store(entry, open, OpenedImages::undo_late_open::<ApiError>)??;
        let suimon_image_files::OpenedDisk {
            layer_stack: spec,
            kind,
            geometry: shape,
            layer_files: layers,
            ..
        } = images;
        let sees = |shape: &DiskGeometry| {
            (shape.size_bytes, shape.logical_sector_bytes, shape.physical_sector_bytes)
        };
        if geometry.is_some_and(|geometry| sees(&geometry) != sees(&shape)) {
            self.close_images(entry, &required, spec);
            let text = format!(
                "the image file has {} bytes, logical sectors of {} and physical sectors of {} \
                 bytes, which differ from those of the disk in the running guest; restore the file \
                 that the guest used",
                shape.size_bytes, shape.logical_sector_bytes, shape.physical_sector_bytes
            );
            return Err(ApiError::new(ErrorCode::HostError, text).with_resource(entry.label()));
        }
        entry.lock().discard_support = spec.discard_support();
        let resumed = self.disks.dependencies.plane.resume_disk(entry.id, spec);
        if let Err(ResumeDiskError { error, spec }) = resumed {
            if let Some(spec) = spec {
                self.close_images(entry, &required, spec);
            }
            return Err(plane_error(entry, &error));
        }
        if let Some(open) = &mut entry.lock().open {
            (open.kind, open.geometry) = (Some(kind), shape);
            (open.files, open.layer_files) = (files, layers);
        }
        Ok(())
    }
}

impl Controller {
    /// Puts a disk of an incoming VM into service without images: the VM can connect, and its
    /// requests are queued. The other node has the file open.
    pub(super) fn add_incoming(
        &mut self,
        entry: &DiskEntry,
        shape: DiskGeometry,
    ) -> Result<(), ApiError> {
        let (required, generation) = {
            let mut state = entry.lock();
            state.generation += 1;
            (state.required.clone(), state.generation)
        };
        let work = self.shared.image_task(entry);
        let files = self.shared.with_store(entry, move || work.files(), drop)??;
        let disks = &self.shared.disks;
        let store = disks.store_id(&required.config.store);
        let added =
            disks.dependencies.plane.add_disk(entry.id, LayerStack { layers: Vec::new() }, store);
        disks.apply_full_policy(entry);
        added.map_err(|refused| plane_error(entry, &refused.error))?;
        let device = self
            .open_front_ends(entry, &required, shape, generation)
            .inspect_err(|_| self.detach(entry, &required))?;
        let layers = Vec::new();
        entry.lock().open = Some(OpenDisk {
            kind: None,
            geometry: shape,
            files,
            layer_files: layers,
            device,
            created_file_id: None,
        });
        Ok(())
    }

    /// Opens a disk that stays on this node after a failed migration. `failure`: error of a
    /// previous attempt to open it; then the disk is marked as failed and retried.
    pub(crate) fn return_disk(&mut self, disk: &Name, failure: Option<String>) {
        let Some(entry) = self.shared.disks.find(disk) else { return };
        let reason = match failure {
            Some(reason) => {
                // The front-end stays open until the retry: the VM has just resumed and may be
                // starting the device (see `fail_disk`).
                self.drafts.push(disk_failed_event(&entry, &reason));
                entry.lock().retry.fail(Instant::now(), self.devices.retry_first, reason);
                return;
            }
            None if entry.lock().open.is_some() => return,
            None => match self.open_disk_with_timeout(&entry, OPTIONAL_RESULT_TIMEOUT) {
                Err(OpenError::Failed(error)) => error.to_string(),
                Ok(()) | Err(OpenError::Pending) => return,
            },
        };
        self.drafts.push(disk_failed_event(&entry, &reason));
        self.fail_disk(&entry, reason);
    }
}
