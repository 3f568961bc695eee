//! A file that stores no data, for tests in which only the requests matter.

use std::any::Any;

use suimon_image::{FileError, ImageFile};

use crate::{DiskFile, FileProperties};

/// A file that stores no data: every operation succeeds; reads leave the buffer unchanged.
#[derive(Clone, Copy, Debug)]
pub struct NullFile {
    /// Number by which the test identifies the file.
    pub number: u32,
    /// Reported length in bytes.
    pub len: u64,
}

impl ImageFile for NullFile {
    fn len(&self) -> Result<u64, FileError> {
        Ok(self.len)
    }
    fn read_at(&self, _: u64, _: &mut [u8]) -> Result<(), FileError> {
        Ok(())
    }
    fn write_at(&self, _: u64, _: &[u8]) -> Result<(), FileError> {
        Ok(())
    }
    fn set_len(&self, _: u64) -> Result<(), FileError> {
        Ok(())
    }
    fn zero(&self, _: u64, _: u64) -> Result<(), FileError> {
        Ok(())
    }
    fn flush(&self) -> Result<(), FileError> {
        Ok(())
    }
}

impl DiskFile for NullFile {
    fn properties(&self) -> FileProperties {
        let (len, alignment) = (self.len, 1);
        FileProperties {
            len,
            is_direct: false,
            alignment,
            is_block_device: false,
            can_punch_holes: true,
            id: None,
        }
    }
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_image_file(&self) -> &dyn ImageFile {
        self
    }
}
