//! Opening and closing of disks.

pub(super) mod errors;

use std::sync::Arc;
use std::time::{Duration, Instant};

use suimon_contract::{ApiError, ErrorCode, EventKind};
use suimon_image::DiskGeometry;
use suimon_image_files::LayerStack;
use suimon_image_files::RemainingRecordPolicy;
use suimon_ports::{DeviceNotice, DiskObserver, FileId, StoreFiles};
use suimon_quantity::DiskId;
use suimon_storage::AddDiskError;

use self::errors::OpenError;
use super::entry::{DiskEntry, OpenDisk, PendingOpen};
use super::image_task::{ImageTask, OpenFailure, OpenResult, OpenedImages, close_images};
use super::notices::{disk_failed_event, opening_stalled_event};
use super::required::RequiredDisk;
use super::reserved_files::ReservedFile;
use super::store_threads::{STORE_TIMEOUT, StoreOperationError};
use super::work::has_stopped_vm;
use crate::control::Controller;
use crate::device_notices::{DeviceNotices, DeviceOwner};
use crate::disks::entry::{disk_device_error, plane_error};
use crate::events::EventDraft;
use crate::shared::Shared;

/// Forwards notices of a disk's front-end to the control thread.
struct NoticeSender(Arc<DeviceNotices>);

impl DiskObserver for NoticeSender {
    fn handle_notice(&self, _disk: DiskId, notice: DeviceNotice) {
        self.0.put(notice);
    }
}

impl Controller {
    /// Opens a closed disk, and creates its file if that is missing and the disk is new. Returns
    /// true if the file was created. Blocks at most [`STORE_TIMEOUT`].
    ///
    /// # Errors
    /// Fails if the disk cannot be opened or its store does not respond in time.
    pub(crate) fn open_disk(&mut self, entry: &DiskEntry) -> Result<bool, ApiError> {
        match self.begin_opening(entry, STORE_TIMEOUT) {
            Ok(opened) => self.attach(entry, opened_by(entry, opened)?),
            Err(unanswered) => Err(unanswered.abandon().with_resource(entry.label())),
        }
    }

    /// Opens a closed disk, and waits `timeout` for its store. If the store responds later,
    /// [`Self::poll_openings`] completes the attempt.
    ///
    /// # Errors
    /// [`OpenError::Pending`] if the store has not responded yet, otherwise the failure.
    pub(crate) fn open_disk_with_timeout(
        &mut self,
        entry: &DiskEntry,
        timeout: Duration,
    ) -> Result<(), OpenError> {
        match self.begin_opening(entry, timeout) {
            Ok(opened) => opened_by(entry, opened)
                .and_then(|opened| self.attach(entry, opened))
                .map(|_| ())
                .map_err(OpenError::Failed),
            Err(StoreOperationError::Failed(error)) => {
                Err(OpenError::Failed(error.with_resource(entry.label())))
            }
            Err(StoreOperationError::TimedOut(work)) => {
                entry.lock().retry.current_failure = None;
                self.go_on_opening(entry, PendingOpen { operation: work, is_reported: false });
                Err(OpenError::Pending)
            }
        }
    }

    fn begin_opening(
        &self,
        entry: &DiskEntry,
        timeout: Duration,
    ) -> Result<OpenResult, StoreOperationError<OpenResult>> {
        if let Some(moving) =
            entry.lock().migration.filter(|moving| moving.is_owned_by_other_node())
        {
            let error = ApiError::new(ErrorCode::Conflict, moving.description())
                .with_resource(entry.label());
            return Err(StoreOperationError::Failed(error));
        }
        let siblings = self.shared.disks.closed_siblings(entry);
        let work = ImageTask { closed_disks: siblings, ..self.shared.image_task(entry) };
        let store = work.required.store.path.clone();
        let threads = &self.shared.disks.threads;
        let opened =
            threads.run(&store, timeout, move || work.open(), OpenedImages::undo_late_open);
        (self.shared.progress)();
        opened
    }

    /// Stores an attempt to open a disk that is still pending. Emits an event, once per attempt,
    /// when the store counts as stalled.
    fn go_on_opening(&mut self, entry: &DiskEntry, mut opening: PendingOpen) {
        if opening.operation.is_stalled() && !opening.is_reported {
            opening.is_reported = true;
            self.drafts.push(opening_stalled_event(entry));
        }
        entry.lock().opening = Some(opening);
    }

    /// Completes pending attempts whose store has responded. Called by the control thread after
    /// every command and timeout.
    pub(crate) fn poll_openings(&mut self) {
        for entry in self.shared.disks.all() {
            let opening = entry.lock().opening.take();
            let Some(opening) = opening else { continue };
            let PendingOpen { operation: work, is_reported } = opening;
            let opened = match work.wait(Duration::ZERO) {
                Ok(opened) => opened_by(&entry, opened),
                Err(StoreOperationError::TimedOut(work)) => {
                    self.go_on_opening(&entry, PendingOpen { operation: work, is_reported });
                    continue;
                }
                Err(StoreOperationError::Failed(error)) => Err(error.with_resource(entry.label())),
            };
            match opened.and_then(|opened| self.attach(&entry, opened)) {
                Ok(_) => {
                    let text = "The store responds, and the disk is in service.";
                    self.drafts.push(EventDraft::new(
                        EventKind::DiskRecovered,
                        entry.label(),
                        text,
                    ));
                    // A running VM may lack the disk and attach it now.
                    self.notify_vms();
                }
                Err(error) => {
                    let reason = error.to_string();
                    self.mark_not_new_if_file_exists(&entry);
                    self.drafts.push(disk_failed_event(&entry, &reason));
                    self.fail_disk(&entry, reason);
                }
            }
        }
    }

    /// Passes a disk with open images to the storage plane and opens its front-ends. Returns true
    /// if its file was created.
    ///
    /// # Errors
    /// Fails if the disk was reconfigured meanwhile, the state store cannot be written, or a
    /// front-end cannot be opened. The images are then closed, and a created file is removed.
    fn attach(&mut self, entry: &DiskEntry, opened: OpenedImages) -> Result<bool, ApiError> {
        let (required, generation) = {
            let mut state = entry.lock();
            state.generation += 1;
            (state.required.clone(), state.generation)
        };
        if required != opened.task.required {
            self.reclaim(opened);
            let text = "the disk was changed while its store did not respond";
            return Err(ApiError::new(ErrorCode::Conflict, text).with_resource(entry.label()));
        }
        let was_recorded = match self.mark_not_new(entry) {
            Ok(was_recorded) => was_recorded,
            Err(error) => {
                self.reclaim(opened);
                return Err(error);
            }
        };
        entry.set_new(false);
        let disks = &self.shared.disks;
        let OpenedImages { task: mut work, files, images, created_file: created } = opened;
        let suimon_image_files::OpenedDisk {
            layer_stack: spec,
            kind,
            geometry: shape,
            layer_files: layers,
            ..
        } = images;
        let store = disks.store_id(&required.config.store);
        entry.lock().discard_support = spec.discard_support();
        let id = created.as_ref().and_then(|created| created.id);
        let added = disks.dependencies.plane.add_disk(entry.id, spec, store);
        let added = added.map_err(|AddDiskError { error, spec }| {
            if let Some(spec) = spec {
                self.shared.close_images(entry, &required, spec);
            }
            plane_error(entry, &error)
        });
        let offered = added.and_then(|()| {
            disks.apply_full_policy(entry);
            self.open_front_ends(entry, &required, shape, generation)
                .inspect_err(|_| self.detach(entry, &required))
        });
        match offered {
            Ok(device) => {
                self.drafts.append(&mut work.drafts);
                if work.checks_children && !required.config.read_only {
                    self.end_child_check(entry);
                }
                let mut state = entry.lock();
                let kind = Some(kind);
                state.open = Some(OpenDisk {
                    kind,
                    geometry: shape,
                    files,
                    layer_files: layers,
                    device,
                    created_file_id: id,
                });
                state.retry.current_failure = None;
                state.has_failed_flush = false;
                Ok(created.is_some())
            }
            Err(error) => {
                if let Some(created) = created {
                    self.remove_created(entry, &files, created.id, Some(created.reservation));
                    self.mark_new_again(entry, was_recorded);
                }
                Err(error)
            }
        }
    }

    /// Closes images that are not needed, in a store thread.
    fn reclaim(&self, opened: OpenedImages) {
        let store = opened.task.required.store.path.clone();
        self.shared.disks.threads.run_eventually(&store, move || opened.undo());
    }

    /// Opens the front-ends of a disk: the vhost-user device, which is returned, and NBD exports.
    pub(super) fn open_front_ends(
        &self,
        entry: &DiskEntry,
        required: &RequiredDisk,
        shape: DiskGeometry,
        generation: u64,
    ) -> Result<Option<Box<dyn suimon_ports::DiskDevice>>, ApiError> {
        let parts = &self.shared.disks.dependencies;
        let negotiated = self.devices.negotiated_features.features(&entry.label());
        let device = match required.vhost_user(shape, negotiated) {
            None => None,
            Some(spec) => {
                let (owner, commands) =
                    (DeviceOwner::Disk(entry.id), self.devices.commands.clone());
                let late_notices = self.shared.unannounced_notices.clone();
                let notices = DeviceNotices::new(owner, generation, commands, late_notices);
                let observer = Arc::new(NoticeSender(notices));
                let opened =
                    parts.devices.open(entry.id, &spec, parts.plane.queue_host(), observer);
                Some(opened.map_err(|error| disk_device_error(entry, "vhost_user", &error))?)
            }
        };
        self.export_nbd(entry, required, shape)?;
        Ok(device)
    }

    /// Closes a disk if it is open. When this function returns, its queues are detached, and
    /// everything is durable unless the store does not respond.
    pub(crate) fn close_disk(&self, entry: &DiskEntry) {
        if let Some(spec) = self.begin_close(entry) {
            let required = entry.lock().required.clone();
            self.shared.close_images(entry, &required, spec);
        }
    }

    /// Takes a disk out of service and cancels a pending attempt to open it. The caller must close
    /// the returned images.
    pub(super) fn begin_close(&self, entry: &DiskEntry) -> Option<LayerStack> {
        let (open, opening, required) = {
            let mut state = entry.lock();
            state.generation += 1;
            state.retry.current_failure = None;
            (state.open.take(), state.opening.take(), state.required.clone())
        };
        drop(opening);
        let open = open?;
        self.shared.disks.dependencies.plane.announce_removal(entry.id);
        drop(open.device);
        self.take(entry, &required)
    }

    /// Takes a disk out of service and closes its images. The vhost-user device must be closed
    /// already.
    pub(super) fn detach(&self, entry: &DiskEntry, required: &RequiredDisk) {
        if let Some(spec) = self.take(entry, required) {
            self.shared.close_images(entry, required, spec);
        }
    }

    fn take(&self, entry: &DiskEntry, required: &RequiredDisk) -> Option<LayerStack> {
        self.remove_nbd_exports(entry, required);
        self.remove_emulated_export(entry, required);
        match self.shared.disks.dependencies.plane.take_disk(entry.id) {
            Ok(spec) => Some(spec),
            Err(error) => {
                tracing::warn!(disk = %entry.name, %error, "cannot close a disk");
                None
            }
        }
    }

    /// Marks a disk as failed with this reason, closes it, and schedules a retry.
    ///
    /// The disk stays open while its VM is connected and has not started the device, because the VM
    /// is paused or has no driver yet: QEMU 7.2 does not reconnect a device whose connection is
    /// closed in this state (`vhost_user_async_close`). The retry is postponed until then.
    pub(crate) fn fail_disk(&self, entry: &DiskEntry, reason: String) {
        if !has_stopped_vm(&entry.lock()) {
            self.close_disk(entry);
        }
        entry.lock().retry.fail(Instant::now(), self.devices.retry_first, reason);
    }

    /// Closes a failed disk that [`Self::fail_disk`] has left open, before it is opened again.
    /// Returns false if its VM has still not started the device; then the retry is postponed.
    pub(super) fn close_failed_disk(&self, entry: &DiskEntry) -> bool {
        {
            let mut state = entry.lock();
            if state.open.is_none() {
                return true;
            }
            if has_stopped_vm(&state) {
                state.retry.reschedule(Instant::now() + self.devices.retry_first);
                return false;
            }
        }
        self.close_disk(entry);
        true
    }

    /// Removes the file that a change has created for a closed disk, in a store thread. `created`:
    /// its identity; `unsettled`: its reservation, unless it was in service.
    pub(super) fn remove_created(
        &self,
        entry: &DiskEntry,
        files: &Arc<dyn StoreFiles>,
        created: Option<FileId>,
        unsettled: Option<ReservedFile>,
    ) {
        let (work, files) = (self.shared.image_task(entry), files.clone());
        let store = work.required.store.path.clone();
        let unsettled = unsettled.or_else(|| work.reserve_for_removal());
        self.shared.disks.threads.run_eventually(&store, move || {
            work.roll_back_creation(&files, created);
            drop(unsettled);
        });
    }
}

/// Returns the result of an attempt to open a disk. If the attempt has failed and found an image
/// file, the disk does not count as new any more.
fn opened_by(entry: &DiskEntry, opened: OpenResult) -> Result<OpenedImages, ApiError> {
    opened.map_err(|unopened| {
        let OpenFailure { error, has_file } = *unopened;
        if has_file {
            entry.set_new(false);
        }
        error
    })
}

impl Shared {
    pub(super) fn image_task(&self, entry: &DiskEntry) -> ImageTask {
        let (required, verifies, is_requested) = {
            let state = entry.lock();
            (state.required.clone(), state.has_failed_flush, state.is_image_requested)
        };
        ImageTask {
            label: entry.label(),
            required,
            verifies_metadata: verifies,
            stores: self.disks.stores.clone(),
            random: self.disks.dependencies.random.clone(),
            redo_records: self.disks.dependencies.redo_records.clone(),
            remaining_redo_records: RemainingRecordPolicy::Redo,
            clock: self.clock.clone(),
            is_new: entry.is_new(),
            checks_children: entry.checks_children(),
            is_creation_requested: is_requested,
            created: self.disks.created_images.clone(),
            has_file: false,
            closed_disks: Vec::new(),
            known_parents: self.disks.known_parents.clone(),
            drafts: Vec::new(),
        }
    }

    /// Closes the images of a disk that is not in service, in a store thread. If the store does not
    /// respond, they are closed when it does.
    pub(super) fn close_images(
        &self,
        entry: &DiskEntry,
        required: &RequiredDisk,
        spec: LayerStack,
    ) {
        let label = entry.label();
        let threads = &self.disks.threads;
        if !threads.run_eventually(&required.store.path, move || close_images(spec, &label)) {
            tracing::warn!(disk = %entry.name, "an image is closed when its store responds");
        }
    }
}
