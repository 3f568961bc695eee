//! Reopening of disks: their writes and flushes are executed again after a failed flush
//! (docs/decisions/0076-failed-flushes.md).

use suimon_contract::{ApiError, EventKind, Name, ResourceKind};

use super::DiskFileJob;
use super::entry::DiskEntry;
use super::image_task::close_images;
use super::notices::disk_failed_event;
use crate::control::Controller;
use crate::disks::entry::plane_error;
use crate::errors::not_found;
use crate::events::EventDraft;

impl Controller {
    /// Closes the images of a disk and opens them again; its clients see a pause. After a failed
    /// flush, nothing is written at closing, and opening checks the metadata. A disk that cannot be
    /// opened has failed, and the daemon retries.
    pub(super) fn reopen_disk(&mut self, disk: &Name) -> Result<(), ApiError> {
        self.shared.check_disk_job(disk, &DiskFileJob::Reopen)?;
        let entry =
            self.shared.disks.find(disk).ok_or_else(|| not_found(ResourceKind::Disk, disk))?;
        let is_open = entry.lock().open.is_some();
        let opened = match is_open {
            true => self.reopen(&entry)?,
            false => self.open_disk(&entry).map(drop),
        };
        match opened {
            Ok(()) => {
                let text = "The disk was reopened: writes and flushes are executed.";
                self.drafts.push(EventDraft::new(EventKind::DiskRecovered, entry.label(), text));
                self.notify_vms();
                Ok(())
            }
            Err(error) => {
                let reason = error.to_string();
                self.drafts.push(disk_failed_event(&entry, &reason));
                self.fail_disk(&entry, reason);
                Err(error)
            }
        }
    }

    /// Closes the images of a disk and opens them again. An outer error means that the disk was not
    /// closed and continues; an inner error means that it was closed and is not open.
    fn reopen(&self, entry: &DiskEntry) -> Result<Result<(), ApiError>, ApiError> {
        let plane = &self.shared.disks.dependencies.plane;
        let spec = plane.suspend_disk_to_reopen(entry.id);
        let spec = spec.map_err(|error| plane_error(entry, &error))?;
        let has_failed_flush =
            spec.layers.first().is_some_and(|layer| layer.file.first_flush_error().is_some());
        // The plane may have reported it only just now.
        entry.lock().has_failed_flush |= has_failed_flush;
        let label = entry.label();
        let closed = self.shared.with_store(entry, move || close_images(spec, &label), drop);
        let files = entry.lock().open.as_ref().map(|open| open.files.clone());
        Ok(closed.and_then(|()| match files {
            Some(files) => self.shared.resume(entry, &files),
            None => Err(not_found(ResourceKind::Disk, &entry.name)),
        }))
    }
}
