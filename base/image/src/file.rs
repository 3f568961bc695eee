//! A file that can be waited for, for what is done outside of a disk's service.

/// Why a file could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// The file ends before what was asked for.
    #[error("the file ends at {len}, {wanted} is behind it")]
    End {
        /// Bytes of the file.
        len: u64,
        /// The first byte that is not there.
        wanted: u64,
    },
    /// The system said no.
    #[error(transparent)]
    System(#[from] std::io::Error),
}

/// An image's file. Calls wait until they are done.
///
/// What was written is durable after [`ImageFile::flush`], and not surely before.
pub trait ImageFile {
    /// Bytes of the file.
    ///
    /// # Errors
    /// The system said no.
    fn len(&self) -> Result<u64, FileError>;

    /// Whether there is nothing in it.
    ///
    /// # Errors
    /// The system said no.
    fn is_empty(&self) -> Result<bool, FileError> {
        Ok(self.len()? == 0)
    }

    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    /// The file ends before that, or the system said no.
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError>;

    /// Writes all of `bytes`; the file grows if it must, and a gap reads as zeros.
    ///
    /// # Errors
    /// The system said no.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError>;

    /// Makes the file this long; what is added reads as zeros.
    ///
    /// # Errors
    /// The system said no.
    fn set_len(&self, len: u64) -> Result<(), FileError>;

    /// Makes a range read as zeros and gives its space back where the file system can.
    /// The file's length stays.
    ///
    /// # Errors
    /// The system said no.
    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError>;

    /// Makes everything written durable.
    ///
    /// # Errors
    /// The system said no. What was written since the last flush may be lost.
    fn flush(&self) -> Result<(), FileError>;
}
