//! Access to an image whose metadata will be changed.

use suimon_contract::ImageChange;
use suimon_image::ByteRange;
use suimon_ports::{DiskFile, FileTime};

use crate::inspect::ImageTarget;
use crate::inspect::backup::image_error_from_io;
use crate::{DiskError, DiskFault, DiskFormat};

/// Returns the format of the target. Fails unless it is a format with metadata.
pub(super) fn format_for_change(target: ImageTarget<'_>) -> Result<DiskFormat, DiskError> {
    let format = target.write_format()?;
    if format.has_metadata() {
        return Ok(format);
    }
    let allowed = "an image of format vhd or vhdx; others have no metadata";
    let fault =
        DiskFault::InvalidPlan { field: "format", value: format.as_str().to_owned(), allowed };
    Err(DiskError::new(target.show(target.name), fault))
}

/// Sets the modification time of a file through the open file. Called with the original time before
/// a change, to verify that this is possible, and after the change, to preserve the time.
pub(super) fn set_modification_time(
    target: ImageTarget<'_>,
    file: &dyn DiskFile,
    modified: FileTime,
) -> Result<(), DiskError> {
    file.set_modified(modified).map_err(|error| {
        let error = if error.kind() == std::io::ErrorKind::PermissionDenied {
            let text = "the image's modification time cannot be preserved; run this as the file's \
                        owner or as root";
            std::io::Error::new(error.kind(), text)
        } else {
            error
        };
        DiskError::new(target.show(target.name), image_error_from_io(error))
    })
}

pub(super) fn image_change(range: ByteRange) -> ImageChange {
    ImageChange { offset: range.offset(), bytes: range.len() }
}
