//! Errors of a disk's files.

use suimon_image::ImageError;
use suimon_ports::{FileName, StoreFault, StoreFileError};
use thiserror::Error;

/// Reason why the files of a disk cannot be used.
#[derive(Debug, Error)]
pub enum DiskFault {
    /// A key of the disk's configuration has an invalid value.
    #[error("{field} is {value}, expected {allowed}")]
    InvalidPlan {
        /// Configuration key with the invalid value.
        field: &'static str,
        /// Invalid value, as text.
        value: String,
        /// Values that would be accepted.
        allowed: &'static str,
    },
    /// The disk's configuration contradicts the image.
    #[error(
        "{field} is {configured} in the configuration and {found} in the image; remove {field} from \
         the configuration, correct it, or convert the image"
    )]
    PlanMismatch {
        /// Configuration key with the contradicting value.
        field: &'static str,
        /// Value in the configuration.
        configured: String,
        /// Value in the image.
        found: String,
    },
    /// The parent was not found under any recorded or configured name.
    #[error("parent not found: {}", search(recorded_paths, searched_files))]
    ParentMissing {
        /// Paths of the parent that the image records; empty if the configuration names the parent.
        recorded_paths: Vec<String>,
        /// File names that were searched; empty if no recorded path leads to a file of the store.
        searched_files: Vec<FileName>,
    },
    /// The file under the parent's name is another disk than the one that the child was created
    /// for.
    #[error(
        "{field} identifies the parent as {expected}, but {parent} is {found}, which is \
         another disk; restore the file that existed when this disk was created"
    )]
    WrongParent {
        /// Field of the child's image that identifies the parent.
        field: &'static str,
        /// File that was found under the parent's name.
        parent: FileName,
        /// Identifier of the parent that the child records.
        expected: String,
        /// Identifier that the found file has.
        found: String,
    },
    /// The parent was changed after the creation of the child.
    #[error(
        "{field} records the parent's state as {expected}, but the state of {parent} is {found}; \
         {hint}"
    )]
    ParentChanged {
        /// Field of the child's image that records the parent's state.
        field: &'static str,
        /// File name of the parent.
        parent: FileName,
        /// State that the child records.
        expected: String,
        /// State that the parent has.
        found: String,
        /// Advice how to resolve the error.
        hint: String,
    },
    /// The chain of parents contains a file twice.
    #[error("{file} is its own ancestor, because a file in the chain was replaced; restore it")]
    ParentCycle {
        /// File that occurred twice in the chain.
        file: FileName,
    },
    /// The parent of the merge has other children, which would change with it.
    #[error(
        "the file is also the parent of {child}, which a merge would damage; merge or convert \
         that first"
    )]
    OtherChildren {
        /// File name of another child.
        child: FileName,
    },
    /// A file that may be another child of the merge's parent cannot be read.
    #[error(
        "it is not known whether {file} is another child of the file, which a merge would damage, \
         because it cannot be read ({error}); make it readable, or move it out of the store"
    )]
    ChildUnknown {
        /// Name of the file that cannot be read.
        file: FileName,
        /// Error on reading the file.
        #[source]
        error: Box<DiskError>,
    },
    /// The chain of layers would exceed the limit with a further layer.
    #[error(
        "the disk has {max} layers (its own file and its parents'), the most it can have; merge \
         it into its parent first (`suimon disk merge`), or convert it"
    )]
    LayerLimitReached {
        /// Maximum number of layers of a disk.
        max: usize,
    },
    /// The chain of layers exceeds the limit for opening.
    #[error(
        "the disk has more than {max} layers (its own file and its parents'); merge it into its \
         parent (`suimon disk merge`) until it has fewer"
    )]
    TooManyLayers {
        /// Maximum number of layers that are opened.
        max: usize,
    },
    /// Metadata changes that a killed daemon had recorded are not in the image and cannot be
    /// applied.
    #[error(
        "completed writes before the exit of the previous daemon are not in the image and cannot \
         be redone: {error}; to use the image without them, remove {record}"
    )]
    RedoFailed {
        /// File with the record of the changes.
        record: String,
        /// Error of the image when the changes were applied.
        #[source]
        error: ImageError,
    },
    /// The redo record of metadata changes of a killed daemon cannot be read.
    #[error(
        "the redo record of completed writes before the exit of the previous daemon cannot be \
         read: {error}; to use the image without them, remove {record}"
    )]
    RedoRecordUnusable {
        /// File with the record of the changes.
        record: String,
        /// Error when the record was read.
        #[source]
        error: std::io::Error,
    },
    /// The store has less free space than a fixed disk needs.
    #[error(
        "the disk needs {required_bytes} bytes and the store has {free_bytes} free; free space on it, choose \
         another store, or create a dynamic disk"
    )]
    NoSpace {
        /// Size of the disk in bytes.
        required_bytes: u64,
        /// Free bytes of the store.
        free_bytes: u64,
    },
    /// A job has copied all data but could not close the image.
    #[error("all data was copied, but the image could not be closed: {error}; start the job again")]
    CloseFailed {
        /// Error on closing the image.
        #[source]
        error: Box<DiskError>,
    },
    /// A backup of metadata does not match the current image.
    #[error("the backup {backup} cannot be restored: {reason}")]
    BackupMismatch {
        /// Name of the file with the backup.
        backup: String,
        /// Difference between backup and image, with advice for the operator.
        reason: String,
    },
    /// A repair or relink of the image failed and could not be reverted.
    #[error(
        "a change of the image's metadata failed and is incomplete: {error}; `suimon image \
         repair` reverts the change and makes it again, `suimon image repair --undo {backup}` only \
         reverts it"
    )]
    MetadataChangeFailed {
        /// File with the metadata before the change.
        backup: String,
        /// Error that made the change fail.
        #[source]
        error: Box<DiskError>,
    },
    /// An earlier repair or relink of the image is incomplete.
    #[error(
        "a change of the image's metadata is incomplete; `suimon image repair` reverts the \
         change and makes it again, `suimon image repair --undo {backup}` only reverts it"
    )]
    MetadataChangeIncomplete {
        /// File with the metadata before the change.
        backup: String,
    },
    /// A flush has failed, so the image was not written to any more.
    #[error(
        "a flush has failed ({error}): writes since the last successful flush may be lost; repair \
         the store, reopen the disk (`suimon disk reopen`), and check the file systems of its guest"
    )]
    FlushFailed {
        /// Error with which the flush failed.
        error: String,
    },
    /// The image is damaged or cannot be accessed.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A file cannot be used.
    #[error(transparent)]
    Store(#[from] StoreFault),
}

/// Describes the recorded paths of a parent and the file names searched, for the error message.
fn search(recorded: &[String], searched: &[FileName]) -> String {
    let searched: Vec<&str> = searched.iter().map(FileName::as_str).collect();
    let searched = if searched.is_empty() {
        "the store has no such path".to_owned()
    } else {
        format!("searched {}", searched.join(", "))
    };
    if recorded.is_empty() {
        return format!("{searched}; move the parent there, or name another file");
    }
    let recorded = recorded.join(", ");
    format!(
        "the image records {recorded}; {searched}; move the parent there, or record its new path \
         with `suimon image relink`"
    )
}

/// Fault of a disk, with the name of the file.
#[derive(Debug, Error)]
#[error("{file}: {fault}")]
pub struct DiskError {
    /// Name of the file in the store.
    pub file: String,
    /// Fault that was found in the file.
    #[source]
    pub fault: Box<DiskFault>,
}

impl DiskError {
    /// Creates an error of a file.
    #[must_use]
    pub fn new(file: impl Into<String>, fault: impl Into<DiskFault>) -> Self {
        Self { file: file.into(), fault: Box::new(fault.into()) }
    }

    /// Returns true if a file does not exist: for an error of opening a disk, its own file, which
    /// may then be created.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(*self.fault, DiskFault::Store(StoreFault::Missing))
    }

    /// Returns true if the file could not be opened or read because of an error of the store or a
    /// lock. False if it is missing, not a regular file, or not an intact image.
    #[must_use]
    pub fn is_unreadable(&self) -> bool {
        match self.fault.as_ref() {
            DiskFault::Store(fault) => {
                matches!(fault, StoreFault::System(_) | StoreFault::InUse { .. })
            }
            DiskFault::Image(error) => matches!(
                &error.fault,
                suimon_image::ImageFault::File(suimon_image::FileError::System(_))
            ),
            _ => false,
        }
    }

    /// Returns true if the file is locked by another user.
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(*self.fault, DiskFault::Store(StoreFault::InUse { .. }))
    }

    /// Returns true if the store is full.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self.fault.as_ref() {
            DiskFault::Store(StoreFault::Full) => true,
            DiskFault::Image(error) => match &error.fault {
                suimon_image::ImageFault::File(error) => is_full(error),
                _ => false,
            },
            _ => false,
        }
    }

    /// Converts an error of closing the image at the end of a job. An error that states a full
    /// store becomes [`DiskFault::CloseFailed`], because a repetition of the step cannot succeed.
    pub(crate) fn into_close_failed(self) -> Self {
        if !self.is_full() {
            return self;
        }
        Self::new(self.file.clone(), DiskFault::CloseFailed { error: Box::new(self) })
    }

    /// Converts any error that states a full store to [`StoreFault::Full`].
    pub(crate) fn normalize_store_full(self) -> Self {
        if self.is_full() { Self::new(self.file, StoreFault::Full) } else { self }
    }
}

/// Returns true if the error states that the file system has no space or the quota is exceeded.
fn is_full(error: &suimon_image::FileError) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    match error {
        suimon_image::FileError::System(error) => {
            matches!(error.kind(), StorageFull | QuotaExceeded)
        }
        suimon_image::FileError::BeyondEnd { .. } => false,
    }
}

impl From<StoreFileError> for DiskError {
    fn from(error: StoreFileError) -> Self {
        Self::new(error.file, error.fault)
    }
}
