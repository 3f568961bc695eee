//! Error of a disk whose image file is missing.

use suimon_contract::{ApiError, ErrorCode};

use super::required::RequiredDisk;

/// Returns the error that the image file of a disk is missing and is not created.
pub(super) fn missing_image(label: &str, wanted: &RequiredDisk) -> ApiError {
    let path = wanted.image_path();
    let (name, store) = (&wanted.config.name, &wanted.config.store);
    let text = format!(
        "the image file {} is missing, and is created only for a new disk. Mount the file system \
         of store {store}, or restore the file; the daemon then opens it. To give the disk a new, \
         empty image, use `suimon disk set {name}` with `--create-image`",
        path.display()
    );
    ApiError::new(ErrorCode::NotFound, text).about(label).field("file")
}
