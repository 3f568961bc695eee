//! Rate-limited file I/O without storage, for tests of components that saturate a device.

use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::{ArmResult, DiskFile, FileCompletion, FileIo, FileIoFactory, FileRequest, FileSlot};

/// Behaviour of a device.
#[derive(Clone, Debug, Default)]
pub struct RateLimit {
    /// Budget of completed cost per [`FileIo::poll_completions`] call: a read costs 1, a write
    /// `write_cost`.
    pub cost_per_poll: u64,
    /// Cost of a write, in reads; 0 counts as 1.
    pub write_cost: u64,
    /// Error with which all operations fail; `None`: they succeed.
    pub failure: Option<io::ErrorKind>,
}

/// Devices with common statistics and behaviour. Clones share both.
#[derive(Clone, Default)]
pub struct RateLimitedIo(Arc<Mutex<SharedState>>);

#[derive(Default)]
struct SharedState {
    pace: RateLimit,
    reads: u64,
    writes: u64,
    open: usize,
    /// Maximum number of operations in flight observed.
    deepest: usize,
}

impl RateLimitedIo {
    /// Creates devices with this behaviour.
    #[must_use]
    pub fn new(pace: RateLimit) -> Self {
        let devices = Self::default();
        devices.world().pace = pace;
        devices
    }

    /// Changes the behaviour.
    pub fn set(&self, pace: RateLimit) {
        self.world().pace = pace;
    }

    /// Returns the completed reads and writes, and the maximum number in flight.
    #[must_use]
    pub fn completion_counts(&self) -> (u64, u64, usize) {
        let world = self.world();
        (world.reads, world.writes, world.deepest)
    }

    /// Returns the number of open [`FileIo`] instances.
    #[must_use]
    pub fn open_count(&self) -> usize {
        self.world().open
    }

    fn world(&self) -> MutexGuard<'_, SharedState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileIoFactory for RateLimitedIo {
    fn open(&self) -> io::Result<Box<dyn FileIo>> {
        let fd = File::open("/dev/null")?;
        self.world().open += 1;
        let devices = self.clone();
        Ok(Box::new(PacedIo { devices, files: Vec::new(), pending: VecDeque::new(), fd }))
    }
}

struct PacedIo {
    devices: RateLimitedIo,
    files: Vec<Option<Arc<dyn DiskFile>>>,
    /// Token, bytes to read, and true for a write, of each operation in flight.
    pending: VecDeque<(u64, usize, bool)>,
    fd: File,
}

impl FileIo for PacedIo {
    fn capacity(&self) -> usize {
        1024
    }

    fn add_file(&mut self, file: Arc<dyn DiskFile>) -> io::Result<FileSlot> {
        self.files.push(Some(file));
        Ok(FileSlot(u32::try_from(self.files.len() - 1).unwrap_or(u32::MAX)))
    }

    fn remove_file(&mut self, slot: FileSlot) {
        if let Some(file) = self.files.get_mut(slot.0 as usize) {
            *file = None;
        }
    }

    fn submit(&mut self, file: FileSlot, op: FileRequest<'_>, token: u64) -> bool {
        let is_there = self.files.get(file.0 as usize).is_some_and(Option::is_some);
        if !is_there || self.pending.len() >= self.capacity() {
            return false;
        }
        let (read, is_write) = match op {
            FileRequest::ReadBytes(range) => (usize::try_from(range.len()).unwrap_or(0), false),
            FileRequest::WriteBytes { .. } | FileRequest::Write { .. } => (0, true),
            _ => (0, false),
        };
        self.pending.push_back((token, read, is_write));
        let depth = self.pending.len();
        let mut world = self.devices.world();
        world.deepest = world.deepest.max(depth);
        true
    }

    fn submit_queued(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn poll_completions(&mut self, completions: &mut Vec<FileCompletion>) -> usize {
        let before = completions.len();
        let mut world = self.devices.world();
        let mut budget = world.pace.cost_per_poll;
        while let Some((token, read, is_write)) = self.pending.front().copied() {
            let cost = if is_write { world.pace.write_cost.max(1) } else { 1 };
            if budget == 0 {
                break;
            }
            budget = budget.saturating_sub(cost);
            self.pending.pop_front();
            world.reads += u64::from(read > 0);
            world.writes += u64::from(is_write);
            let outcome = match world.pace.failure {
                Some(kind) => Err(kind.into()),
                None => Ok(vec![0; read]),
            };
            completions.push(FileCompletion { token, result: outcome });
        }
        completions.len() - before
    }

    fn in_flight(&self) -> usize {
        self.pending.len()
    }

    fn arm(&mut self) -> ArmResult {
        if self.pending.is_empty() { ArmResult::Armed } else { ArmResult::Pending }
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for PacedIo {
    fn drop(&mut self) {
        self.devices.world().open -= 1;
    }
}
