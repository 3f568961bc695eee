//! Files of a store.

use std::io;
use std::path::Path;
use std::sync::Arc;

use thiserror::Error;

use crate::{DiskFile, FileName};

/// Maximum number of names that [`StoreFiles::names_with`] returns.
pub const STORE_NAMES_MAX: usize = 65536;

/// Access mode of an image file; enforced by locks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLockMode {
    /// Shared read access; excludes writers.
    Read,
    /// Exclusive read and write access.
    Write,
}

/// Current status of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// Length of the file in bytes.
    pub len: u64,
    /// Bytes allocated in the file system; less than the length for sparse files.
    pub allocated_bytes: u64,
    /// Modification time in seconds since 1970-01-01 UTC; 0 if earlier.
    pub modified_unix_s: u64,
}

/// Total and free space of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreSpace {
    /// Size of the block device, or of the file system without the space that is reserved for
    /// privileged processes, in bytes.
    pub total_bytes: u64,
    /// Free space in bytes; 0 for a block device.
    pub free_bytes: u64,
}

/// Identity of an open store. Two stores with the same identity are the same directory or block
/// device while one of them is open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreIdentity {
    /// Number of the file system.
    pub device: u64,
    /// Number of the directory or device node in the file system.
    pub inode: u64,
}

/// Failure of an operation on a store's file.
#[derive(Debug, Error)]
pub enum StoreFault {
    /// The file does not exist.
    #[error("the file does not exist")]
    Missing,
    /// A file of this name exists.
    #[error("the file exists already; choose another name, or remove it")]
    Exists,
    /// The file is locked in a conflicting mode, by this daemon or another program.
    #[error("the file is in use, by Suimon or by another program (QEMU's locks): {lock_holder}")]
    InUse {
        /// Holder of the lock, as far as known.
        lock_holder: String,
    },
    /// The name refers to a directory, FIFO, device or socket.
    #[error(
        "the file is {found_type} instead of a regular file; put the image there, or name another \
         file"
    )]
    NotRegular {
        /// Type of the file, such as "a directory".
        found_type: &'static str,
    },
    /// A component of the name is a symbolic link, or leads out of the store.
    #[error("the name contains a symbolic link or leads out of the store; name the file itself")]
    SymbolicLink,
    /// The operation needs a block device and the store is a directory, or the reverse.
    #[error("the path of the store is {found_type}; {hint}")]
    WrongStoreType {
        /// Type of the store, such as "a directory".
        found_type: &'static str,
        /// Remedy for the operator, as text.
        hint: &'static str,
    },
    /// No space left in the file system.
    #[error("the store is full; free space in it, or choose another store")]
    Full,
    /// The file system does not support the operation.
    #[error("the file system of the store cannot {operation}; {hint}")]
    Unsupported {
        /// Operation that failed, completing "cannot …".
        operation: &'static str,
        /// Alternative for the operator, as text.
        hint: &'static str,
    },
    /// A system call on the file failed.
    #[error("{}{}", .0, remedy(.0))]
    System(io::Error),
}

impl From<io::Error> for StoreFault {
    fn from(error: io::Error) -> Self {
        Self::System(error)
    }
}

/// Returns what the operator does if the kernel denies access, in parentheses. Errors with a text
/// of their own name the remedy themselves.
fn remedy(error: &io::Error) -> &'static str {
    /// Error number of a path without permission. Other errors of
    /// [`io::ErrorKind::PermissionDenied`] have other causes.
    const EACCES: i32 = 13;
    match error.raw_os_error() {
        Some(EACCES) => {
            " (check the permissions; the daemon must be restarted if the file system was mounted \
             directly below `/` after its start)"
        }
        Some(_) if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            " (mount the file system writable, or permit the directory with `ReadWritePaths=` of the \
             daemon's service and restart it)"
        }
        _ => "",
    }
}

/// Failure of an operation on a named file of a store.
#[derive(Debug, Error)]
#[error("{file}: {fault}")]
pub struct StoreFileError {
    /// Name of the file; path of the store if the failure concerns the store.
    pub file: String,
    /// Failure that occurred on the file.
    #[source]
    pub fault: StoreFault,
}

impl StoreFileError {
    /// Returns an error of a file.
    #[must_use]
    pub fn new(file: impl Into<String>, fault: impl Into<StoreFault>) -> Self {
        Self { file: file.into(), fault: fault.into() }
    }

    /// Returns true if the file does not exist.
    #[must_use]
    pub const fn is_missing(&self) -> bool {
        matches!(self.fault, StoreFault::Missing)
    }
}

/// Files of a store: a directory tree, or one block device. Calls block until done.
///
/// Names are confined to the directory: symbolic links in any component are not followed, and only
/// regular files are opened. It is therefore safe to open the parent that an untrusted image names.
///
/// An open file is locked until it is dropped, with QEMU's locking protocol (open file description
/// locks). Locks exclude daemons, QEMU and its tools from each other, not programs that do not use
/// locks.
pub trait StoreFiles: Send + Sync {
    /// Opens a file. `unit`: alignment of all I/O in bytes, a power of two.
    ///
    /// # Errors
    /// Fails if the file is missing, not regular, behind a link or in use, or if a system call
    /// fails.
    fn open(
        &self,
        name: &FileName,
        used: FileLockMode,
        unit: u32,
    ) -> Result<Arc<dyn DiskFile>, StoreFileError>;

    /// Opens a file for reading without locks, also while it is locked by another user, who may
    /// change it meanwhile. `unit`: as for [`StoreFiles::open`].
    ///
    /// # Errors
    /// Fails if the file is missing, not regular or behind a link, or if a system call fails.
    fn open_unlocked(
        &self,
        name: &FileName,
        unit: u32,
    ) -> Result<Arc<dyn DiskFile>, StoreFileError>;

    /// Creates an empty file and opens it for writing. Parent directories must exist. After a crash
    /// of the host the file may or may not exist.
    ///
    /// # Errors
    /// Fails if the name exists or a system call fails.
    fn create(&self, name: &FileName, unit: u32) -> Result<Arc<dyn DiskFile>, StoreFileError>;

    /// Opens the block device of the store.
    ///
    /// # Errors
    /// Fails if the store is a directory or in use, or if a system call fails.
    fn open_device(
        &self,
        used: FileLockMode,
        unit: u32,
    ) -> Result<Arc<dyn DiskFile>, StoreFileError>;

    /// Allocates space for all bytes of a file up to its length. The contents are unchanged.
    ///
    /// # Errors
    /// Fails if there is not enough space or the file system does not support allocation.
    fn reserve(&self, name: &FileName) -> Result<(), StoreFileError>;

    /// Returns the current status of a file.
    ///
    /// # Errors
    /// Fails if the file is missing, not regular or behind a link, or if a system call fails.
    fn status(&self, name: &FileName) -> Result<FileStatus, StoreFileError>;

    /// Sets the modification time of a file, durably. Used after writes that must not appear as a
    /// change to software that compares modification times (parents of differencing disks).
    ///
    /// # Errors
    /// Fails if the file is missing, not regular or behind a link, or if a system call fails.
    fn set_modified(&self, name: &FileName, unix_s: u64) -> Result<(), StoreFileError>;

    /// Renames a file to an unused name, durably. Open handles remain valid. After a crash the file
    /// has exactly one of the two names.
    ///
    /// # Errors
    /// Fails if the file is missing, the new name exists, or a system call fails.
    fn rename(&self, from: &FileName, to: &FileName) -> Result<(), StoreFileError>;

    /// Renames a file over another one, atomically and durably: after a crash the name `to` refers
    /// to the old or to the new file. Open handles of the old file remain valid.
    ///
    /// # Errors
    /// Fails if the file is missing or a system call fails.
    fn replace(&self, from: &FileName, to: &FileName) -> Result<(), StoreFileError>;

    /// Removes a file, durably.
    ///
    /// # Errors
    /// Fails if the file is missing or a system call fails.
    fn remove(&self, name: &FileName) -> Result<(), StoreFileError>;

    /// Returns the names of regular files with a last component that ends with one of `endings`, in
    /// ascending order: at most [`STORE_NAMES_MAX`], in directories up to eight levels deep. Names
    /// that are not UTF-8 or have control characters are omitted. Empty for a block device.
    ///
    /// # Errors
    /// Fails if a system call fails.
    fn names_with(&self, endings: &[&str]) -> Result<Vec<FileName>, StoreFileError>;

    /// As [`StoreFiles::names_with`], with one ending.
    ///
    /// # Errors
    /// Fails if a system call fails.
    fn names(&self, ending: &str) -> Result<Vec<FileName>, StoreFileError> {
        self.names_with(&[ending])
    }

    /// Returns total and free space of the store.
    ///
    /// # Errors
    /// Fails if a system call fails.
    fn space(&self) -> Result<StoreSpace, StoreFileError>;

    /// Returns the identity of the open store.
    fn identity(&self) -> StoreIdentity;
}

/// Opens stores by their path.
pub trait StoreOpener: Send + Sync {
    /// Opens the store at a path: a directory or a block device.
    ///
    /// # Errors
    /// Fails if the path does not exist or a system call fails.
    fn open(&self, path: &Path) -> Result<Arc<dyn StoreFiles>, StoreFileError>;

    /// Returns the identity of the store that is at a path now. It differs from that of an open
    /// store after a file system was mounted or unmounted there.
    ///
    /// # Errors
    /// Fails if the path does not exist or a system call fails.
    fn identity(&self, path: &Path) -> Result<StoreIdentity, StoreFileError>;
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::StoreFault;

    #[test]
    fn denied_access_names_the_remedy() {
        let text = |errno| StoreFault::from(io::Error::from_raw_os_error(errno)).to_string();
        let (eio, eacces, erofs) = (5, 13, 30);
        assert!(text(erofs).contains("`ReadWritePaths=`"), "{}", text(erofs));
        assert!(text(eacces).contains("the daemon must be restarted"), "{}", text(eacces));
        assert_eq!(text(eio), io::Error::from_raw_os_error(eio).to_string());
        let own = io::Error::new(io::ErrorKind::PermissionDenied, "run this as root");
        assert_eq!(StoreFault::from(own).to_string(), "run this as root");
    }
}
