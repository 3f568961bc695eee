//! A file without bytes, for where it does not matter what is moved.

use std::any::Any;

use suimon_image::{FileError, ImageFile};

use crate::{DiskFile, FileFacts};

/// A file without bytes: everything succeeds, and nothing is kept.
#[derive(Clone, Copy, Debug)]
pub struct HollowFile {
    /// What whoever made it knows it by.
    pub number: u32,
    /// How long it is said to be.
    pub len: u64,
}

impl ImageFile for HollowFile {
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

impl DiskFile for HollowFile {
    fn facts(&self) -> FileFacts {
        let (len, alignment) = (self.len, 1);
        FileFacts {
            len,
            is_direct: false,
            alignment,
            is_block_device: false,
            can_punch: true,
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
