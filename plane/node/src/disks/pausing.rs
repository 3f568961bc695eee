//! Operations on the files of disks in service. Clients see a pause.

use std::sync::Arc;

use suimon_contract::ApiError;
use suimon_image_files::OpenedDisk;
use suimon_ports::StoreFiles;
use suimon_storage::{PlaneError, ResumeDiskError};

use super::entry::DiskEntry;
use super::image_task::{ImageTask, OpenedImages, close_images};
use super::notices::disk_failed_event;
use super::store_threads::STORE_TIMEOUT;
use crate::control::Controller;
use crate::disks::entry::plane_error;
use crate::shared::Shared;

impl Controller {
    /// Suspends a disk in service and closes its images, executes `change` in a store thread and
    /// then `apply` in the control thread, and resumes the disk with its current configuration,
    /// which `apply` may change. `apply` must not block on a store.
    ///
    /// # Errors
    /// Returns the error of `change` or `apply`. If the disk cannot be resumed, it is marked as
    /// failed and retried, and that error is returned unless there was one before.
    pub(super) fn run_suspended<T: Send + 'static>(
        &mut self,
        entry: &DiskEntry,
        change: impl FnOnce(&mut ImageTask, &Arc<dyn StoreFiles>) -> Result<T, ApiError>
        + Send
        + 'static,
        apply: impl FnOnce(&mut Self, T) -> Result<(), ApiError>,
    ) -> Result<(), ApiError> {
        let files = entry.lock().open.as_ref().map(|open| open.files.clone());
        let files = files.ok_or_else(|| plane_error(entry, &PlaneError::NoSuchDisk))?;
        let plane = self.shared.disks.dependencies.plane.clone();
        let spec = plane.suspend_disk(entry.id).map_err(|error| plane_error(entry, &error))?;
        let mut work = self.shared.image_task(entry);
        let (label, of_store) = (entry.label(), files.clone());
        let result = self.shared.with_store(
            entry,
            move || {
                close_images(spec, &label);
                change(&mut work, &of_store)
            },
            drop,
        );
        let result = result.and_then(|result| apply(self, result?));
        match self.shared.resume(entry, &files) {
            Ok(()) => result,
            Err(error) => {
                let reason = error.to_string();
                self.drafts.push(disk_failed_event(entry, &reason));
                self.fail_disk(entry, reason);
                // The first error is the cause.
                result.and(Err(error))
            }
        }
    }
}

impl Shared {
    /// Executes an operation on a disk's store in a store thread, and waits at most
    /// [`STORE_TIMEOUT`] for its result. `take_back` undoes the operation if it completes later.
    pub(super) fn with_store<T: Send + 'static>(
        &self,
        entry: &DiskEntry,
        work: impl FnOnce() -> T + Send + 'static,
        take_back: fn(T),
    ) -> Result<T, ApiError> {
        let store = entry.lock().required.store.path.clone();
        let result = self.disks.threads.run(&store, STORE_TIMEOUT, work, take_back);
        result.map_err(|unanswered| unanswered.abandon().with_resource(entry.label()))
    }

    /// Opens the images of a suspended disk as currently configured, and resumes the disk.
    pub(super) fn resume(
        &self,
        entry: &DiskEntry,
        files: &Arc<dyn StoreFiles>,
    ) -> Result<(), ApiError> {
        let (work, of_store) = (self.image_task(entry), files.clone());
        let required = work.required.clone();
        let open = move || {
            let images = work.open_images(&of_store)?;
            Ok(OpenedImages { task: work, files: of_store, images, created_file: None })
        };
        let opened = self.with_store(entry, open, OpenedImages::undo_late_open::<ApiError>)??;
        let OpenedDisk { layer_stack: spec, kind, geometry: shape, layer_files: layers, .. } =
            opened.images;
        entry.lock().discard_support = spec.discard_support();
        let resumed = self.disks.dependencies.plane.resume_disk(entry.id, spec);
        if let Err(ResumeDiskError { error, spec }) = resumed {
            if let Some(spec) = spec {
                self.close_images(entry, &required, spec);
            }
            return Err(plane_error(entry, &error));
        }
        let mut state = entry.lock();
        state.has_failed_flush = false;
        if let Some(open) = &mut state.open {
            (open.kind, open.geometry, open.layer_files) = (Some(kind), shape, layers);
        }
        Ok(())
    }
}
