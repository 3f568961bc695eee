//! Requests about image files of a store.

use std::sync::Arc;
use std::time::Instant;

use suimon_contract::{
    ApiError, DiskFormat, ErrorCode, EventKind, ImageChanges, ImageCheck, ImageInfo, ImageRequest,
    Name, ResourceKind, StoreFile,
};
use suimon_image_files::inspect;
use suimon_image_files::inspect::ImageTarget;
use suimon_image_files::{DiskError, HostInputs, RemainingRecordPolicy};
use suimon_ports::{FileName, StoreFiles};

use crate::disks::{
    LOCK_RELEASE_TIMEOUT, disk_error, disk_format, file_name, retry_until_unlocked,
    store_file_error,
};
use crate::errors::not_found;
use crate::events::EventDraft;
use crate::shared::Shared;

/// Image file that a request is about. The file need not exist.
struct TargetImage {
    label: String,
    files: Arc<dyn StoreFiles>,
    name: FileName,
    format: Option<suimon_image_files::DiskFormat>,
}

impl TargetImage {
    fn target(&self) -> ImageTarget<'_> {
        ImageTarget {
            files: &self.files,
            name: &self.name,
            format: self.format,
            display_prefix: "",
        }
    }

    fn to_api_error(&self, error: &DiskError) -> ApiError {
        disk_error(&self.label, error)
    }
}

impl Shared {
    /// Returns a description of an image.
    ///
    /// # Errors
    /// Fails if there is no such store or file, the image is in use, or it cannot be opened.
    pub(crate) fn image_info(
        &self,
        store: &Name,
        request: &ImageRequest,
    ) -> Result<ImageInfo, ApiError> {
        self.with_image(store, request, |image, seeds| {
            inspect::info(image.target(), seeds).map_err(|error| image.to_api_error(&error))
        })
    }

    /// Checks the metadata of an image.
    ///
    /// # Errors
    /// Fails if there is no such store or file, or the image is in use.
    pub(crate) fn check_image(
        &self,
        store: &Name,
        request: &ImageRequest,
    ) -> Result<ImageCheck, ApiError> {
        self.with_image(store, request, |image, _| {
            inspect::check(image.target()).map_err(|error| image.to_api_error(&error))
        })
    }

    /// Repairs the metadata of an image, or undoes a repair from its backup. Without `dry_run`,
    /// emits an event if the image was changed.
    ///
    /// # Errors
    /// Fails if there is no such store or file, or the image is in use, cannot be repaired, or
    /// cannot be written.
    pub(crate) fn repair_image(
        &self,
        store: &Name,
        request: &ImageRequest,
    ) -> Result<ImageChanges, ApiError> {
        let undo = request.undo_backup.as_ref().map(named).transpose()?;
        let changes = self.with_image(store, request, |image, seeds| {
            let (target, dry_run) = (image.target(), request.dry_run);
            let result =
                inspect::apply_remaining_redo(target, dry_run, seeds).and_then(|()| match &undo {
                    Some(backup) => inspect::undo(target, backup, dry_run),
                    None => inspect::repair(target, dry_run, seeds),
                });
            result.map_err(|error| image.to_api_error(&error))
        })?;
        self.report_change(EventKind::ImageRepaired, store, &changes);
        Ok(changes)
    }

    /// Records the location of its parent in an image.
    ///
    /// # Errors
    /// Fails if there is no such store or file, the image is in use, or it is not a child of that
    /// parent.
    pub(crate) fn set_image_parent(
        &self,
        store: &Name,
        request: &ImageRequest,
    ) -> Result<ImageChanges, ApiError> {
        let missing = || {
            let text = "missing; name the parent's file, relative to the store's path";
            ApiError::new(ErrorCode::MissingKey, text).with_field("parent")
        };
        let parent = named(request.parent.as_ref().ok_or_else(missing)?)?;
        let changes = self.with_image(store, request, |image, seeds| {
            let (target, dry_run) = (image.target(), request.dry_run);
            inspect::apply_remaining_redo(target, dry_run, seeds)
                .and_then(|()| inspect::set_parent(target, &parent, dry_run, seeds))
                .map_err(|error| image.to_api_error(&error))
        })?;
        self.disks.clear_parent_cache();
        self.report_change(EventKind::ImageRelinked, store, &changes);
        Ok(changes)
    }

    fn with_image<T>(
        &self,
        store: &Name,
        request: &ImageRequest,
        run: impl Fn(&TargetImage, &mut HostInputs<'_>) -> Result<T, ApiError>,
    ) -> Result<T, ApiError> {
        let desired = self.desired();
        let store_config = desired.config.stores.iter().find(|config| config.name == *store);
        let path = &store_config.ok_or_else(|| not_found(ResourceKind::Store, store))?.path;
        let label = format!("store/{store}");
        if request.format == Some(DiskFormat::PassThrough) {
            let text = "only raw, vhd and vhdx are formats of files";
            return Err(ApiError::new(ErrorCode::InvalidValue, text)
                .with_resource(label)
                .with_field("format"));
        }
        let about_image = |error: ApiError| error.with_resource(&label);
        self.disks.check_store_responds(path).map_err(about_image)?;
        let _running = self.image_requests.begin(path).map_err(about_image)?;
        let files = self.disks.store_files(path);
        let files = files.map_err(|error| store_file_error(&label, &error))?;
        let format = request.format.map(disk_format);
        let image = TargetImage { label, files, name: named(&request.file)?, format };
        let parts = &self.disks.dependencies;
        let attempt = || {
            self.disks.check_not_migrating(path, &image.name)?;
            run(
                &image,
                &mut HostInputs {
                    random: &mut || (parts.random)(),
                    now_unix_s: (self.clock)() / 1000,
                    redo_records: parts.redo_records.as_deref(),
                    remaining_redo_records: RemainingRecordPolicy::Redo,
                },
            )
        };
        // The retries of a failed disk lock its images briefly.
        let is_busy = |error: &ApiError| error.code == ErrorCode::DeviceBusy;
        retry_until_unlocked(Instant::now() + LOCK_RELEASE_TIMEOUT, is_busy, attempt)
    }

    fn report_change(&self, kind: EventKind, store: &Name, changes: &ImageChanges) {
        if changes.dry_run || changes.actions.is_empty() {
            return;
        }
        let mut text = format!("{}: {}.", changes.file, changes.actions.join(", "));
        if let Some(backup) = &changes.backup {
            text = format!("{text} The former metadata was saved to {backup}.");
        }
        let mut draft = EventDraft::new(kind, format!("store/{store}"), text);
        draft = draft.with("file", &changes.file);
        if let Some(backup) = &changes.backup {
            draft = draft.with("backup", backup);
        }
        self.events.append(vec![draft]);
    }
}

fn named(file: &StoreFile) -> Result<FileName, ApiError> {
    file_name(file).ok_or_else(|| {
        let text = format!("`{file}` names no file; write a path like vms/web.vhdx");
        ApiError::new(ErrorCode::InvalidValue, text)
    })
}
