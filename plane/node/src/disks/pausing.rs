//! Work on the files of disks in service: their clients find a pause.

use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode};
use suimon_ports::StoreFiles;
use suimon_storage::images::{self, OpenedDisk};
use suimon_storage::{DiskSpec, NotResumed, PlaneError};

use super::entry::DiskEntry;
use super::notices::disk_failed;
use super::opening::disk_error;
use super::wanted::WantedDisk;
use crate::control::Controller;

impl Controller {
    /// Opens a disk's images as they are.
    pub(super) fn open_images(
        &self,
        entry: &DiskEntry,
        wanted: &WantedDisk,
        files: &Arc<dyn StoreFiles>,
    ) -> Result<OpenedDisk, ApiError> {
        let plan = wanted.plan();
        self.with_seeds(|seeds| images::open(files.as_ref(), &plan, seeds))
            .map_err(|error| disk_error(entry, &error))
    }

    /// Closes the images of a disk that nobody serves.
    pub(super) fn close_images(&self, entry: &DiskEntry, spec: DiskSpec) {
        if let Err(error) = images::close(spec, &entry.label()) {
            tracing::warn!(%error, "a disk was not closed; it is as after a crash");
        }
    }

    /// Does something to the files of a disk in service, which nobody has open meanwhile.
    /// Then it goes on as it is desired, which `work` may change; if it cannot, it has
    /// failed and is tried again.
    pub(super) fn while_suspended<T>(
        &mut self,
        entry: &DiskEntry,
        work: impl FnOnce(&mut Self, &Arc<dyn StoreFiles>) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let files = entry.lock().open.as_ref().map(|open| open.files.clone());
        let files = files.ok_or_else(|| plane_error(entry, &PlaneError::NoSuchDisk))?;
        let plane = self.shared.disks.parts.plane.clone();
        let spec = plane.suspend_disk(entry.id).map_err(|error| plane_error(entry, &error))?;
        self.close_images(entry, spec);
        let done = work(self, &files);
        match self.resume(entry, &files) {
            Ok(()) => done,
            Err(error) => {
                let reason = error.to_string();
                self.drafts.push(disk_failed(entry, &reason));
                self.fail_disk(entry, reason);
                // What went wrong first says more.
                done.and(Err(error))
            }
        }
    }

    fn resume(&self, entry: &DiskEntry, files: &Arc<dyn StoreFiles>) -> Result<(), ApiError> {
        let wanted = entry.lock().wanted.clone();
        let OpenedDisk { spec, shape, layers, .. } = self.open_images(entry, &wanted, files)?;
        let resumed = self.shared.disks.parts.plane.resume_disk(entry.id, spec);
        if let Err(NotResumed { error, spec }) = resumed {
            if let Some(spec) = spec {
                self.close_images(entry, spec);
            }
            return Err(plane_error(entry, &error));
        }
        if let Some(open) = &mut entry.lock().open {
            open.shape = shape;
            open.layers = layers;
        }
        Ok(())
    }
}

pub(super) fn plane_error(entry: &DiskEntry, error: &PlaneError) -> ApiError {
    ApiError::new(ErrorCode::HostError, error.to_string()).about(entry.label())
}
