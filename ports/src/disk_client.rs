//! Disks at the far end of a connection of ours.

use std::fmt;

use suimon_image::ByteRange;

use crate::AllocatedExtent;

/// Bytes of a [`DiskClient::read`] or [`DiskClient::write`] at most.
pub const CLIENT_BYTES_MAX: u64 = 1 << 20;

/// Why a disk at the far end did not do what it was asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskClientError {
    /// It answered, and did not do it.
    Refused(String),
    /// The connection has ended, or what comes over it makes no sense. Nothing goes over it
    /// any more.
    Gone(String),
}

impl fmt::Display for DiskClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Refused(text) | Self::Gone(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for DiskClientError {}

/// A disk that somebody serves to us over a connection. Each call waits for its answer; as
/// many requests are under way as threads call. Ranges are within the disk and aligned to its
/// sectors, and are not empty. Dropping it ends the connection.
pub trait DiskClient: Send + Sync {
    /// Length of the disk in bytes.
    fn bytes(&self) -> u64;

    /// Bytes of its sectors.
    fn sector_bytes(&self) -> u32;

    /// Reads a range of [`CLIENT_BYTES_MAX`] or fewer; `bytes` holds it and nothing else
    /// afterwards.
    ///
    /// # Errors
    /// It cannot be read, or the connection has ended; `bytes` holds anything.
    fn read(&self, range: ByteRange, bytes: &mut Vec<u8>) -> Result<(), DiskClientError>;

    /// Writes [`CLIENT_BYTES_MAX`] or fewer, from `offset` on.
    ///
    /// # Errors
    /// It cannot be written, or the connection has ended; what the range reads as is open.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskClientError>;

    /// Makes a range of less than 4 GiB read as zeros; its space may be given back.
    ///
    /// # Errors
    /// As [`DiskClient::write`].
    fn write_zeroes(&self, range: ByteRange) -> Result<(), DiskClientError>;

    /// How a range of less than 4 GiB is allocated, from its beginning on: one extent or more,
    /// and perhaps not all of it. Where nobody knows, it is data.
    ///
    /// # Errors
    /// It cannot be found out, or the connection has ended.
    fn allocation(&self, range: ByteRange) -> Result<Vec<AllocatedExtent>, DiskClientError>;

    /// Makes durable what was answered before.
    ///
    /// # Errors
    /// It is not, or the connection has ended.
    fn flush(&self) -> Result<(), DiskClientError>;

    /// Ends the connection: whoever waits for an answer has an error at once, and whoever
    /// asks later.
    fn end(&self);
}
