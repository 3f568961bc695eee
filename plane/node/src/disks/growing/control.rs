//! Growth of disks in use.

use suimon_contract::{ApiError, ErrorCode};
use suimon_image::DiskGeometry;

use super::required_size;
use crate::control::Controller;
use crate::disks::entry::{DiskEntry, disk_device_error};
use crate::disks::required::RequiredDisk;

impl Controller {
    /// Extends a disk in service if it is smaller than configured. Clients see a pause. On failure
    /// the disk continues with its size; if it cannot be resumed, it is marked as failed and
    /// retried.
    pub(in crate::disks) fn grow_disk(
        &mut self,
        entry: &DiskEntry,
        required: &RequiredDisk,
        shape: DiskGeometry,
    ) -> Result<DiskGeometry, ApiError> {
        let Some(size) = required_size(required, shape.size_bytes) else { return Ok(shape) };
        if required.config.read_only {
            let text = "a read-only disk cannot grow; set `read_only` to false";
            let error = ApiError::new(ErrorCode::InvalidValue, text);
            return Err(error.with_resource(entry.label()).with_field("size_bytes"));
        }
        self.run_suspended(
            entry,
            move |work, files| {
                work.resize(files, shape.size_bytes, size)?;
                Ok(std::mem::take(&mut work.drafts))
            },
            |controller, drafts| {
                controller.drafts.extend(drafts);
                Ok(())
            },
        )?;
        let Some(shape) = entry.lock().open.as_ref().map(|open| open.geometry) else {
            return Ok(shape);
        };
        self.notify_clients(entry, required, shape)?;
        Ok(shape)
    }

    /// Reports the new size to the disk's VM and to NBD clients that connect later.
    fn notify_clients(
        &self,
        entry: &DiskEntry,
        required: &RequiredDisk,
        shape: DiskGeometry,
    ) -> Result<(), ApiError> {
        let state = entry.lock();
        let device = state.open.as_ref().and_then(|open| open.device.as_ref());
        if let Some(device) = device {
            device
                .resize(shape.size_bytes)
                .map_err(|error| disk_device_error(entry, "vhost_user", &error))?;
        }
        drop(state);
        self.export_nbd(entry, required, shape)
    }
}
