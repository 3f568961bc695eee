//! Images with an incomplete repair or relink ([`inspect`](crate::inspect)).

use suimon_ports::{FileName, StoreFiles};

use super::error::{DiskError, DiskFault};

/// Suffix of the names of backups of incomplete changes.
const ENDING: &str = ".backup-unfinished";

/// Returns the name of the backup of an incomplete change of an image; `None` if the image's name
/// is too long, so that no change can have begun.
pub(crate) fn unfinished_name(image: &FileName) -> Option<FileName> {
    image.with_file_name(&format!("{}{ENDING}", image.file_name())).ok()
}

/// Returns the name of the backup of an incomplete change of an image; `None` if there is none.
pub(crate) fn unfinished_backup(
    files: &dyn StoreFiles,
    image: &FileName,
) -> Result<Option<FileName>, DiskError> {
    let Some(backup) = unfinished_name(image) else { return Ok(None) };
    match files.status(&backup) {
        Ok(_) => Ok(Some(backup)),
        Err(error) if error.is_missing() => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Fails if a change of an image is incomplete. Such an image is not opened for writing: its
/// metadata may be partly old and partly new, and the change could not be reverted after other
/// writes.
pub(crate) fn refuse_unfinished(files: &dyn StoreFiles, image: &FileName) -> Result<(), DiskError> {
    match unfinished_backup(files, image)? {
        None => Ok(()),
        Some(backup) => {
            let backup = backup.to_string();
            Err(DiskError::new(image, DiskFault::ChangeUnfinished { backup }))
        }
    }
}
