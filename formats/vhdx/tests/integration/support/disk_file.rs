//! Images in files, for tests with third-party programs.
#![allow(unreachable_pub, reason = "a module of tests")]

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::path::Path;

use suimon_image::{FileError, ImageFile};

/// File on the host.
pub struct DiskFile(File);

impl DiskFile {
    /// Opens a file, creating it if it does not exist.
    pub fn open(path: &Path) -> Self {
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        Self(file.unwrap_or_else(|error| panic!("{path:?}: {error}")))
    }
}

impl ImageFile for DiskFile {
    fn len(&self) -> Result<u64, FileError> {
        Ok(self.0.metadata()?.len())
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        let len = self.len()?;
        self.0.read_exact_at(bytes, offset).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => FileError::BeyondEnd { len, offset: len.max(offset) },
            _ => error.into(),
        })
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        Ok(self.0.write_all_at(bytes, offset)?)
    }

    fn set_len(&self, len: u64) -> Result<(), FileError> {
        Ok(self.0.set_len(len)?)
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError> {
        let end = offset.saturating_add(len).min(self.len()?);
        if offset >= end {
            return Ok(());
        }
        self.write_at(offset, &vec![0; (end - offset) as usize])
    }

    fn flush(&self) -> Result<(), FileError> {
        Ok(self.0.sync_data()?)
    }
}
