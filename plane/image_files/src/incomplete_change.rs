//! Images with an incomplete repair or relink ([`inspect`](crate::inspect)).

use suimon_ports::{FileName, StoreFiles};

use super::error::{DiskError, DiskFault};

/// Suffix of the names of backups of incomplete changes.
const ENDING: &str = ".backup-unfinished";

/// Returns the name of the backup of an incomplete change of an image; `None` if the image's name
/// is too long, so that no change can have begun.
pub(crate) fn incomplete_change_backup_name(image: &FileName) -> Option<FileName> {
    image.with_file_name(&format!("{}{ENDING}", image.file_name())).ok()
}

/// Returns the name of the backup of an incomplete change of an image; `None` if there is none.
pub(crate) fn find_incomplete_change_backup(
    files: &dyn StoreFiles,
    image: &FileName,
) -> Result<Option<FileName>, DiskError> {
    let Some(backup) = incomplete_change_backup_name(image) else { return Ok(None) };
    match files.status(&backup) {
        Ok(_) => Ok(Some(backup)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Fails if a change of an image is incomplete. Such an image is not opened for writing: its
/// metadata may be partly old and partly new, and the change could not be reverted after other
/// writes.
pub(crate) fn check_no_incomplete_change(
    files: &dyn StoreFiles,
    image: &FileName,
) -> Result<(), DiskError> {
    match find_incomplete_change_backup(files, image)? {
        None => Ok(()),
        Some(backup) => {
            let backup = backup.to_string();
            Err(DiskError::new(image, DiskFault::MetadataChangeIncomplete { backup }))
        }
    }
}
