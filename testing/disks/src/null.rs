//! I/O that does nothing, for measurements of everything else.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use suimon_ports::{DiskFile, FileDone, FileIo, FileOp, FileSlot, Wakeup};

/// Operations that can be under way.
const CAPACITY: usize = 1024;

/// Every operation has ended as soon as it begins; no memory is touched.
pub struct NullIo {
    ended: Vec<FileDone>,
    files: u32,
    /// Never readable.
    wake: OwnedFd,
}

impl NullIo {
    /// New.
    ///
    /// # Errors
    /// There is no descriptor left.
    pub fn new() -> std::io::Result<Self> {
        let flags = rustix::event::EventfdFlags::CLOEXEC;
        let wake = rustix::event::eventfd(0, flags)?;
        Ok(Self { ended: Vec::with_capacity(CAPACITY), files: 0, wake })
    }
}

impl FileIo for NullIo {
    fn capacity(&self) -> usize {
        CAPACITY
    }

    fn add_file(&mut self, _: Arc<dyn DiskFile>) -> std::io::Result<FileSlot> {
        self.files += 1;
        Ok(FileSlot(self.files - 1))
    }

    fn remove_file(&mut self, _: FileSlot) {}

    fn submit(&mut self, _: FileSlot, op: FileOp<'_>, token: u64) -> bool {
        if self.ended.len() >= CAPACITY {
            return false;
        }
        let bytes = match op {
            FileOp::ReadBytes(range) => vec![0; usize::try_from(range.len()).unwrap_or(0)],
            _ => Vec::new(),
        };
        self.ended.push(FileDone { token, outcome: Ok(bytes) });
        true
    }

    fn kick(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn poll_done(&mut self, done: &mut Vec<FileDone>) -> usize {
        let count = self.ended.len();
        done.append(&mut self.ended);
        count
    }

    fn under_way(&self) -> usize {
        self.ended.len()
    }

    fn arm(&mut self) -> Wakeup {
        if self.ended.is_empty() { Wakeup::Armed } else { Wakeup::Pending }
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
