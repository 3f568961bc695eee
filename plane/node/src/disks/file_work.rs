//! What is done with the files of a disk, by a thread that may have to wait for their store.

use std::sync::Arc;

use suimon_contract::{ApiError, ErrorCode, EventKind};
use suimon_ports::{RedoRecords, StoreFiles};
use suimon_storage::images::{self, DiskError, DiskFault, LeftRecords, OpenedDisk, Seeds};
use suimon_storage::{DiskSpec, jobs};

use super::RandomSource;
use super::children::{KnownParents, OtherDisk};
use super::growing::wanted_size;
use super::open_stores::OpenStores;
use super::opening::{disk_error, store_file_error};
use super::wanted::WantedDisk;
use crate::events::Draft;
use crate::shared::UnixClock;

/// See the module.
pub(crate) struct FileWork {
    /// As events and errors name the disk.
    pub(super) label: String,
    pub(super) wanted: WantedDisk,
    pub(super) stores: Arc<OpenStores>,
    pub(super) random: RandomSource,
    pub(super) records: Option<Arc<dyn RedoRecords>>,
    pub(super) left: LeftRecords,
    /// True if metadata is checked when the images are opened.
    pub(super) verifies: bool,
    pub(super) clock: UnixClock,
    /// Disks of the same store that are not open. Empty but for opening a disk.
    pub(super) beside: Vec<OtherDisk>,
    pub(super) known_parents: Arc<KnownParents>,
    /// What has happened, to be told when it has come to something.
    pub(super) drafts: Vec<Draft>,
}

/// A disk whose images are open.
pub(crate) struct Opened {
    pub(super) work: FileWork,
    pub(super) files: Arc<dyn StoreFiles>,
    pub(super) images: OpenedDisk,
    /// Whether its file was made for this.
    pub(super) is_made: bool,
}

impl Opened {
    /// Closes the images again, and removes a file that was made for them.
    pub(super) fn take_back(self) {
        self.work.close_images(self.images.spec);
        if self.is_made {
            self.work.remove_file(&self.files);
        }
    }

    /// Takes back what somebody has asked for who does not want it any more.
    pub(super) fn take_back_result(result: Result<Self, ApiError>) {
        if let Ok(opened) = result {
            opened.take_back();
        }
    }
}

impl FileWork {
    /// An error about the disk's images. A missing parent is followed by the commands that name it
    /// again.
    pub(super) fn failed(&self, error: &DiskError) -> ApiError {
        let mut told = disk_error(&self.label, error);
        if matches!(*error.fault, DiskFault::ParentMissing { .. }) {
            let (disk, store) = (&self.wanted.config.name, &self.wanted.config.store);
            let relink = format!("suimon image relink --store {store} {} PARENT", error.file);
            let own = self.wanted.plan().label();
            let set = format!("suimon disk set {disk} --parent PARENT");
            let commands = if own == error.file { format!("{set}, or {relink}") } else { relink };
            told.message = format!("{} ({commands})", told.message);
        }
        told
    }

    pub(super) fn files(&self) -> Result<Arc<dyn StoreFiles>, ApiError> {
        let files = self.stores.files(&self.wanted.store.path);
        files.map_err(|error| store_file_error(&self.label, &error))
    }

    /// Opens a disk's images. Makes its file if it is not there, and makes it larger if it
    /// is smaller than desired.
    pub(super) fn open(mut self) -> Result<Opened, ApiError> {
        let files = self.files()?;
        self.refuse_parent_of_others(&files)?;
        let is_made = self.make_file(&files)?;
        match self.open_grown(&files) {
            Ok(images) => Ok(Opened { work: self, files, images, is_made }),
            Err(error) => {
                if is_made {
                    self.remove_file(&files);
                }
                Err(error)
            }
        }
    }

    fn make_file(&mut self, files: &Arc<dyn StoreFiles>) -> Result<bool, ApiError> {
        let plan = self.wanted.plan();
        if plan.file.is_none() {
            return Ok(false);
        }
        let failed = |error: DiskError| self.failed(&error);
        if images::exists(files.as_ref(), &plan).map_err(failed)? {
            return Ok(false);
        }
        if plan.size.is_none() && plan.parent.is_none() {
            let text = format!(
                "there is no file {} in the store; to have it made, say how large the disk is",
                plan.label()
            );
            return Err(ApiError::new(ErrorCode::NotFound, text)
                .about(&self.label)
                .field("size_bytes"));
        }
        self.with_seeds(|seeds| images::create(files, &plan, seeds)).map_err(failed)?;
        let text = format!("The file {} was made.", plan.label());
        let draft = Draft::new(EventKind::DiskFileMade, &self.label, text);
        self.drafts.push(draft.with("file", plan.label()));
        Ok(true)
    }

    /// Opens a disk's images. One that is smaller than desired is made larger before, as
    /// when a daemon ended in between; one that is only read stays as it is.
    fn open_grown(&mut self, files: &Arc<dyn StoreFiles>) -> Result<OpenedDisk, ApiError> {
        let opened = self.open_images(files)?;
        let before = opened.shape.size;
        let larger = wanted_size(&self.wanted, before).filter(|_| !self.wanted.config.read_only);
        let Some(size) = larger else { return Ok(opened) };
        self.close_images(opened.spec);
        self.resize(files, before, size)?;
        self.open_images(files)
    }

    /// Opens a disk's images as they are.
    pub(super) fn open_images(&self, files: &Arc<dyn StoreFiles>) -> Result<OpenedDisk, ApiError> {
        let plan = self.wanted.plan();
        let opened = self
            .with_seeds(|seeds| images::open(files.as_ref(), &plan, seeds))
            .map_err(|error| self.failed(&error))?;
        if let Some(error) = &opened.unrecorded {
            tracing::warn!(
                disk = %self.label,
                %error,
                "no record of the image can be kept: each write to new space waits for a commit, \
                 which is slower",
            );
        }
        if self.verifies {
            if let Err(error) = images::verify_metadata(&opened, &plan) {
                self.close_images(opened.spec);
                return Err(self.failed(&error));
            }
        }
        Ok(opened)
    }

    /// Removes what a killed daemon had answered and that is not in the disk's file.
    pub(super) fn discard_left(&self, files: &Arc<dyn StoreFiles>) -> Result<(), ApiError> {
        let plan = self.wanted.plan();
        self.with_seeds(|seeds| images::discard_left(files.as_ref(), &plan, seeds))
            .map_err(|error| self.failed(&error))
    }

    /// Closes the images of a disk that nobody serves.
    pub(super) fn close_images(&self, spec: DiskSpec) {
        close_images(spec, &self.label);
    }

    /// Gives a disk that nobody serves more bytes.
    pub(super) fn resize(
        &mut self,
        files: &Arc<dyn StoreFiles>,
        before: u64,
        size: u64,
    ) -> Result<(), ApiError> {
        let plan = self.wanted.plan();
        let resized = self.with_seeds(|seeds| jobs::resize(files.as_ref(), &plan, size, seeds));
        let size = resized.map_err(|error| self.failed(&error).field("size_bytes"))?;
        let text = format!("The disk has {size} bytes now; it had {before}.");
        let draft = Draft::new(EventKind::DiskResized, &self.label, text);
        self.drafts.push(draft.with("size_bytes", size).with("size_bytes_before", before));
        Ok(())
    }

    /// Removes a disk's file, which is not open.
    pub(super) fn remove_file(&self, files: &Arc<dyn StoreFiles>) {
        let Some(file) = self.wanted.plan().file else { return };
        if let Err(error) = self.discard_left(files) {
            tracing::warn!(disk = %self.label, %error, "a record of a disk's file stays behind");
        }
        if let Err(error) = files.remove(&file) {
            tracing::warn!(disk = %self.label, %error, "a disk's file stays behind");
        }
    }

    pub(super) fn with_seeds<T>(&self, run: impl FnOnce(&mut Seeds<'_>) -> T) -> T {
        let now_unix_s = self.now_unix_s();
        let records = self.records.as_deref();
        run(&mut Seeds { random: &mut || (self.random)(), now_unix_s, records, left: self.left })
    }

    pub(super) fn now_unix_s(&self) -> u64 {
        (self.clock)() / 1000
    }
}

/// Closes the images of the disk `label` that nobody serves.
pub(super) fn close_images(spec: DiskSpec, label: &str) {
    if let Err(error) = images::close(spec, label) {
        tracing::warn!(%error, "a disk was not closed; it is as after a crash");
    }
}
