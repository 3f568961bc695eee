//! Errors of measurements.

use std::io;

use suimon_image_files::DiskError;
use suimon_ports::StoreFileError;
use thiserror::Error;

use crate::measure::sizes::{FILE_BYTES_MIN, MIB};

/// Reason why a measurement failed.
#[derive(Debug, Error)]
pub enum MeasureError {
    /// The store refused to create or open a file.
    #[error(transparent)]
    Store(#[from] StoreFileError),
    /// The file of an earlier measurement cannot be removed.
    #[error(transparent)]
    RemoveOldFile(#[from] DiskError),
    /// The store has too little free space, or the block device is too small, for a measurement.
    #[error(
        "{free_mib} MiB are free in the store, but a measurement needs twice its test file of at \
         least {} MiB; free space on it",
        FILE_BYTES_MIN / MIB
    )]
    NoRoom {
        /// Free space of the store in MiB.
        free_mib: u64,
    },
    /// An operation of the device failed.
    #[error(
        "{operation} at offset {offset} failed: {error}; see the kernel's log about the device"
    )]
    Io {
        /// Operation that failed: `reading`, `writing`, `filling` or `flushing`.
        operation: &'static str,
        /// Offset in the file or device, in bytes.
        offset: u64,
        /// Error that the system returned.
        error: io::Error,
    },
    /// The kernel refused to create the io_uring instance.
    #[error(
        "the measurement cannot create an io_uring: {0}; check `kernel.io_uring_disabled` and \
         RLIMIT_NOFILE"
    )]
    IoUring(io::Error),
    /// No request completed within this number of seconds.
    #[error("no request completed in {0} s: the device does not respond; see the kernel's log")]
    NoCompletions(u64),
}
