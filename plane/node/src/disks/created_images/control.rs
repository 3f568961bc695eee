//! Use of the records of created images by changes, openings of disks and the start of the daemon.

use std::path::Path;
use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode};
use suimon_ports::{FileId, FileLockMode, FileName, StateStoreError, StoreFiles};

use super::{CreatedImage, Match, remove_recorded};
use crate::control::Controller;
use crate::disks::Disks;
use crate::disks::file_work::ImageTask;
use crate::disks::opening::store_file_error;
use crate::disks::required::{RequiredDisk, RequiredDisks};
use crate::state::StoreChange;

impl Disks {
    /// Returns the change that deletes the record of a disk's image. It is committed together with the
    /// change that creates the image; then [`Self::end_created_image`] must be called.
    pub(crate) fn created_image_change(&self, wanted: &RequiredDisk) -> Option<StoreChange> {
        self.created_images.lock().get(&wanted.image_path()).map(CreatedImage::clear)
    }

    /// Ends the record of an image that belongs to its disk now.
    pub(crate) fn end_created_image(&self, wanted: &RequiredDisk) {
        self.created_images.lock().remove(&wanted.image_path());
    }
}

impl ImageTask {
    /// Records the image that the change creates on request. Returns the record.
    pub(in crate::disks) fn record_created(
        &self,
        file: &FileName,
        id: Option<FileId>,
    ) -> Result<CreatedImage, ApiError> {
        let record = CreatedImage::new(&self.required.store.path, file, id);
        self.created.add(record.clone()).map_err(|error| error.about(&self.label))?;
        Ok(record)
    }

    /// Deletes the record of an image that does not exist.
    pub(in crate::disks) fn forget_created(&self, record: &CreatedImage) {
        self.created.forget(record);
    }

    /// Deletes the record of the disk's image, which was removed.
    pub(in crate::disks) fn forget_removed(&self) {
        if let Some(record) = self.created.find(&self.required.image_path()) {
            self.created.forget(&record);
        }
    }

    /// Removes the existing image file if a change that did not complete has created it. Returns true
    /// if it was removed.
    ///
    /// # Errors
    /// The file cannot be removed, or cannot be told from another one.
    pub(in crate::disks) fn remove_created(
        &self,
        files: &Arc<dyn StoreFiles>,
        file: &FileName,
    ) -> Result<bool, ApiError> {
        let path = self.required.image_path();
        let Some(record) = self.created.find(&path) else { return Ok(false) };
        let found = files
            .open(file, FileLockMode::Write, 1)
            .map_err(|error| store_file_error(&self.label, &error))?;
        let matching = record.compare(found.properties().id);
        drop(found);
        match matching {
            Match::Same => {
                self.try_remove_file(files)?;
                tracing::info!(
                    disk = %self.label,
                    file = %path.display(),
                    "removed an image that a change without success has created"
                );
                Ok(true)
            }
            Match::Other => {
                self.created.forget(&record);
                Ok(false)
            }
            // The change that requests the image uses this one.
            Match::Unknown if self.is_new => Ok(false),
            Match::Unknown => Err(self.uncertain_image(&path)),
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
        ApiError::new(ErrorCode::Conflict, text).about(&self.label).field("file")
    }
}

impl Controller {
    /// Reads the records of created images. Must be called before disks are opened.
    pub(in crate::disks) fn load_created_images(&self) -> Result<(), StateStoreError> {
        self.shared.disks.created_images.load()
    }

    /// Removes recorded images that no disk has, and deletes the records of deleted stores. The images
    /// of disks are removed when the disks are opened.
    pub(in crate::disks) fn remove_created_images(&self, wanted: &RequiredDisks) {
        let disks = &self.shared.disks;
        let records: Vec<CreatedImage> = disks.created_images.lock().values().cloned().collect();
        let stores = &self.shared.desired().config.stores;
        for record in records {
            let path = record.path();
            if wanted.values().any(|disk| disk.image_path() == path) {
                continue;
            }
            if stores.iter().all(|store| Path::new(&store.path) != record.store) {
                disks.created_images.forget(&record);
                continue;
            }
            let Ok(file) = FileName::new(&record.file) else { continue };
            let unsettled = disks.stores.unsettled.add(&record.store, &file);
            let (open, created) = (disks.stores.clone(), disks.created_images.clone());
            let store = record.store.clone();
            disks.threads.run_eventually(&store, move || {
                let removed = open
                    .files(&record.store)
                    .and_then(|files| remove_recorded(files.as_ref(), &file, &record));
                match removed {
                    Ok(true) => {
                        tracing::info!(
                            file = %path.display(),
                            "removed an image that a change without success has created"
                        );
                        created.forget(&record);
                    }
                    Ok(false) => created.forget(&record),
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
}
