//! Client connections to disks that another server exports.

use std::fmt;

use suimon_image::ByteRange;

use crate::AllocationExtent;

/// Largest [`DiskClient::read`] or [`DiskClient::write`] in bytes.
pub const DISK_CLIENT_REQUEST_BYTES_MAX: u64 = 1 << 20;

/// Failure of a request to a remote disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiskClientError {
    /// The server completed the request with an error; the connection remains usable.
    RequestFailed(String),
    /// The connection has ended or the server violated the protocol. All later requests fail.
    Disconnected(String),
}

impl fmt::Display for DiskClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RequestFailed(text) | Self::Disconnected(text) => f.write_str(text),
        }
    }
}

impl std::error::Error for DiskClientError {}

/// A remote disk, accessed over a connection. Each call blocks until its reply; concurrent calls
/// are in flight at the same time. Ranges must be non-empty, within the disk and aligned to its
/// sectors. Dropping the client closes the connection.
pub trait DiskClient: Send + Sync {
    /// Returns the length of the disk in bytes.
    fn size_bytes(&self) -> u64;

    /// Returns the sector size in bytes.
    fn sector_bytes(&self) -> u32;

    /// Reads a range of at most [`DISK_CLIENT_REQUEST_BYTES_MAX`] bytes. On success `bytes`
    /// contains exactly the range.
    ///
    /// # Errors
    /// Fails if the server reports an error or the connection has ended; the contents of `bytes`
    /// are unspecified.
    fn read(&self, range: ByteRange, bytes: &mut Vec<u8>) -> Result<(), DiskClientError>;

    /// Writes at most [`DISK_CLIENT_REQUEST_BYTES_MAX`] bytes at `offset`.
    ///
    /// # Errors
    /// Fails if the server reports an error or the connection has ended; the contents of the range
    /// are unspecified.
    fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskClientError>;

    /// Zeroes a range of less than 4 GiB. The server may deallocate the range.
    ///
    /// # Errors
    /// As [`DiskClient::write`].
    fn write_zeroes(&self, range: ByteRange) -> Result<(), DiskClientError>;

    /// Returns the allocation status of a range of less than 4 GiB, as one or more consecutive
    /// extents from its start. The extents may end before the range does. Space of unknown status
    /// is reported as data.
    ///
    /// # Errors
    /// Fails if the server reports an error or the connection has ended.
    fn allocation(&self, range: ByteRange) -> Result<Vec<AllocationExtent>, DiskClientError>;

    /// Makes all previously completed writes durable.
    ///
    /// # Errors
    /// Fails if the server reports an error or the connection has ended.
    fn flush(&self) -> Result<(), DiskClientError>;

    /// Closes the connection. Calls in progress and later calls fail immediately.
    fn disconnect(&self);
}
