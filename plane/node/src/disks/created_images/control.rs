//! Use of the records of created images by changes, openings of disks and the start of the daemon.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode};
use suimon_image_files::ContentFingerprint;
use suimon_ports::{DiskFile, FileId, FileName, StateStoreError, StoreFiles};

use super::{CREATED_IMAGES, CreatedImage, FileComparison, WrittenState, remove_if_same};
use crate::control::Controller;
use crate::disks::Disks;
use crate::disks::image_task::ImageTask;
use crate::disks::opening::errors::store_file_error;
use crate::disks::required::{RequiredDisk, RequiredDisks};
use crate::state::{StoreChange, path_key};

impl Disks {
    /// Returns the recorded images that disks in service have: the one that the current change has
    /// created on request, and files that new disks have adopted. Their records are deleted at the
    /// commit ([`Self::created_image_changes`]); then [`Self::forget_created_images`] must be
    /// called.
    pub(crate) fn created_images_in_service(&self, required: &RequiredDisks) -> Vec<PathBuf> {
        let recorded: Vec<CreatedImage> = self.created_images.lock().values().cloned().collect();
        if recorded.is_empty() {
            return Vec::new();
        }
        let is_open = |disk: &RequiredDisk| {
            let entry = self.find(&disk.config.name);
            entry.is_some_and(|entry| entry.lock().open.is_some())
        };
        let open: Vec<&RequiredDisk> = required.values().filter(|disk| is_open(disk)).collect();
        let in_service = |record: &&CreatedImage| open.iter().any(|disk| record.is_of(disk));
        // With the path of the record: that of its store may have been changed since.
        recorded.iter().filter(in_service).map(CreatedImage::path).collect()
    }

    /// Returns the changes that delete the records of these images.
    pub(crate) fn created_image_changes(paths: &[PathBuf]) -> Vec<StoreChange> {
        paths.iter().map(|path| (CREATED_IMAGES, path_key(path), None)).collect()
    }

    /// Removes the records of these images from memory, after a commit has deleted them from the
    /// state store.
    pub(crate) fn forget_created_images(&self, paths: &[PathBuf]) {
        let mut records = self.created_images.lock();
        for path in paths {
            records.remove(path);
        }
    }
}

impl ImageTask {
    /// Records the image that the change creates on request, which is not written until it has its
    /// name. Returns the record.
    pub(in crate::disks) fn record_created(
        &self,
        file: &FileName,
        image: &dyn DiskFile,
    ) -> Result<CreatedImage, ApiError> {
        let marked = WrittenState::mark(image);
        let format = self.required.plan().format;
        let content = ContentFingerprint::compute(image, format);
        if let Err(error) = &marked {
            tracing::warn!(
                disk = %self.label,
                %error,
                "the modification time of the new image cannot be set; if the change is \
                 interrupted, the image is not removed"
            );
        }
        if content.is_none() {
            tracing::warn!(
                disk = %self.label,
                "the content of the new image cannot be determined; if the change is interrupted, \
                 the image is not removed"
            );
        }
        let store = &self.required.store;
        let name = store.name.to_string();
        let file_state = (image.properties().id, marked.ok());
        let record = CreatedImage::new((name.as_str(), store.path.as_path()), file, file_state)
            .with_content(content)
            .with_format(format);
        self.created.add(record.clone()).map_err(|error| error.with_resource(&self.label))?;
        Ok(record)
    }

    /// Deletes the record of an image that does not exist.
    pub(in crate::disks) fn delete_created_record(&self, record: &CreatedImage) {
        self.created.forget(record);
    }

    /// Deletes the record of the disk's image, which was removed.
    pub(in crate::disks) fn delete_record_of_removed_image(&self) {
        if let Some(record) = self.created.find(&self.required.image_path()) {
            self.created.forget(&record);
        }
    }

    /// Discards the redo record of a file that is being removed.
    pub(in crate::disks) fn discard_redo(&self, id: FileId) {
        let Some(records) = &self.redo_records else { return };
        if let Err(error) = records.discard(&id.to_string()) {
            tracing::warn!(
                disk = %self.label,
                %error,
                "cannot delete the redo record of a disk's file"
            );
        }
    }

    /// Removes the existing image file if a change that did not complete has created it, and
    /// nothing has been written to it since. `is_reserved`: the caller has an `ReservedFile`.
    /// Returns true if it was removed.
    ///
    /// # Errors
    /// The file cannot be removed, or the file system does not provide the properties by which it
    /// is compared with the record.
    pub(in crate::disks) fn remove_created(
        &self,
        files: &Arc<dyn StoreFiles>,
        file: &FileName,
        is_reserved: bool,
    ) -> Result<bool, ApiError> {
        let Some(record) = self.created.find_for_disk(&self.required) else { return Ok(false) };
        let _unsettled = match is_reserved {
            true => None,
            false => {
                let unsettled = &self.stores.reserved_files;
                let added = unsettled.add_new(&self.required.store.path, file);
                Some(added.ok_or_else(|| self.file_reserved_error())?)
            }
        };
        let check = |file: &dyn DiskFile| {
            let matching = record.compare_file(file);
            if let (FileComparison::Same, Some(id)) = (matching, file.properties().id) {
                self.discard_redo(id);
            }
            matching
        };
        let matching = remove_if_same(files.as_ref(), file, check)
            .map_err(|error| store_file_error(&self.label, &error))?;
        let path = self.required.image_path();
        match matching {
            FileComparison::Same => {
                self.created.forget(&record);
                tracing::info!(
                    disk = %self.label,
                    file = %path.display(),
                    "removed an image that a change without success has created"
                );
                Ok(true)
            }
            FileComparison::Other => {
                // With another path of the store, the recorded file may exist.
                if record.path() == path {
                    self.created.forget(&record);
                }
                Ok(false)
            }
            // The change that adds the disk or requests the image uses this one.
            FileComparison::Unknown if self.is_new => Ok(false),
            FileComparison::Unknown => Err(self.uncertain_image(&path)),
        }
    }

    fn uncertain_image(&self, path: &Path) -> ApiError {
        let disk = &self.required.config.name;
        let text = format!(
            "the image file {} may be an empty one that an interrupted `--create-image` has left. \
             If it is, delete it and restore the disk's image. To use the file as it is, use \
             `suimon disk set {disk} --create-image`",
            path.display()
        );
        ApiError::new(ErrorCode::Conflict, text).with_resource(&self.label).with_field("file")
    }
}

impl Controller {
    /// Reads the records of created images. Must be called before disks are opened.
    pub(in crate::disks) fn load_created_images(&self) -> Result<(), StateStoreError> {
        self.shared.disks.created_images.load()
    }

    /// Removes recorded images that no disk has, and deletes the records of deleted stores. The
    /// images of disks are removed when the disks are opened.
    pub(in crate::disks) fn remove_created_images(&self, required: &RequiredDisks) {
        let disks = &self.shared.disks;
        let records: Vec<CreatedImage> = disks.created_images.lock().values().cloned().collect();
        let desired = self.shared.desired();
        for record in records {
            if required.values().any(|disk| record.is_of(disk)) {
                continue;
            }
            let stores = &desired.config.stores;
            let at_path = stores.iter().find(|store| store.path == record.store);
            let store_by_name =
                || stores.iter().find(|store| store.name.to_string() == record.store_name);
            match at_path.or_else(store_by_name) {
                Some(store) => self.remove_unused_image(record, store.path.clone()),
                None => disks.created_images.forget(&record),
            }
        }
    }

    /// Removes a recorded image that no disk has, in a store thread. `store`: present path of its
    /// store.
    fn remove_unused_image(&self, record: CreatedImage, store: PathBuf) {
        let disks = &self.shared.disks;
        let Ok(file) = FileName::new(&record.file) else { return };
        let unsettled = disks.stores.reserved_files.add(&store, &file);
        let (open, created) = (disks.stores.clone(), disks.created_images.clone());
        let of_thread = store.clone();
        disks.threads.run_eventually(&of_thread, move || {
            let path = store.join(&record.file);
            let removed = open.files(&store).and_then(|files| {
                remove_if_same(files.as_ref(), &file, |opened| record.compare_file(opened))
            });
            match removed {
                Ok(FileComparison::Same) => {
                    tracing::info!(
                        file = %path.display(),
                        "removed an image that a change without success has created"
                    );
                    created.forget(&record);
                }
                Ok(FileComparison::Other) if path == record.path() => created.forget(&record),
                // With another path of the store, the recorded file may exist.
                Ok(FileComparison::Other) => {}
                Ok(FileComparison::Unknown) => tracing::warn!(
                    file = %path.display(),
                    "a file may be an empty image of a failed change, and is kept; delete it if so"
                ),
                // The store may be mounted later.
                Err(error) if error.is_missing() => {}
                Err(error) => tracing::warn!(
                    file = %path.display(), %error, "cannot delete an image of a failed change"
                ),
            }
            drop(unsettled);
        });
    }
}
