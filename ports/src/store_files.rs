//! The files of a store.

use std::io;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use crate::{DiskFile, FileName};

/// Files that [`StoreFiles::names`] tells at most.
pub const STORE_NAMES_MAX: usize = 65536;

/// What an image's file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileUse {
    /// Reading. Others may read meanwhile, and nobody may write.
    Read,
    /// Reading and writing. Nobody else may use it meanwhile.
    Write,
}

/// What a file is like now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Bytes that can be read.
    pub len: u64,
    /// Bytes that it takes of the file system: fewer if it has holes.
    pub allocated_bytes: u64,
    /// When it was last changed: seconds since 1970-01-01 UTC, 0 if it was before.
    pub modified_unix_s: u64,
}

/// How much a store has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSpace {
    /// Bytes of the file system, or of the block device.
    pub total_bytes: u64,
    /// Bytes that can still be taken; 0 for a block device.
    pub free_bytes: u64,
}

/// What is wrong with a file of a store.
#[derive(Debug, Error)]
pub enum StoreFault {
    /// There is no such file.
    #[error("there is no such file")]
    Missing,
    /// There is one already.
    #[error("there is such a file already: choose another name, or remove it")]
    Exists,
    /// Somebody has it open in a way that does not go with what was asked for.
    #[error("somebody else uses it, here or in another program (QEMU's locks): {holder}")]
    InUse {
        /// What the lock says.
        holder: String,
    },
    /// It is a directory, a FIFO, a device or a socket.
    #[error("it is {found}, not a regular file: put the image there, or name another")]
    NotRegular {
        /// What it is.
        found: &'static str,
    },
    /// A part of its name is a symbolic link, or leads out of the store.
    #[error("its name leads over a symbolic link or out of the store: name the file itself")]
    Link,
    /// The store is a block device, or is not.
    #[error("the store is {found}: {hint}")]
    WrongStore {
        /// What it is.
        found: &'static str,
        /// What to do.
        hint: &'static str,
    },
    /// The file system has no room.
    #[error("the store is full: free space in it, or choose another store")]
    Full,
    /// The file system cannot do what was asked for.
    #[error("the store's file system cannot {what}: {hint}")]
    Unsupported {
        /// What it cannot do.
        what: &'static str,
        /// What to do instead.
        hint: &'static str,
    },
    /// The system said no.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// What is wrong with a file of a store, and which.
#[derive(Debug, Error)]
#[error("{file}: {fault}")]
pub struct StoreFileError {
    /// The file's name; the store's path if it is about the store.
    pub file: String,
    /// What is wrong.
    #[source]
    pub fault: StoreFault,
}

impl StoreFileError {
    /// Something is wrong with a file.
    #[must_use]
    pub fn new(file: impl Into<String>, fault: impl Into<StoreFault>) -> Self {
        Self { file: file.into(), fault: fault.into() }
    }

    /// Whether it says that there is no such file.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        matches!(self.fault, StoreFault::Missing)
    }
}

/// The files of a store: a directory with all that is in it, or one block device. Calls
/// wait until they are done.
///
/// Names are confined to the directory: no part of one is followed if it is a symbolic
/// link, and only regular files are opened. What an image says of its parent can be
/// opened here without harm.
///
/// An opened file is locked until it is dropped. That keeps apart whoever asks for such
/// locks: daemons, QEMU and its tools. It does not hold off programs that do not.
pub trait StoreFiles: Send + Sync {
    /// Opens a file. `unit`: all I/O will be aligned to so many bytes, a power of two.
    ///
    /// # Errors
    /// It is missing, no regular file, behind a link, in use, or the system said no.
    fn open(
        &self,
        name: &FileName,
        used: FileUse,
        unit: u32,
    ) -> Result<Arc<dyn DiskFile>, StoreFileError>;

    /// Makes an empty file and opens it for writing. Directories on the way must be there.
    /// After a crash it may be there or not.
    ///
    /// # Errors
    /// There is one of that name, or the system said no.
    fn create(&self, name: &FileName, unit: u32) -> Result<Arc<dyn DiskFile>, StoreFileError>;

    /// Opens the store, which is a block device.
    ///
    /// # Errors
    /// It is a directory, in use, or the system said no.
    fn open_device(&self, used: FileUse, unit: u32) -> Result<Arc<dyn DiskFile>, StoreFileError>;

    /// Sets space aside for a file's bytes up to its length. What is in it stays.
    ///
    /// # Errors
    /// There is not as much, or the file system cannot do it.
    fn reserve(&self, name: &FileName) -> Result<(), StoreFileError>;

    /// What a file is like.
    ///
    /// # Errors
    /// It is missing, no regular file, behind a link, or the system said no.
    fn status(&self, name: &FileName) -> Result<FileStatus, StoreFileError>;

    /// Sets when a file was last changed, durably: for what was written without changing
    /// what the file is to those who look at its time.
    ///
    /// # Errors
    /// It is missing, no regular file, behind a link, or the system said no.
    fn set_modified(&self, name: &FileName, unix_s: u64) -> Result<(), StoreFileError>;

    /// Gives a file another name that no file has. Whoever has it open keeps it. It is
    /// durable when this returns; a crash leaves it with one of the two names.
    ///
    /// # Errors
    /// It is missing, there is one of the new name, or the system said no.
    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), StoreFileError>;

    /// Puts a file in the place of another, at once and durably: a crash leaves the old or
    /// the new one under the name `to`. Whoever has the old one open keeps it.
    ///
    /// # Errors
    /// It is missing, or the system said no.
    fn replace(&self, from: &FileName, to: &FileName) -> Result<(), StoreFileError>;

    /// Removes a file, durably.
    ///
    /// # Errors
    /// It is missing, or the system said no.
    fn remove(&self, name: &FileName) -> Result<(), StoreFileError>;

    /// Names of regular files whose last part ends with `ending`, in order, at most
    /// [`STORE_NAMES_MAX`]; of directories, eight levels deep. Names that are not UTF-8 or
    /// have control characters are left out. A block device has none.
    ///
    /// # Errors
    /// The system said no.
    fn names(&self, ending: &str) -> Result<Vec<FileName>, StoreFileError>;

    /// How much the store has.
    ///
    /// # Errors
    /// The system said no.
    fn space(&self) -> Result<StoreSpace, StoreFileError>;
}

/// Opens stores.
pub trait StoreSource: Send + Sync {
    /// The store at a path: a directory or a block device.
    ///
    /// # Errors
    /// There is none, or the system said no.
    fn open(&self, path: &Path) -> Result<Arc<dyn StoreFiles>, StoreFileError>;
}
