//! I/O backend that does nothing, for measurements of all other costs.

use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use suimon_ports::{ArmResult, DiskFile, FileCompletion, FileIo, FileRequest, FileSlot};

use crate::never_readable;

/// Maximum number of operations in progress.
const CAPACITY: usize = 4096;

/// I/O backend that completes every operation immediately or at one of the next polls, and does not
/// access memory.
pub struct NullIo {
    ended: VecDeque<FileCompletion>,
    /// Maximum number of completions per poll.
    told_at_once: usize,
    files: u32,
    /// Descriptor that is never readable.
    wake: OwnedFd,
}

impl NullIo {
    /// Creates a backend whose operations are complete at the next poll.
    ///
    /// # Errors
    /// The process has no descriptor left.
    pub fn new() -> std::io::Result<Self> {
        Self::ending(CAPACITY)
    }

    /// Creates a backend that returns at most `told_at_once` completions per poll, in the order of
    /// submission.
    ///
    /// # Errors
    ///
    /// The process has no descriptor left.
    pub fn ending(told_at_once: usize) -> std::io::Result<Self> {
        let ended = VecDeque::with_capacity(CAPACITY);
        Ok(Self { ended, told_at_once, files: 0, wake: never_readable()? })
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

    fn submit(&mut self, _: FileSlot, op: FileRequest<'_>, token: u64) -> bool {
        if self.ended.len() >= CAPACITY {
            return false;
        }
        let bytes = match op {
            FileRequest::ReadBytes(range) => vec![0; usize::try_from(range.len()).unwrap_or(0)],
            _ => Vec::new(),
        };
        self.ended.push_back(FileCompletion { token, result: Ok(bytes) });
        true
    }

    fn submit_queued(&mut self) -> std::io::Result<()> {
        Ok(())
    }

    fn poll_completions(&mut self, completions: &mut Vec<FileCompletion>) -> usize {
        let count = self.ended.len().min(self.told_at_once);
        completions.extend(self.ended.drain(..count));
        count
    }

    fn has_immediate_completions(&self) -> bool {
        !self.ended.is_empty()
    }

    fn in_flight(&self) -> usize {
        self.ended.len()
    }

    fn arm(&mut self) -> ArmResult {
        if self.ended.is_empty() { ArmResult::Armed } else { ArmResult::Pending }
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
