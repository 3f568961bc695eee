//! Creates the store's file so that it is complete or absent, and opens it.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use redb::backends::InMemoryBackend;
use redb::{Builder, Database, StorageBackend};
use rustix::fs::{FlockOperation, Mode, OFlags, flock};
use rustix::io::Errno;
use suimon_ports::StateStoreError;

use crate::{STATE_FILE_NAME, errors};

/// Maximum size of redb's page cache in bytes.
const CACHE_BYTES: usize = 1 << 20;

/// Existing file of a store, and the lock of its directory.
pub(crate) struct LockedStoreFile {
    pub(crate) file: PathBuf,
    /// Descriptor that holds the lock.
    pub(crate) directory_lock: OwnedFd,
}

/// Locks the directory and creates the file if it does not exist.
pub(crate) fn lock_and_create(directory: &Path) -> Result<LockedStoreFile, StateStoreError> {
    let result = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    result.map_err(|error| errors::host_error(directory, "creating", error))?;
    let lock = lock_directory(directory)?;
    let file = directory.join(STATE_FILE_NAME);
    match std::fs::symlink_metadata(&file) {
        Ok(metadata) if !metadata.is_file() => {
            return Err(errors::damaged_error(&file, "not a regular file"));
        }
        Ok(metadata) if metadata.len() == 0 => {
            return Err(errors::damaged_error(&file, "empty file"));
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(directory, &file, &lock)?,
        Err(error) => return Err(errors::host_error(&file, "checking", error)),
    }
    Ok(LockedStoreFile { file, directory_lock: lock })
}

/// Executes `work`, and converts a panic of redb, which some kinds of damage cause, to an error of
/// `file`.
pub(crate) fn catch_panic<T>(
    file: &Path,
    work: impl FnOnce() -> Result<T, StateStoreError>,
) -> Result<T, StateStoreError> {
    // State left by a panic is not used: the library poisons its locks, and each later call reports
    // that.
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(errors::damaged_error(file, "inconsistent pages")))
}

fn lock_directory(directory: &Path) -> Result<OwnedFd, StateStoreError> {
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let fd = rustix::fs::open(directory, flags, Mode::empty())
        .map_err(|error| errors::host_error(directory, "opening", error))?;
    match flock(&fd, FlockOperation::NonBlockingLockExclusive) {
        Ok(()) => Ok(fd),
        Err(Errno::WOULDBLOCK) => Err(errors::in_use_error(directory)),
        Err(error) => Err(errors::host_error(directory, "locking", error)),
    }
}

/// Creates a complete empty store under another name and renames it, so that a crash leaves no
/// incomplete file.
fn create(directory: &Path, file: &Path, lock: &OwnedFd) -> Result<(), StateStoreError> {
    let draft = directory.join(format!("{STATE_FILE_NAME}.new"));
    let fail = |error| errors::host_error(&draft, "creating", error);
    match std::fs::remove_file(&draft) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(fail(error)),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let empty: File =
        options.read(true).write(true).create_new(true).mode(0o600).open(&draft).map_err(fail)?;
    let database =
        builder().create_file(empty).map_err(|error| errors::open_error(&draft, error))?;
    drop(database);
    File::open(&draft).and_then(|database_file| database_file.sync_all()).map_err(fail)?;
    std::fs::rename(&draft, file).map_err(|error| errors::host_error(file, "creating", error))?;
    rustix::fs::fsync(lock).map_err(|error| errors::host_error(directory, "flushing", error))
}

/// Opens the file for reading and writing, and verifies all of it.
pub(crate) fn open_verified(file: &Path) -> Result<Database, StateStoreError> {
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600))
        .map_err(|error| errors::host_error(file, "setting the permissions of", error))?;
    let database = builder().open(file).map_err(|error| errors::open_error(file, error))?;
    verified(file, database)
}

/// Opens a copy of the file in memory, and verifies all of it. The copy is as large as the file.
pub(crate) fn open_copy(file: &Path) -> Result<Database, StateStoreError> {
    let bytes = std::fs::read(file).map_err(|error| errors::host_error(file, "reading", error))?;
    let copy = InMemoryBackend::new();
    copy.set_len(bytes.len() as u64)
        .and_then(|()| copy.write(0, &bytes))
        .map_err(|error| errors::host_error(file, "copying", error))?;
    let database =
        builder().create_with_backend(copy).map_err(|error| errors::open_error(file, error))?;
    verified(file, database)
}

fn verified(file: &Path, mut database: Database) -> Result<Database, StateStoreError> {
    // `false` means that allocation state was rebuilt, which loses nothing.
    database.check_integrity().map_err(|error| errors::open_error(file, error))?;
    Ok(database)
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    builder.create_with_file_format_v3(true).set_cache_size(CACHE_BYTES);
    builder
}
