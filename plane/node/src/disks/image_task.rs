//! Operations on the image files of a disk. They run in a store thread, because they block while
//! the store does not respond.

use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode, EventKind};
use suimon_image_files::{
    self, DiskError, DiskFault, HostInputs, OpenedDisk, RemainingRecordPolicy,
};
use suimon_image_files::{LayerStack, jobs};
use suimon_ports::{FileId, RedoRecords, StoreFiles};

use super::created_images::{CreatedImages, FileComparison, remove_if_same};
use super::growing::required_size;
use super::missing_image::{missing_image_error, unknown_size_error};
use super::open_stores::OpenStores;
use super::opening::errors::{disk_error, store_file_error};
use super::parent_protection::cache::{ClosedDisk, ParentCache};
use super::required::RequiredDisk;
use super::reserved_files::ReservedFile;
use crate::RandomSource;
use crate::UnixClock;
use crate::events::EventDraft;

/// Environment of the operations on one disk's files, independent of locks of the node.
pub(crate) struct ImageTask {
    /// Name of the disk in events and errors.
    pub(super) label: String,
    pub(super) required: RequiredDisk,
    pub(super) stores: Arc<OpenStores>,
    pub(super) random: RandomSource,
    pub(super) redo_records: Option<Arc<dyn RedoRecords>>,
    pub(super) remaining_redo_records: RemainingRecordPolicy,
    /// True if metadata is checked when the images are opened.
    pub(super) verifies_metadata: bool,
    pub(super) clock: UnixClock,
    /// True if the disk has had no image yet (`new_disks.rs`).
    pub(super) is_new: bool,
    /// True if no image in the store may have the disk's file as its parent
    /// (`unchecked_disks.rs`).
    pub(super) checks_children: bool,
    /// True if a change creates the image on request. The image is then recorded until the change
    /// is complete.
    pub(super) is_creation_requested: bool,
    /// Records of images that were created on request.
    pub(super) created: Arc<CreatedImages>,
    /// True if an attempt to open the disk has found its image file.
    pub(super) has_file: bool,
    /// Disks of the same store that are not open. Empty except for opening or merging a disk.
    pub(super) closed_disks: Vec<ClosedDisk>,
    pub(super) known_parents: Arc<ParentCache>,
    /// Events of the operations, to be emitted if the whole change succeeds.
    pub(super) drafts: Vec<EventDraft>,
}

/// Opened images of a disk that is not in service yet.
pub(crate) struct OpenedImages {
    pub(super) task: ImageTask,
    pub(super) files: Arc<dyn StoreFiles>,
    pub(super) images: OpenedDisk,
    /// Image file that this attempt has created; `None` if it existed before.
    pub(super) created_file: Option<CreatedFile>,
}

/// Image file that an attempt to open a disk has created.
pub(crate) struct CreatedFile {
    /// Identity of the file; `None` if the file system does not provide it. Then the file is not
    /// removed.
    pub(super) id: Option<FileId>,
    /// Dropped when the disk is in service, or when the file is removed.
    pub(super) reservation: ReservedFile,
}

/// Failed attempt to open a disk.
pub(crate) struct OpenFailure {
    pub(super) error: ApiError,
    /// True if the disk has an image file.
    pub(super) has_file: bool,
}

/// Result of an attempt to open a disk.
pub(crate) type OpenResult = Result<OpenedImages, Box<OpenFailure>>;

/// Store, images and created file of a disk.
type FoundImages = (Arc<dyn StoreFiles>, OpenedDisk, Option<CreatedFile>);

impl OpenedImages {
    /// Closes the images, and removes the file if it was created by this attempt.
    pub(super) fn undo(self) {
        self.task.close_images(self.images.layer_stack);
        if let Some(created) = self.created_file {
            self.task.roll_back_creation(&self.files, created.id);
        }
    }

    /// Undoes an attempt to open a disk that has succeeded after the caller's timeout: closes the
    /// images and removes a created file.
    pub(super) fn undo_late_open<E>(result: Result<Self, E>) {
        if let Ok(opened) = result {
            opened.undo();
        }
    }
}

impl ImageTask {
    /// Converts an error about the disk's images. The error about a missing parent is extended by
    /// the commands that set the parent.
    pub(super) fn to_api_error(&self, error: &DiskError) -> ApiError {
        let mut api_error = disk_error(&self.label, error);
        if matches!(*error.fault, DiskFault::ParentMissing { .. }) {
            let (disk, store) = (&self.required.config.name, &self.required.config.store);
            let relink = format!("suimon image relink --store {store} {} PARENT", error.file);
            let own_label = self.required.plan().label();
            let set = format!("suimon disk set {disk} --parent PARENT");
            let commands =
                if own_label == error.file { format!("{set}, or {relink}") } else { relink };
            api_error.message = format!("{} ({commands})", api_error.message);
        }
        api_error
    }

    pub(super) fn files(&self) -> Result<Arc<dyn StoreFiles>, ApiError> {
        let files = self.stores.files(&self.required.store.path);
        files.map_err(|error| store_file_error(&self.label, &error))
    }

    /// Opens the images of a disk. Creates a missing file if the disk is new, and extends the disk
    /// if it is smaller than desired.
    ///
    /// # Errors
    /// Fails if the file is a parent of another disk, or of an image in the store if the disk was
    /// not in service with the file for writing; is missing and the disk is not new or has no
    /// configured size; or cannot be opened. A file created by this attempt is removed.
    pub(super) fn open(mut self) -> OpenResult {
        match self.open_or_make() {
            Ok((files, images, created)) => {
                Ok(OpenedImages { task: self, files, images, created_file: created })
            }
            Err(error) => Err(Box::new(OpenFailure { error, has_file: self.has_file })),
        }
    }

    fn open_or_make(&mut self) -> Result<FoundImages, ApiError> {
        let files = self.files()?;
        self.check_not_parent(&files)?;
        let created = self.make_file(&files)?;
        match self.open_extended(&files) {
            Ok(images) => Ok((files, images, created)),
            Err(error) => {
                if let Some(created) = created {
                    self.roll_back_creation(&files, created.id);
                }
                Err(error)
            }
        }
    }

    fn make_file(&mut self, files: &Arc<dyn StoreFiles>) -> Result<Option<CreatedFile>, ApiError> {
        let plan = self.required.plan();
        let Some(file) = &plan.file else { return Ok(None) };
        let (unsettled, store) = (&self.stores.reserved_files, &self.required.store.path);
        // Before the file is searched for, so that one of another attempt is not found.
        let unsettled_file = match self.is_new {
            true => Some(unsettled.add_new(store, file).ok_or_else(|| self.file_reserved_error())?),
            false => None,
        };
        let failed = |error: DiskError| self.to_api_error(&error);
        if suimon_image_files::exists(files.as_ref(), &plan).map_err(failed)? {
            if unsettled_file.is_none() && unsettled.contains(store, file) {
                return Err(self.file_reserved_error());
            }
            if !self.remove_created(files, file, unsettled_file.is_some())? {
                self.has_file = true;
                return Ok(None);
            }
        }
        let Some(unsettled) = unsettled_file else {
            return Err(missing_image_error(&self.label, &self.required));
        };
        if let Some(error) = unknown_size_error(&self.label, &self.required) {
            return Err(error);
        }
        let image = self
            .with_host_inputs(|seeds| suimon_image_files::create_unnamed(files, &plan, seeds))
            .map_err(failed)?;
        let id = image.id();
        let recorded = match self.is_creation_requested {
            true => Some(self.record_created(file, image.file().map_err(failed)?)?),
            false => None,
        };
        if let Err(error) = image.publish() {
            recorded.iter().for_each(|record| self.delete_created_record(record));
            return Err(failed(error));
        }
        let text = format!("The image file {} was created.", plan.label());
        let draft = EventDraft::new(EventKind::DiskFileMade, &self.label, text);
        self.drafts.push(draft.with("file", plan.label()));
        Ok(Some(CreatedFile { id, reservation: unsettled }))
    }

    pub(super) fn file_reserved_error(&self) -> ApiError {
        let text = format!(
            "the image file {} is being created or removed by an earlier operation; repeat this one \
             when the store responds",
            self.required.image_path().display()
        );
        ApiError::new(ErrorCode::DeviceBusy, text).with_resource(&self.label).with_field("file")
    }

    /// Reserves the disk's image file, which is about to be removed, so that no disk opens it until
    /// the returned value is dropped. Returns `None` for a block device.
    pub(super) fn reserve_for_removal(&self) -> Option<ReservedFile> {
        let file = self.required.plan().file?;
        Some(self.stores.reserved_files.add(&self.required.store.path, &file))
    }

    /// Opens the images. Extends the disk first if it is smaller than desired, for example after a
    /// daemon exit during a resize; a read-only disk is not extended.
    fn open_extended(&mut self, files: &Arc<dyn StoreFiles>) -> Result<OpenedDisk, ApiError> {
        let opened = self.open_images(files)?;
        let before = opened.geometry.size_bytes;
        let larger =
            required_size(&self.required, before).filter(|_| !self.required.config.read_only);
        let Some(size) = larger else { return Ok(opened) };
        self.close_images(opened.layer_stack);
        self.resize(files, before, size)?;
        self.open_images(files)
    }

    /// Opens the images with their present size.
    pub(super) fn open_images(&self, files: &Arc<dyn StoreFiles>) -> Result<OpenedDisk, ApiError> {
        let plan = self.required.plan();
        let open = || {
            self.with_host_inputs(|seeds| suimon_image_files::open(files.as_ref(), &plan, seeds))
        };
        let opened = match open() {
            Err(error) if self.has_recovered_merge(files, &error) => open(),
            opened => opened,
        };
        let opened = opened.map_err(|error| self.to_api_error(&error))?;
        if let Some(error) = &opened.redo_record_error {
            tracing::warn!(
                disk = %self.label,
                %error,
                "no redo record of the image can be written: each write to a new block is delayed \
                 by a commit",
            );
        }
        if self.verifies_metadata {
            if let Err(error) = suimon_image_files::verify_metadata(&opened, &plan) {
                self.close_images(opened.layer_stack);
                return Err(self.to_api_error(&error));
            }
        }
        Ok(opened)
    }

    /// After the error that the disk's parent was changed, restores parents that a failed merge has
    /// left changed. Returns true if a parent was restored, so that opening can be repeated; false
    /// after other errors.
    fn has_recovered_merge(&self, files: &Arc<dyn StoreFiles>, error: &DiskError) -> bool {
        if !matches!(*error.fault, DiskFault::ParentChanged { .. }) {
            return false;
        }
        let recovered = jobs::recover_merges(files.as_ref());
        if let Err(error) = &recovered {
            tracing::warn!(disk = %self.label, %error, "the parent of a failed merge is not restored");
        }
        recovered.is_ok_and(|notes| !notes.is_empty())
    }

    /// Discards the redo records that a killed daemon has left for the disk's image.
    pub(super) fn discard_remaining_redo(
        &self,
        files: &Arc<dyn StoreFiles>,
    ) -> Result<(), ApiError> {
        let plan = self.required.plan();
        self.with_host_inputs(|seeds| {
            suimon_image_files::discard_remaining_record(files.as_ref(), &plan, seeds)
        })
        .map_err(|error| self.to_api_error(&error))
    }

    /// Closes the images of a disk that is not in service.
    pub(super) fn close_images(&self, spec: LayerStack) {
        close_images(spec, &self.label);
    }

    /// Extends a disk that is not in service.
    pub(super) fn resize(
        &mut self,
        files: &Arc<dyn StoreFiles>,
        before: u64,
        size: u64,
    ) -> Result<(), ApiError> {
        let plan = self.required.plan();
        let resized =
            self.with_host_inputs(|seeds| jobs::resize(files.as_ref(), &plan, size, seeds));
        let size = resized.map_err(|error| self.to_api_error(&error).with_field("size_bytes"))?;
        let text = format!("The size of the disk is {size} bytes now; it was {before} bytes.");
        let draft = EventDraft::new(EventKind::DiskResized, &self.label, text);
        self.drafts.push(draft.with("size_bytes", size).with("size_bytes_before", before));
        Ok(())
    }

    /// Removes the file that a change without success has created for the disk, which is closed,
    /// and its redo record. `created`: identity of the file when it was created; another file of
    /// its name stays. Failures are logged only.
    pub(super) fn roll_back_creation(&self, files: &Arc<dyn StoreFiles>, created: Option<FileId>) {
        let Some(file) = self.required.plan().file else { return };
        let recorded = self.created.find_for_disk(&self.required);
        let removed = remove_if_same(files.as_ref(), &file, |file_info| {
            let (Some(created), Some(id)) = (created, file_info.properties().id) else {
                return FileComparison::Unknown;
            };
            if id != created {
                return FileComparison::Other;
            }
            let matching = recorded
                .as_ref()
                .map_or(FileComparison::Same, |record| record.compare_file(file_info));
            if matching == FileComparison::Same {
                self.discard_redo(id);
            }
            matching
        });
        match removed {
            Ok(FileComparison::Same) => self.delete_record_of_removed_image(),
            Ok(FileComparison::Other) => {
                tracing::warn!(
                    disk = %self.label,
                    %file,
                    "the file that the failed change has created was replaced or written since, and is kept"
                );
                self.delete_record_of_removed_image();
            }
            Ok(FileComparison::Unknown) => tracing::warn!(
                disk = %self.label,
                %file,
                "the file that the failed change has created cannot be compared with it, and is kept"
            ),
            Err(error) => {
                tracing::warn!(disk = %self.label, %error, "cannot delete a disk's file");
            }
        }
    }

    /// Removes the file of a closed disk, and its redo record. Failures are logged only.
    pub(super) fn remove_file(&self, files: &Arc<dyn StoreFiles>) {
        if let Err(error) = self.try_remove_file(files) {
            tracing::warn!(disk = %self.label, %error, "cannot delete a disk's file");
        }
    }

    /// Removes the file of a closed disk, its redo record, and the record that it was created.
    fn try_remove_file(&self, files: &Arc<dyn StoreFiles>) -> Result<(), ApiError> {
        let Some(file) = self.required.plan().file else { return Ok(()) };
        if let Err(error) = self.discard_remaining_redo(files) {
            tracing::warn!(
                disk = %self.label,
                %error,
                "cannot delete the redo record of a disk's file"
            );
        }
        files.remove(&file).map_err(|error| store_file_error(&self.label, &error))?;
        self.delete_record_of_removed_image();
        Ok(())
    }

    pub(super) fn with_host_inputs<T>(&self, run: impl FnOnce(&mut HostInputs<'_>) -> T) -> T {
        let now_unix_s = self.now_unix_s();
        let records = self.redo_records.as_deref();
        run(&mut HostInputs {
            random: &mut || (self.random)(),
            now_unix_s,
            redo_records: records,
            remaining_redo_records: self.remaining_redo_records,
        })
    }

    pub(super) fn now_unix_s(&self) -> u64 {
        (self.clock)() / 1000
    }
}

/// Closes the images of the disk `label`, which is not in service. Failures are logged only.
pub(super) fn close_images(spec: LayerStack, label: &str) {
    if let Err(error) = suimon_image_files::close(spec, label) {
        tracing::warn!(%error, "cannot close a disk cleanly; its state is as after a crash");
    }
}
