//! Records of images: what a killed process left is redone when an image is opened, and what
//! changes from then on is kept.

use suimon_image::{ImageError, ImageFault, Redo};
use suimon_ports::{DiskFile, FileName, FileUse, RedoRecords, StoreFault, StoreFiles};

use super::error::{DiskError, DiskFault};
use super::plan::DiskPlan;
use super::recorded::RecordedImage;
use super::{LeftRecords, Seeds};
use crate::disk::DiskLayer;

/// What a killed process left of an image.
pub(super) struct LeftRedo<'a> {
    records: &'a dyn RedoRecords,
    key: String,
    pub(super) redo: Redo,
}

impl<'a> LeftRedo<'a> {
    /// `None` if there is nothing to redo.
    pub(super) fn of(
        file: &dyn DiskFile,
        name: &FileName,
        seeds: &Seeds<'a>,
    ) -> Result<Option<Self>, DiskError> {
        let Some((records, key)) = place(file, seeds) else { return Ok(None) };
        if seeds.left == LeftRecords::Keep {
            return Ok(None);
        }
        let failed = |error| {
            let record = records.place(&key);
            DiskError::new(name, DiskFault::RecordUnusable { record, error })
        };
        if seeds.left == LeftRecords::Discard {
            return records.discard(&key).map(|()| None).map_err(failed);
        }
        let redo = records.load(&key).map_err(failed)?;
        Ok(redo.map(|redo| Self { records, key, redo }))
    }

    /// Everything is in the file. If the record stayed, it would be redone over what is written next.
    pub(super) fn finish(self, name: &FileName) -> Result<(), DiskError> {
        self.records.discard(&self.key).map_err(|error| {
            let record = self.records.place(&self.key);
            DiskError::new(name, DiskFault::RecordUnusable { record, error })
        })
    }

    /// The image could not be opened. The record stays, and the next try may succeed, unless the image
    /// does not fit the record.
    pub(super) fn failed(self, name: &FileName, error: ImageError) -> DiskError {
        if !matches!(error.fault, ImageFault::Changed { .. } | ImageFault::Overlap { .. }) {
            return DiskError::new(name, error).or_full();
        }
        let record = self.records.place(&self.key);
        DiskError::new(name, DiskFault::NotRedone { record, error })
    }
}

/// Keeps the changes of an image that was opened for writing from now on. Where that is not
/// possible, the reason is returned with the image.
pub(super) fn recorded(layer: DiskLayer, seeds: &Seeds<'_>) -> (DiskLayer, Option<std::io::Error>) {
    if layer.image.linear_offset().is_some() {
        return (layer, None);
    }
    let Some((records, key)) = place(layer.file.as_ref(), seeds) else { return (layer, None) };
    match records.begin(&key, layer.image.opened()) {
        Ok(record) => {
            let image = Box::new(RecordedImage::new(layer.image, record));
            (DiskLayer { image, file: layer.file }, None)
        }
        Err(error) => (layer, Some(error)),
    }
}

/// Removes what a killed process left of an image whose file is going to be removed.
///
/// # Errors
/// The file cannot be opened, or the record cannot be removed.
pub fn discard_left(
    files: &dyn StoreFiles,
    plan: &DiskPlan,
    seeds: &Seeds<'_>,
) -> Result<(), DiskError> {
    let (Some(name), true) = (&plan.file, plan.format.has_metadata()) else { return Ok(()) };
    if seeds.records.is_none() {
        return Ok(());
    }
    let file = match files.open(name, FileUse::Read, plan.unit()) {
        Err(error) if matches!(error.fault, StoreFault::Missing) => return Ok(()),
        opened => opened?,
    };
    let Some((records, key)) = place(file.as_ref(), seeds) else { return Ok(()) };
    records.discard(&key).map_err(|error| {
        let record = records.place(&key);
        DiskError::new(name, DiskFault::RecordUnusable { record, error })
    })
}

/// Returns true if a killed process left something to redo of an image.
pub(crate) fn has_left(
    file: &dyn DiskFile,
    name: &FileName,
    seeds: &Seeds<'_>,
) -> Result<bool, DiskError> {
    Ok(LeftRedo::of(file, name, seeds)?.is_some())
}

/// Where the record of a file is.
fn place<'a>(file: &dyn DiskFile, seeds: &Seeds<'a>) -> Option<(&'a dyn RedoRecords, String)> {
    Some((seeds.records?, file.facts().id?.to_string()))
}
