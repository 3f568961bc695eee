//! Where processors' I/O comes from.

use std::io;

use rustix::process::{Resource, getrlimit};
use suimon_ports::{FileIo, FileIoSource};

use crate::UringFileIo;

/// Operations of a processor that are under way at once. What disks ask for beyond waits
/// with the engine.
const OPERATIONS: u16 = 1024;
/// Files of a processor's disks at most: as many as a store's disks, in one chain each.
const FILES_MAX: u64 = 4096;

/// Gives each processor an io_uring of its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct UringSource;

impl FileIoSource for UringSource {
    fn open(&self) -> io::Result<Box<dyn FileIo>> {
        // A ring has no more files than a process may (io_uring_register(2)).
        let files =
            getrlimit(Resource::Nofile).current.map_or(FILES_MAX, |most| most.min(FILES_MAX));
        Ok(Box::new(UringFileIo::new(OPERATIONS, u32::try_from(files).unwrap_or(1))?))
    }
}
