//! Creation of the workers' file I/O.

use std::io;

use rustix::process::{Resource, getrlimit};
use suimon_ports::{FileIo, FileIoFactory};

use crate::UringFileIo;

/// Maximum number of a worker's operations in flight. Further operations remain queued in the
/// storage engine.
const OPERATIONS: u16 = 1024;
/// Maximum number of registered files per worker.
const FILES_MAX: u64 = 4096;

/// Source of file I/O for workers: creates an io_uring for each worker that performs file I/O.
#[derive(Clone, Copy, Debug, Default)]
pub struct UringSource;

impl FileIoFactory for UringSource {
    fn open(&self) -> io::Result<Box<dyn FileIo>> {
        // A ring cannot have more files than a process (io_uring_register(2)).
        let files = getrlimit(Resource::Nofile).current.map_or(FILES_MAX, |max| max.min(FILES_MAX));
        Ok(Box::new(UringFileIo::new(OPERATIONS, u32::try_from(files).unwrap_or(1))?))
    }
}
