//! File in memory for a disk.

use std::any::Any;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use suimon_image::testing::MemoryFile;
use suimon_image::{FileError, ImageFile};
use suimon_ports::{DiskFile, FileProperties, FlushFailure};

/// File in memory for a disk.
pub struct FakeFile {
    memory: Mutex<MemoryFile>,
    can_punch: bool,
    flush_failure: FlushFailure,
    /// True if I/O bypasses the page cache.
    is_direct: bool,
    /// Number of calls that removed the file from the page cache.
    pub dropped_from_cache: AtomicU32,
}

impl FakeFile {
    /// Creates a file with buffered I/O that can have holes.
    #[must_use]
    pub fn new(file: MemoryFile) -> Arc<Self> {
        Arc::new(Self::with(file, true, false))
    }

    /// Creates a file that cannot have holes.
    #[must_use]
    pub fn solid(file: MemoryFile) -> Arc<Self> {
        Arc::new(Self::with(file, false, false))
    }

    /// Creates a file with direct I/O.
    #[must_use]
    pub fn direct(file: MemoryFile) -> Arc<Self> {
        Arc::new(Self::with(file, true, true))
    }

    fn with(file: MemoryFile, can_punch: bool, is_direct: bool) -> Self {
        Self {
            memory: Mutex::new(file),
            can_punch,
            flush_failure: FlushFailure::default(),
            is_direct,
            dropped_from_cache: AtomicU32::new(0),
        }
    }

    /// Locks the content of the file.
    ///
    /// # Panics
    /// A thread has panicked while it held the lock.
    pub fn memory(&self) -> MutexGuard<'_, MemoryFile> {
        self.memory.lock().unwrap()
    }
}

impl ImageFile for FakeFile {
    fn len(&self) -> Result<u64, FileError> {
        self.memory().len()
    }
    fn read_at(&self, offset: u64, bytes: &mut [u8]) -> Result<(), FileError> {
        self.memory().read_at(offset, bytes)
    }
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), FileError> {
        self.memory().write_at(offset, bytes)
    }
    fn set_len(&self, len: u64) -> Result<(), FileError> {
        self.memory().set_len(len)
    }
    fn zero(&self, offset: u64, len: u64) -> Result<(), FileError> {
        self.memory().zero(offset, len)
    }
    fn flush(&self) -> Result<(), FileError> {
        self.memory().flush()
    }
}

impl DiskFile for FakeFile {
    fn properties(&self) -> FileProperties {
        FileProperties {
            len: self.memory().len().unwrap(),
            is_direct: self.is_direct,
            alignment: 1,
            is_block_device: false,
            can_punch_holes: self.can_punch,
            id: None,
        }
    }
    fn flush_failure(&self) -> Option<&FlushFailure> {
        Some(&self.flush_failure)
    }
    fn drop_page_cache(&self) -> io::Result<()> {
        self.dropped_from_cache.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_image_file(&self) -> &dyn ImageFile {
        self
    }
}
