//! Files that take no time, a disk for them and a client that never has enough.

use std::any::Any;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use suimon_image::{ByteRange, FileError, ImageFile, Linear, Shape};
use suimon_ports::{
    DiskFile, DiskOp, DiskOutcome, DiskQueue, DiskRequest, FileDone, FileFacts, FileIo, FileOp,
    FileSlot, PortFault, Wakeup,
};
use suimon_storage::{DiskLayer, DiskSpec};

/// Requests that the device ends between two turns.
const ENDS: usize = 16;

/// A descriptor that is never waited for.
pub(crate) fn nothing() -> File {
    File::open("/dev/null").expect("it is there")
}

/// A disk of a gigabyte.
pub(crate) fn disk() -> DiskSpec {
    let shape = Shape { size: 1 << 30, logical_sector: 512, physical_sector: 512, block: 0 };
    let image = Box::new(Linear::new(shape, 0, false));
    DiskSpec { layers: vec![DiskLayer { image, file: Arc::new(NoFile) }] }
}

/// A file without bytes.
pub(crate) struct NoFile;

impl ImageFile for NoFile {
    fn len(&self) -> Result<u64, FileError> {
        Ok(1 << 30)
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

impl DiskFile for NoFile {
    fn facts(&self) -> FileFacts {
        let (len, alignment) = (1 << 30, 1);
        FileFacts { len, is_direct: false, alignment, is_block_device: false, can_punch: true }
    }
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Ends operations in their order.
pub(crate) struct NoIo {
    pending: VecDeque<u64>,
    fd: File,
}

impl NoIo {
    pub(crate) fn new() -> Self {
        Self { pending: VecDeque::new(), fd: nothing() }
    }
}

impl FileIo for NoIo {
    fn capacity(&self) -> usize {
        4096
    }
    fn add_file(&mut self, _: Arc<dyn DiskFile>) -> io::Result<FileSlot> {
        Ok(FileSlot(0))
    }
    fn remove_file(&mut self, _: FileSlot) {}
    fn submit(&mut self, _: FileSlot, _: FileOp<'_>, token: u64) -> bool {
        self.pending.push_back(token);
        true
    }
    fn kick(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn poll_done(&mut self, done: &mut Vec<FileDone>) -> usize {
        let ends = self.pending.len().min(ENDS);
        let ended = self.pending.drain(..ends);
        done.extend(ended.map(|token| FileDone { token, outcome: Ok(Vec::new()) }));
        ends
    }
    fn under_way(&self) -> usize {
        self.pending.len()
    }
    fn arm(&mut self) -> Wakeup {
        Wakeup::Armed
    }
    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// A client that asks again as soon as it was answered.
pub(crate) struct Client {
    free: Vec<u32>,
    fd: Arc<File>,
}

impl Client {
    /// One that has so many requests outstanding.
    pub(crate) fn new(depth: u32, fd: Arc<File>) -> Self {
        Self { free: (0..depth).collect(), fd }
    }
}

impl DiskQueue for Client {
    fn tags(&self) -> u32 {
        u32::try_from(self.free.capacity()).unwrap_or(u32::MAX)
    }
    fn receive(&mut self, max: usize, requests: &mut Vec<DiskRequest>) -> Result<usize, PortFault> {
        let count = self.free.len().min(max);
        let range = ByteRange::new(4096, 4096).expect("it has an end");
        let request = |tag| DiskRequest { tag, op: DiskOp::Read, range };
        requests.extend(self.free.drain(..count).map(request));
        Ok(count)
    }
    fn payloads(&self) -> &dyn Any {
        &()
    }
    fn zero_payload(&mut self, _: u32, _: u64, _: u64) {}
    fn complete(&mut self, tag: u32, _: DiskOutcome) {
        self.free.push(tag);
    }
    fn flush(&mut self) -> Result<(), PortFault> {
        Ok(())
    }
    fn arm(&mut self) -> Wakeup {
        if self.free.is_empty() { Wakeup::Armed } else { Wakeup::Pending }
    }
    fn disarm(&mut self) {}
    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
    fn is_polled_by_fd(&self) -> bool {
        false
    }
}
