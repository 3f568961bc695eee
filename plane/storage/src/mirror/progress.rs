//! How far a disk is copied.

use suimon_ports::DiskClientError;
use thiserror::Error;

/// How far a disk is copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MirrorProgress {
    /// Bytes copied so far, what was copied again included.
    pub copied_bytes: u64,
    /// Bytes that have changed since they were copied, or were not copied yet.
    pub left_bytes: u64,
    /// Whether all that the disk had at the beginning was copied once.
    pub has_copied_all: bool,
    /// Why it goes on no more.
    pub failure: Option<MirrorError>,
}

/// Why a disk is not copied.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum MirrorError {
    /// The disk could not be read.
    #[error("the disk could not be read: {0}")]
    Read(DiskClientError),
    /// The copy could not be written.
    #[error("the copy could not be written: {0}")]
    Write(DiskClientError),
    /// The copy is not as long as the disk.
    #[error("the copy has {copy} bytes, not the {disk} of the disk; make it anew")]
    Sizes {
        /// Bytes of the disk.
        disk: u64,
        /// Bytes of the copy.
        copy: u64,
    },
    /// The system has no thread.
    #[error("the host has no thread to copy the disk: {0}")]
    NoThread(String),
    /// The disk is used on.
    #[error("{0} requests of the disk were still under way; stop its clients first")]
    InUse(usize),
    /// The disk was written to meanwhile, or there was too much.
    #[error("{0} bytes of the disk were left when the time was over")]
    NotInTime(u64),
    /// The disk is gone, or its mirror is.
    #[error("the disk is not copied any more: {0}")]
    Ended(String),
}
