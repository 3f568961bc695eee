//! Texts about missing image files, and about images that are created.

use suimon_contract::{ApiError, ErrorCode};

use super::required::RequiredDisk;

impl RequiredDisk {
    /// Returns the description of the image that is created for the disk if its file is missing.
    pub(super) fn new_image_description(&self) -> String {
        let path = self.image_path();
        let path = path.display();
        match &self.config.parent {
            Some(parent) => format!(
                "the image file {path} as a child of {}, with the content of this parent",
                self.store.path.join(parent.as_str()).display()
            ),
            None => format!("the empty image file {path}"),
        }
    }
}

/// Returns the error that the image file of a disk is missing and is not created.
pub(super) fn missing_image_error(label: &str, required: &RequiredDisk) -> ApiError {
    let path = required.image_path();
    let (name, store) = (&required.config.name, &required.config.store);
    let text = format!(
        "the image file {} is missing, and is created only for a new disk. Mount the file system \
         of store {store}, or restore the file; the daemon then opens it. Instead, `suimon disk set \
         {name}` with `--create-image` creates {}",
        path.display(),
        required.new_image_description()
    );
    ApiError::new(ErrorCode::NotFound, text).with_resource(label).with_field("file")
}

/// Returns the error that the image file of a disk is missing and cannot be created, because its
/// size is unknown; `None` if the disk has a size or a parent.
pub(super) fn unknown_size_error(label: &str, required: &RequiredDisk) -> Option<ApiError> {
    let plan = required.plan();
    if plan.size_bytes.is_some() || plan.parent.is_some() {
        return None;
    }
    let text =
        format!("the store has no file {}; to create it, set size_bytes of the disk", plan.label());
    Some(ApiError::new(ErrorCode::NotFound, text).with_resource(label).with_field("size_bytes"))
}
