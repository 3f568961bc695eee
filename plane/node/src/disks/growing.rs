//! Gives disks the size that is desired. They only grow.

use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode, EventKind};
use suimon_image::Shape;
use suimon_ports::StoreFiles;
use suimon_storage::images::OpenedDisk;
use suimon_storage::jobs;

use super::entry::DiskEntry;
use super::opening::{disk_error, offer_error};
use super::wanted::WantedDisk;
use crate::control::Controller;
use crate::events::Draft;

/// The size that a disk of this size is to get.
fn wanted_size(wanted: &WantedDisk, size: u64) -> Option<u64> {
    let wanted_size = wanted.config.size_bytes?.bytes();
    let has_file = wanted.config.effective_file().is_some();
    (has_file && wanted_size > size).then_some(wanted_size)
}

impl Controller {
    /// Opens a disk's images. One that is smaller than desired is made larger before, as
    /// when a daemon ended in between; one that is only read stays as it is.
    pub(super) fn open_grown(
        &mut self,
        entry: &DiskEntry,
        wanted: &WantedDisk,
        files: &Arc<dyn StoreFiles>,
    ) -> Result<OpenedDisk, ApiError> {
        let opened = self.open_images(entry, wanted, files)?;
        let before = opened.shape.size;
        let larger = wanted_size(wanted, before).filter(|_| !wanted.config.read_only);
        let Some(size) = larger else { return Ok(opened) };
        self.close_images(entry, opened.spec);
        let size = self.resize(entry, wanted, files, size)?;
        self.tell_resized(entry, before, size);
        self.open_images(entry, wanted, files)
    }

    /// Makes a disk in service as large as desired, if it is smaller: its clients find a
    /// pause. If it cannot be, it goes on as it was, or fails if even that cannot be.
    pub(super) fn grow_disk(
        &mut self,
        entry: &DiskEntry,
        wanted: &WantedDisk,
        shape: Shape,
    ) -> Result<Shape, ApiError> {
        let Some(size) = wanted_size(wanted, shape.size) else { return Ok(shape) };
        if wanted.config.read_only {
            let text = "a disk that is only read does not grow: set `read_only` to false";
            let error = ApiError::new(ErrorCode::InvalidValue, text);
            return Err(error.about(entry.label()).field("size_bytes"));
        }
        self.while_suspended(entry, |controller, files| {
            let size = controller.resize(entry, wanted, files, size)?;
            controller.tell_resized(entry, shape.size, size);
            Ok(())
        })?;
        let Some(shape) = entry.lock().open.as_ref().map(|open| open.shape) else {
            return Ok(shape);
        };
        self.tell_clients(entry, wanted, shape)?;
        Ok(shape)
    }

    /// The disk's VM, and NBD clients that come from now on, find its new size.
    fn tell_clients(
        &self,
        entry: &DiskEntry,
        wanted: &WantedDisk,
        shape: Shape,
    ) -> Result<(), ApiError> {
        let state = entry.lock();
        let device = state.open.as_ref().and_then(|open| open.device.as_ref());
        if let Some(device) = device {
            device.resize(shape.size).map_err(|error| offer_error(entry, "vhost_user", &error))?;
        }
        drop(state);
        self.offer_nbd(entry, wanted, shape)
    }

    fn resize(
        &self,
        entry: &DiskEntry,
        wanted: &WantedDisk,
        files: &Arc<dyn StoreFiles>,
        size: u64,
    ) -> Result<u64, ApiError> {
        let plan = wanted.plan();
        let resized = self.with_seeds(|seeds| jobs::resize(files.as_ref(), &plan, size, seeds));
        resized.map_err(|error| disk_error(entry, &error).field("size_bytes"))
    }

    fn tell_resized(&mut self, entry: &DiskEntry, before: u64, size: u64) {
        let text = format!("The disk has {size} bytes now; it had {before}.");
        let draft = Draft::new(EventKind::DiskResized, entry.label(), text);
        self.drafts.push(draft.with("size_bytes", size).with("size_bytes_before", before));
    }
}
