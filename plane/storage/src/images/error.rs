//! What is wrong with a disk's files.

use suimon_image::ImageError;
use suimon_ports::{FileName, StoreFault, StoreFileError};
use thiserror::Error;

/// What kind of thing is wrong with a disk.
#[derive(Debug, Error)]
pub enum DiskFault {
    /// The plan asks for something that is not possible.
    #[error("{field} is {value}: allowed is {allowed}")]
    Plan {
        /// Which part of the plan.
        field: &'static str,
        /// What it says.
        value: String,
        /// What would be accepted.
        allowed: &'static str,
    },
    /// The plan says something else than the image.
    #[error(
        "{field} is {planned} in the configuration and {found} in the image: remove {field} from the configuration, correct it, or convert the image"
    )]
    Differs {
        /// Which part of the plan.
        field: &'static str,
        /// What the plan says.
        planned: String,
        /// What the image says.
        found: String,
    },
    /// No file was found where the parent is recorded or named.
    #[error("its parent is missing: {}", search(recorded, tried))]
    ParentMissing {
        /// Paths of the parent that the image records; empty if the configuration names it.
        recorded: Vec<String>,
        /// Names that were searched; empty if no recorded path leads to a file of the store.
        tried: Vec<FileName>,
    },
    /// The parent is another disk than the child was made over.
    #[error(
        "{field} names its parent {expected}, but {parent} is {found}: it is another disk, find the right one"
    )]
    ParentIsAnother {
        /// The field of the child.
        field: &'static str,
        /// The file that was found.
        parent: FileName,
        /// What the child expects.
        expected: String,
        /// What the parent says of itself.
        found: String,
    },
    /// The parent was changed after the child was made.
    #[error(
        "{field} says that its parent is as of {expected}, but {parent} is as of {found}: {hint}"
    )]
    ParentChanged {
        /// The field of the child.
        field: &'static str,
        /// The parent's file.
        parent: FileName,
        /// What the child expects.
        expected: String,
        /// What was found.
        found: String,
        /// What to do.
        hint: String,
    },
    /// A file is its own ancestor.
    #[error("{file} is its own ancestor: one of the files in between was exchanged, restore it")]
    ParentCycle {
        /// The file that came again.
        file: FileName,
    },
    /// Other disks would change with a parent that a child is merged into.
    #[error(
        "it is the parent of {child} too, which would change with it: merge or convert that first"
    )]
    OtherChildren {
        /// Another child's file.
        child: FileName,
    },
    /// There would be too many layers.
    #[error(
        "it has {max} files, its own and its parents', and may have no more: merge it into its parent first (`suimon disk merge`), or convert it"
    )]
    NoLayerMore {
        /// How many a disk may have.
        max: usize,
    },
    /// There are too many layers.
    #[error(
        "it has more than {max} files, its own and its parents': merge it into its parent (`suimon disk merge`) until it has no more"
    )]
    TooManyLayers {
        /// How many are opened.
        max: usize,
    },
    /// What a killed daemon had answered is not in the image, and cannot be put there.
    #[error(
        "writes that were answered before the daemon was killed are not in the image: {error}; to use the image without them, remove {record}"
    )]
    NotRedone {
        /// The file that has them.
        record: String,
        /// What the image says.
        #[source]
        error: ImageError,
    },
    /// What a killed daemon had answered cannot be read.
    #[error(
        "the record of writes that were answered before the daemon was killed cannot be used: {error}; to use the image without them, remove {record}"
    )]
    RecordUnusable {
        /// The record.
        record: String,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// The store has less space than a fixed disk needs.
    #[error(
        "it needs {needed} bytes and the store has {free}: free space in it, choose another store, or make a dynamic disk"
    )]
    NoRoom {
        /// Bytes of the disk.
        needed: u64,
        /// Free bytes of the store.
        free: u64,
    },
    /// A job that had copied everything could not end.
    #[error(
        "everything was copied, but the image could not be closed: {error}; begin the job again"
    )]
    NotEnded {
        /// Why.
        #[source]
        error: Box<DiskError>,
    },
    /// A backup of metadata is not of the image as it is.
    #[error("{backup} cannot be written back: {why}")]
    BackupRefused {
        /// The file that has it.
        backup: String,
        /// What does not fit, and what to do.
        why: String,
    },
    /// A change of metadata failed, and could not be taken back.
    #[error(
        "a change of its metadata failed and is unfinished: {error}; `suimon image repair` takes it \
         back and begins anew, `suimon image repair --undo {backup}` only takes it back"
    )]
    ChangeFailed {
        /// The file that has the former metadata.
        backup: String,
        /// Why.
        #[source]
        error: Box<DiskError>,
    },
    /// A change of metadata was begun and has not ended.
    #[error(
        "a change of its metadata is unfinished: run `suimon image repair`, which takes it back and \
         begins anew, or `suimon image repair --undo {backup}`, which only takes it back"
    )]
    ChangeUnfinished {
        /// The file that has the former metadata.
        backup: String,
    },
    /// The image is broken.
    #[error(transparent)]
    Image(#[from] ImageError),
    /// A file could not be used.
    #[error(transparent)]
    Store(#[from] StoreFault),
}

/// Describes where a parent is recorded and where it was searched.
fn search(recorded: &[String], tried: &[FileName]) -> String {
    let tried: Vec<&str> = tried.iter().map(FileName::as_str).collect();
    let searched = if tried.is_empty() {
        "no such path is in this store".to_owned()
    } else {
        format!("searched {}", tried.join(", "))
    };
    if recorded.is_empty() {
        return format!("{searched}; put it there, or name another file");
    }
    let recorded = recorded.join(", ");
    format!(
        "the image records {recorded}; {searched}; put it there, or record its new place with \
         `suimon image relink`"
    )
}

/// What is wrong with a disk, and with which of its files.
#[derive(Debug, Error)]
#[error("{file}: {fault}")]
pub struct DiskError {
    /// The file's name in the store.
    pub file: String,
    /// What is wrong.
    #[source]
    pub fault: Box<DiskFault>,
}

impl DiskError {
    /// Something is wrong with a file.
    #[must_use]
    pub fn new(file: impl Into<String>, fault: impl Into<DiskFault>) -> Self {
        Self { file: file.into(), fault: Box::new(fault.into()) }
    }

    /// Whether the disk's own file is not there, so that it may be made.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(*self.fault, DiskFault::Store(StoreFault::Missing))
    }

    /// Whether the store is full.
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

    /// The end of a job failed. It cannot be repeated, even if the store is full.
    pub(crate) fn not_ended(self) -> Self {
        if !self.is_full() {
            return self;
        }
        Self::new(self.file.clone(), DiskFault::NotEnded { error: Box::new(self) })
    }

    /// A full store is told as such, wherever it was noticed.
    pub(crate) fn or_full(self) -> Self {
        if self.is_full() { Self::new(self.file, StoreFault::Full) } else { self }
    }
}

/// Whether an error says that the file system has no room.
fn is_full(error: &suimon_image::FileError) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    match error {
        suimon_image::FileError::System(error) => {
            matches!(error.kind(), StorageFull | QuotaExceeded)
        }
        suimon_image::FileError::End { .. } => false,
    }
}

impl From<StoreFileError> for DiskError {
    fn from(error: StoreFileError) -> Self {
        Self::new(error.file, error.fault)
    }
}
