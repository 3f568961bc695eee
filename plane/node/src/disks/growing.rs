//! Extends disks to the configured size. Disks are never shrunk.

mod control;

use super::required::RequiredDisk;

/// Returns the size to which a disk of `size` bytes is to be extended; `None` if it is large enough
/// or a block device.
pub(super) fn required_size(required: &RequiredDisk, size: u64) -> Option<u64> {
    let required_size = required.config.size_bytes?.bytes();
    let has_file = required.config.effective_file().is_some();
    (has_file && required_size > size).then_some(required_size)
}
