//! Open files of a store in memory.

use std::any::Any;
use std::io;

use suimon_image::testing::{LoggedChange, MemoryFile};
use suimon_image::{FileError, ImageFile};

use super::{MemoryStore, StoreOp};
use crate::{DiskFile, FileId, FileLockMode, FileProperties, FileTime, FlushFailure};

/// Open file of a [`MemoryStore`].
pub(super) struct StoredFile {
    pub(super) store: MemoryStore,
    pub(super) number: usize,
    pub(super) used: FileLockMode,
    /// True if the file is locked in the mode `used`.
    pub(super) is_locked: bool,
    pub(super) flush_failure: FlushFailure,
}

impl StoredFile {
    fn inspect<T>(
        &self,
        read: impl FnOnce(&MemoryFile) -> Result<T, FileError>,
    ) -> Result<T, FileError> {
        let state = self.store.state();
        let entry = state.files.get(self.number).ok_or(io::ErrorKind::NotFound);
        read(&entry.map_err(io::Error::from)?.file)
    }

    fn change(&self, op: &LoggedChange) -> Result<(), FileError> {
        if self.used == FileLockMode::Read {
            return Err(io::Error::from(io::ErrorKind::PermissionDenied).into());
        }
        let mut state = self.store.state();
        let now_unix_s = state.now_unix_s;
        state.log_change(StoreOp::File(self.number, op.clone(), now_unix_s))?;
        let Some(entry) = state.files.get_mut(self.number) else { return Ok(()) };
        if *op != LoggedChange::Flush {
            entry.modified_unix_s = now_unix_s;
        }
        match op {
            LoggedChange::Write { offset, bytes } => entry.file.write_at(*offset, bytes)?,
            LoggedChange::SetLen(len) => entry.file.set_len(*len)?,
            LoggedChange::Zero { offset, len } => entry.file.zero(*offset, *len)?,
            LoggedChange::Flush => {}
        }
        // The store logs the change; a second copy in the file's own log would double the memory.
        entry.file.clear_log();
        Ok(())
    }
}

impl Drop for StoredFile {
    fn drop(&mut self) {
        if !self.is_locked {
            return;
        }
        let mut state = self.store.state();
        let Some(entry) = state.files.get_mut(self.number) else { return };
        match self.used {
            FileLockMode::Read => entry.readers -= 1,
            FileLockMode::Write => entry.writers -= 1,
        }
    }
}

impl DiskFile for StoredFile {
    fn properties(&self) -> FileProperties {
        FileProperties {
            len: ImageFile::len(self).unwrap_or(0),
            is_direct: false,
            alignment: 1,
            is_block_device: false,
            can_punch_holes: true,
            id: Some(FileId {
                device: 0,
                inode: self.number as u64,
                created_unix_ns: self.number as u128 + 1,
            }),
        }
    }

    fn flush_failure(&self) -> Option<&FlushFailure> {
        Some(&self.flush_failure)
    }

    fn modified(&self) -> io::Result<FileTime> {
        let state = self.store.state();
        let entry = state.files.get(self.number).ok_or(io::ErrorKind::NotFound)?;
        Ok(FileTime { unix_s: i64::try_from(entry.modified_unix_s).unwrap_or(i64::MAX), ns: 0 })
    }

    fn set_modified(&self, time: FileTime) -> io::Result<()> {
        let mut state = self.store.state();
        if state.refuses_times {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        let unix_s = u64::try_from(time.unix_s).unwrap_or(0);
        state.ops.push(StoreOp::SetModified(self.number, unix_s));
        let entry = state.files.get_mut(self.number).ok_or(io::ErrorKind::NotFound)?;
        entry.modified_unix_s = unix_s;
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_image_file(&self) -> &dyn ImageFile {
        self
    }
}

impl ImageFile for StoredFile {
    fn len(&self) -> Result<u64, FileError> {
        self.inspect(MemoryFile::len)
    }

    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        self.inspect(|file| file.read_at(offset, bytes))
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.change(&LoggedChange::Write { offset, bytes: bytes.to_vec() })
    }

    fn set_len(&self, len: u64) -> Result<(), FileError> {
        self.change(&LoggedChange::SetLen(len))
    }

    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError> {
        self.change(&LoggedChange::Zero { offset, len })
    }

    fn flush(&self) -> Result<(), FileError> {
        self.flush_failure.check()?;
        self.change(&LoggedChange::Flush).inspect_err(|error| {
            if let FileError::System(error) = error {
                self.flush_failure.record(error);
            }
        })
    }
}
