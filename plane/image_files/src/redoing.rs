//! Redo records of images: application of changes that a killed process left, and recording of
//! further changes.

use suimon_image::{ImageError, ImageFault, RedoChanges};
use suimon_ports::{DiskFile, FileLockMode, FileName, RedoRecords, StoreFault, StoreFiles};

use super::error::{DiskError, DiskFault};
use super::plan::DiskPlan;
use super::recorded_image::RecordedImage;
use super::{HostInputs, RemainingRecordPolicy};
use crate::layer_stack::DiskLayer;

/// Recorded metadata changes of an image that a killed process left.
pub(super) struct RemainingRedo<'a> {
    records: &'a dyn RedoRecords,
    key: String,
    pub(super) changes: RedoChanges,
}

impl<'a> RemainingRedo<'a> {
    /// Loads the changes; `None` if there are none.
    pub(super) fn load(
        file: &dyn DiskFile,
        name: &FileName,
        seeds: &HostInputs<'a>,
    ) -> Result<Option<Self>, DiskError> {
        let Some((records, key)) = location(file, seeds) else { return Ok(None) };
        if seeds.remaining_redo_records == RemainingRecordPolicy::Keep {
            return Ok(None);
        }
        let failed = |error| {
            let record = records.location(&key);
            DiskError::new(name, DiskFault::RedoRecordUnusable { record, error })
        };
        if seeds.remaining_redo_records == RemainingRecordPolicy::Discard {
            return records.discard(&key).map(|()| None).map_err(failed);
        }
        let redo = records.load(&key).map_err(failed)?;
        Ok(redo.map(|redo| Self { records, key, changes: redo }))
    }

    /// Discards the record after all its changes are in the file. If the record remained, its
    /// changes would be applied over later writes.
    pub(super) fn finish(self, name: &FileName) -> Result<(), DiskError> {
        self.records.discard(&self.key).map_err(|error| {
            let record = self.records.location(&self.key);
            DiskError::new(name, DiskFault::RedoRecordUnusable { record, error })
        })
    }

    /// Converts an error of opening the image with the recorded changes. The record remains, so
    /// that the next attempt may succeed, unless the record does not match the image.
    ///
    /// If a flush has failed, the record is discarded: payload of the changes may be lost.
    pub(super) fn into_error(
        self,
        file: &dyn DiskFile,
        name: &FileName,
        error: ImageError,
    ) -> DiskError {
        if let Some(error) = file.first_flush_error() {
            let _ = self.records.discard(&self.key);
            return DiskError::new(name, DiskFault::FlushFailed { error: error.to_owned() });
        }
        if !matches!(error.fault, ImageFault::ImageModified { .. } | ImageFault::Overlap { .. }) {
            return DiskError::new(name, error).normalize_store_full();
        }
        let record = self.records.location(&self.key);
        DiskError::new(name, DiskFault::RedoFailed { record, error })
    }
}

/// Starts to record changes of an image that was opened for writing. If that is not possible,
/// returns the reason; each write to newly allocated space then waits for a commit.
pub(super) fn start_recording(
    layer: DiskLayer,
    seeds: &HostInputs<'_>,
) -> (DiskLayer, Option<std::io::Error>) {
    if layer.image.linear_offset().is_some() {
        return (layer, None);
    }
    let DiskLayer { image, file } = layer;
    let record = location(file.as_ref(), seeds)
        .map(|(records, key)| records.create(&key, image.identity()))
        .transpose();
    let (image, error) = match record {
        Ok(Some(record)) => (RecordedImage::new(image, record), None),
        Ok(None) => (RecordedImage::without_record(image), None),
        Err(error) => (RecordedImage::without_record(image), Some(error)),
    };
    (DiskLayer { image: Box::new(image), file }, error)
}

/// Removes the redo record that a killed process left of an image. Called before the image file is
/// removed.
///
/// # Errors
/// The file cannot be opened, or the record cannot be removed.
pub fn discard_remaining_record(
    files: &dyn StoreFiles,
    plan: &DiskPlan,
    seeds: &HostInputs<'_>,
) -> Result<(), DiskError> {
    let (Some(name), true) = (&plan.file, plan.format.has_metadata()) else { return Ok(()) };
    if seeds.redo_records.is_none() {
        return Ok(());
    }
    let file = match files.open(name, FileLockMode::Read, plan.io_alignment()) {
        Err(error) if matches!(error.fault, StoreFault::Missing) => return Ok(()),
        opened => opened?,
    };
    let Some((records, key)) = location(file.as_ref(), seeds) else { return Ok(()) };
    records.discard(&key).map_err(|error| {
        let record = records.location(&key);
        DiskError::new(name, DiskFault::RedoRecordUnusable { record, error })
    })
}

/// Returns true if a killed process left recorded changes of an image.
pub(crate) fn has_remaining_record(
    file: &dyn DiskFile,
    name: &FileName,
    seeds: &HostInputs<'_>,
) -> Result<bool, DiskError> {
    Ok(RemainingRedo::load(file, name, seeds)?.is_some())
}

/// Returns the redo records of the host and the key of a file's record; `None` if the host has no
/// records or the file no identity.
fn location<'a>(
    file: &dyn DiskFile,
    seeds: &HostInputs<'a>,
) -> Option<(&'a dyn RedoRecords, String)> {
    Some((seeds.redo_records?, file.properties().id?.to_string()))
}
