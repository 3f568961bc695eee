//! Progress of a disk copy.

use suimon_ports::DiskClientError;
use thiserror::Error;

/// Progress of a disk copy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorProgress {
    /// Bytes copied so far. Bytes that were copied repeatedly count each time.
    pub copied_bytes: u64,
    /// Bytes that remain to be copied: not copied yet, or changed since they were copied.
    pub remaining_bytes: u64,
    /// True if all content that the disk had at the beginning was copied.
    pub has_copied_all: bool,
    /// Error that ended the copy; `None` while it continues.
    pub failure: Option<MirrorError>,
}

/// Reason why a copy of a disk failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MirrorError {
    /// A read of the disk failed.
    #[error("the disk could not be read: {0}")]
    Read(DiskClientError),
    /// A write to the copy failed.
    #[error("the copy could not be written: {0}")]
    Write(DiskClientError),
    /// The sizes of disk and copy differ.
    #[error(
        "the copy has {copy_bytes} bytes, but the disk has {disk_bytes}; create the copy again"
    )]
    SizesDiffer {
        /// Size of the disk in bytes.
        disk_bytes: u64,
        /// Size of the copy in bytes.
        copy_bytes: u64,
    },
    /// The system refused to create a thread.
    #[error("the host cannot start a thread to copy the disk: {0}")]
    NoThread(String),
    /// This number of requests of the disk's clients had not completed at the end of the time
    /// limit.
    #[error("{0} requests of the disk were still in flight; stop its clients first")]
    RequestsInFlight(usize),
    /// This number of changed bytes remained at the end of the time limit.
    #[error("{0} bytes of the disk were not copied when the time limit expired")]
    BytesRemaining(u64),
    /// The connection to the disk or to its copy was closed.
    #[error("the copy of the disk was ended: {0}")]
    ConnectionClosed(String),
}
