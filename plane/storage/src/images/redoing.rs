//! Records of images: what a killed process left is redone when an image is opened, and what
//! changes from then on is kept.

use suimon_image::Redo;
use suimon_ports::{DiskFile, FileName, RedoRecords};

use super::Seeds;
use super::error::{DiskError, DiskFault};
use super::recorded::RecordedImage;
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
        let failed = |error| {
            let record = records.place(&key);
            DiskError::new(name, DiskFault::RecordUnusable { record, error })
        };
        let redo = records.load(&key).map_err(failed)?;
        Ok(redo.map(|redo| Self { records, key, redo }))
    }

    /// Everything is in the file.
    pub(super) fn finish(self) {
        // If it stays, it is redone again by the same identity, or replaced by the next record.
        let _ = self.records.discard(&self.key);
    }

    /// It could not be redone. The image and the record are as before.
    pub(super) fn failed(self, name: &FileName, error: suimon_image::ImageError) -> DiskError {
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

/// Where the record of a file is.
fn place<'a>(file: &dyn DiskFile, seeds: &Seeds<'a>) -> Option<(&'a dyn RedoRecords, String)> {
    Some((seeds.records?, file.facts().id?.to_string()))
}
