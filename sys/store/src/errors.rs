//! Error messages, each with the action to take.

use std::fmt::Display;
use std::io;
use std::path::Path;

use redb::{DatabaseError, Error, StorageError};
use suimon_ports::{StateStoreError, StateStoreErrorKind};

/// Creates the error of a directory or file that could not be created, opened or locked.
pub(crate) fn host_error(
    path: &Path,
    operation: &str,
    error: impl Into<io::Error>,
) -> StateStoreError {
    let (path, error) = (path.display(), error.into());
    let detail = format!(
        "{operation} {path}: {error}; check that the directory exists, is writable for this user and has free space"
    );
    StateStoreError { kind: kind(&error), detail }
}

fn kind(error: &io::Error) -> StateStoreErrorKind {
    use io::ErrorKind as Io;
    match error.kind() {
        Io::StorageFull | Io::QuotaExceeded | Io::ReadOnlyFilesystem | Io::PermissionDenied => {
            StateStoreErrorKind::Unwritable
        }
        _ => StateStoreErrorKind::Other,
    }
}

/// Creates the error of a directory that another process uses.
pub(crate) fn in_use_error(directory: &Path) -> StateStoreError {
    let path = directory.display();
    StateStoreError::new(format!(
        "{path} is in use by another process, most likely another suimond; stop it, or give this one a directory of its own with --state-dir"
    ))
}

/// Creates the error of a damaged file. `reason` describes the damage.
pub(crate) fn damaged_error(file: &Path, reason: impl Display) -> StateStoreError {
    let path = file.display();
    StateStoreError::new(format!(
        "{path} is damaged ({reason}); it was not reset. Restore it from a backup. Without a backup, stop all VMs, move the file away, and start the daemon with the last output of `suimon export` as the host file"
    ))
}

/// Creates the error of a request whose `quantity` is `len` and exceeds the limit `max`.
pub(crate) fn limit_error(quantity: &str, len: usize, max: usize) -> StateStoreError {
    StateStoreError::new(format!("{quantity} of {len} exceeds the limit of {max}"))
}

/// Converts an error that redb returned when it opened the store's file.
pub(crate) fn open_error(file: &Path, error: DatabaseError) -> StateStoreError {
    match error {
        DatabaseError::DatabaseAlreadyOpen => in_use_error(file.parent().unwrap_or(file)),
        DatabaseError::UpgradeRequired(version) => StateStoreError::new(format!(
            "{} has file format {version} of an older suimond; start that version once more and export the host file, then apply it here",
            file.display()
        )),
        DatabaseError::Storage(error) => storage(file, error),
        other => damaged_error(file, other),
    }
}

/// Error that redb returned in a transaction. Boxed because of its size.
pub(crate) struct TransactionError(Box<Error>);

impl<E: Into<Error>> From<E> for TransactionError {
    fn from(error: E) -> Self {
        Self(Box::new(error.into()))
    }
}

impl TransactionError {
    /// Returns true if redb rejects further operations after this error until the file is reopened.
    pub(crate) fn requires_reopening(&self) -> bool {
        matches!(*self.0, Error::Io(_) | Error::PreviousIo)
    }
}

/// Converts an error that redb returned in a transaction.
pub(crate) fn transaction_error(file: &Path, fault: TransactionError) -> StateStoreError {
    match *fault.0 {
        Error::Io(error) => storage(file, StorageError::Io(error)),
        Error::PreviousIo => storage(file, StorageError::PreviousIo),
        other => damaged_error(file, other),
    }
}

/// Creates the error of a read or write that failed because another one on the same store failed
/// first and closed the file.
pub(crate) fn concurrent_failure_error(file: &Path) -> StateStoreError {
    StateStoreError::new(format!(
        "{}: another read or write has just failed, and this one with it; see the first error, then try again",
        file.display()
    ))
}

fn storage(file: &Path, error: StorageError) -> StateStoreError {
    match error {
        StorageError::Io(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::InvalidData | std::io::ErrorKind::UnexpectedEof
            ) =>
        {
            damaged_error(file, error)
        }
        StorageError::Io(error) => host_error(file, "reading or writing", error),
        StorageError::PreviousIo => concurrent_failure_error(file),
        other => damaged_error(file, other),
    }
}
