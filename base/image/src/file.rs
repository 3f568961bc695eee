//! Blocking file access, for operations outside of a disk's service.

/// Failure of a file operation.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// A read extends beyond the end of the file.
    #[error("offset {offset} is beyond the end of the file at {len}")]
    BeyondEnd {
        /// Length of the file in bytes.
        len: u64,
        /// Offset of the first missing byte.
        offset: u64,
    },
    /// A system call on the file failed.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// File of an image. Calls block until done.
///
/// Writes are guaranteed durable only after [`ImageFile::flush`].
pub trait ImageFile {
    /// Returns the length of the file in bytes.
    ///
    /// # Errors
    /// Fails if a system call fails.
    fn len(&self) -> Result<u64, FileError>;

    /// Returns true if the length is 0.
    ///
    /// # Errors
    /// Fails if a system call fails.
    fn is_empty(&self) -> Result<bool, FileError> {
        Ok(self.len()? == 0)
    }

    /// Fills `bytes` from the file at `offset`.
    ///
    /// # Errors
    /// Fails if the file is too short or a system call fails.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError>;

    /// Writes all of `bytes` at `offset`, extending the file if necessary; a gap reads as zeros.
    ///
    /// # Errors
    /// Fails if a system call fails.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError>;

    /// Sets the length of the file; added bytes read as zeros.
    ///
    /// # Errors
    /// Fails if a system call fails.
    fn set_len(&self, len: u64) -> Result<(), FileError>;

    /// Zeroes a range, deallocating it where the file system supports it. The length is unchanged.
    ///
    /// # Errors
    /// Fails if a system call fails.
    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError>;

    /// Makes all previous writes durable.
    ///
    /// # Errors
    /// Fails if a system call fails. Writes since the last successful flush may be lost.
    fn flush(&self) -> Result<(), FileError>;
}
