//! Opening and closing disks.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::time::Instant;

use suimon_contract::{ApiError, ErrorCode, EventKind};
use suimon_image::Shape;
use suimon_ports::{
    DeviceError, DeviceNotice, DiskObserver, StoreFault, StoreFileError, StoreFiles,
};
use suimon_quantity::DiskId;
use suimon_storage::images::{self, DiskError, DiskFault, Seeds};

use super::entry::{DiskEntry, OpenDisk};
use super::pausing::plane_error;
use super::wanted::WantedDisk;
use crate::checks::error_code;
use crate::control::{Command, Controller};
use crate::events::Draft;

/// Passes what is heard of a disk's VM on to the control thread.
struct NoticeSender {
    generation: u64,
    notices: SyncSender<Command>,
}

impl DiskObserver for NoticeSender {
    fn handle_notice(&self, disk: DiskId, notice: DeviceNotice) {
        let command = Command::DiskNotice { disk, generation: self.generation, notice };
        if self.notices.try_send(command).is_err() {
            tracing::warn!(?disk, "a notice of a disk's front-end was lost");
        }
    }
}

impl Controller {
    /// Opens a disk that is not open, and makes its file if it is not there. Returns
    /// whether it was made.
    pub(crate) fn open_disk(&mut self, entry: &DiskEntry) -> Result<bool, ApiError> {
        let (wanted, generation) = {
            let mut state = entry.lock();
            state.generation += 1;
            (state.wanted.clone(), state.generation)
        };
        let disks = &self.shared.disks;
        let files =
            disks.store(&wanted.store.path).map_err(|error| store_file_error(entry, &error))?;
        let is_made = self.make_file(entry, &wanted, &files)?;
        let opened = self.open_made(entry, &wanted, &files, generation);
        match opened {
            Ok(open) => {
                let mut state = entry.lock();
                state.open = Some(open);
                state.failing.now = None;
                Ok(is_made)
            }
            Err(error) => {
                if is_made {
                    self.remove_file(entry, &wanted, &files);
                }
                Err(error)
            }
        }
    }

    fn make_file(
        &mut self,
        entry: &DiskEntry,
        wanted: &WantedDisk,
        files: &Arc<dyn StoreFiles>,
    ) -> Result<bool, ApiError> {
        let plan = wanted.plan();
        if plan.file.is_none() {
            return Ok(false);
        }
        let failed = |error: DiskError| disk_error(entry, &error);
        if images::exists(files.as_ref(), &plan).map_err(failed)? {
            return Ok(false);
        }
        if plan.size.is_none() && plan.parent.is_none() {
            let text = format!(
                "there is no file {} in the store; to have it made, say how large the disk is",
                plan.label()
            );
            return Err(ApiError::new(ErrorCode::NotFound, text)
                .about(entry.label())
                .field("size_bytes"));
        }
        self.with_seeds(|seeds| images::create(files, &plan, seeds)).map_err(failed)?;
        let text = format!("The file {} was made.", plan.label());
        let draft = Draft::new(EventKind::DiskFileMade, entry.label(), text);
        self.drafts.push(draft.with("file", plan.label()));
        Ok(true)
    }

    fn open_made(
        &mut self,
        entry: &DiskEntry,
        wanted: &WantedDisk,
        files: &Arc<dyn StoreFiles>,
        generation: u64,
    ) -> Result<OpenDisk, ApiError> {
        let opened = self.open_grown(entry, wanted, files)?;
        let disks = &self.shared.disks;
        let images::OpenedDisk { spec, shape, layers, .. } = opened;
        let store = disks.store_id(&wanted.config.store);
        disks
            .parts
            .plane
            .add_disk(entry.id, spec, store)
            .map_err(|error| plane_error(entry, &error))?;
        let offered = self.offer(entry, wanted, shape, generation);
        match offered {
            Ok(device) => Ok(OpenDisk { shape, files: files.clone(), layers, device }),
            Err(error) => {
                self.take_out(entry, wanted);
                Err(error)
            }
        }
    }

    /// Opens what a disk in service is offered by.
    fn offer(
        &self,
        entry: &DiskEntry,
        wanted: &WantedDisk,
        shape: Shape,
        generation: u64,
    ) -> Result<Option<Box<dyn suimon_ports::DiskDevice>>, ApiError> {
        let parts = &self.shared.disks.parts;
        let promise = self.devices.promises.of(&entry.label());
        let device = match wanted.vhost_user(shape, promise) {
            None => None,
            Some(spec) => {
                let observer =
                    Arc::new(NoticeSender { generation, notices: self.devices.notices.clone() });
                let opened =
                    parts.devices.open(entry.id, &spec, parts.plane.queue_host(), observer);
                Some(opened.map_err(|error| offer_error(entry, "vhost_user", &error))?)
            }
        };
        self.offer_nbd(entry, wanted, shape)?;
        Ok(device)
    }

    /// Closes a disk, if it is open: its queues are gone and everything is durable when
    /// this returns.
    pub(crate) fn close_disk(&self, entry: &DiskEntry) {
        let (open, wanted) = {
            let mut state = entry.lock();
            state.generation += 1;
            state.failing.now = None;
            (state.open.take(), state.wanted.clone())
        };
        if let Some(open) = open {
            self.shared.disks.parts.plane.begin_end(entry.id);
            drop(open.device);
            self.take_out(entry, &wanted);
        }
    }

    /// Takes a disk out of service and closes its image.
    fn take_out(&self, entry: &DiskEntry, wanted: &WantedDisk) {
        let disks = &self.shared.disks;
        self.withdraw_nbd(entry, wanted);
        match disks.parts.plane.take_disk(entry.id) {
            Ok(spec) => self.close_images(entry, spec),
            Err(error) => tracing::warn!(disk = %entry.name, %error, "a disk was not closed"),
        }
    }

    /// Closes a disk and notes why and when to try again.
    pub(crate) fn fail_disk(&self, entry: &DiskEntry, reason: String) {
        self.close_disk(entry);
        entry.lock().failing.fail(Instant::now(), self.devices.retry_first, reason);
    }

    /// Removes a disk's file, which is not open.
    pub(crate) fn remove_file(
        &self,
        entry: &DiskEntry,
        wanted: &WantedDisk,
        files: &Arc<dyn StoreFiles>,
    ) {
        let Some(file) = wanted.plan().file else { return };
        if let Err(error) = files.remove(&file) {
            tracing::warn!(disk = %entry.name, %error, "a disk's file stays behind");
        }
    }

    pub(crate) fn with_seeds<T>(&self, run: impl FnOnce(&mut Seeds<'_>) -> T) -> T {
        let random = self.shared.disks.parts.random.clone();
        let now_unix_s = (self.shared.clock)() / 1000;
        run(&mut Seeds { random: &mut || random(), now_unix_s })
    }
}

pub(crate) fn disk_error(entry: &DiskEntry, error: &DiskError) -> ApiError {
    let code = match error.fault.as_ref() {
        DiskFault::Store(fault) => fault_code(fault),
        DiskFault::Plan { .. } => ErrorCode::InvalidValue,
        _ => ErrorCode::HostError,
    };
    ApiError::new(code, error.to_string()).about(entry.label())
}

pub(crate) fn store_file_error(entry: &DiskEntry, error: &StoreFileError) -> ApiError {
    ApiError::new(fault_code(&error.fault), error.to_string()).about(entry.label()).field("store")
}

pub(super) const fn fault_code(fault: &StoreFault) -> ErrorCode {
    match fault {
        StoreFault::Missing => ErrorCode::DeviceMissing,
        StoreFault::InUse { .. } => ErrorCode::DeviceBusy,
        StoreFault::Unsupported { .. } => ErrorCode::Unsupported,
        _ => ErrorCode::HostError,
    }
}

pub(crate) fn offer_error(entry: &DiskEntry, table: &str, error: &DeviceError) -> ApiError {
    ApiError::new(error_code(error.kind), error.detail.clone())
        .about(entry.label())
        .field(format!("{table}.{}", error.field))
}
