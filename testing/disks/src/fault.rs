//! Disk I/O with deliberate faults, to verify that tests detect lost and repeated writes.

use std::collections::VecDeque;
use std::os::fd::BorrowedFd;
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, bail};
use suimon_ports::{ArmResult, DiskFile, FileCompletion, FileIo, FileRequest, FileSlot};

/// Number of writes between a write and its repetition.
const DOUBLED_AFTER: u64 = 20_000;

/// Type of fault, with its interval in writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// One write per interval is reported as complete but not executed.
    Lose(u64),
    /// One write per interval is executed again long after its completion.
    Double(u64),
}

impl FromStr for Fault {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (kind, interval) = text.split_once(':').context("a fault is KIND:N")?;
        let interval = interval.parse::<u64>()?.max(1);
        match kind {
            "lose" => Ok(Self::Lose(interval)),
            "double" => Ok(Self::Double(interval)),
            _ => bail!("{kind} is no fault; `lose` and `double` are"),
        }
    }
}

/// I/O backend with a fault that counts writes.
pub struct FaultyIo {
    io: Box<dyn FileIo>,
    fault: Option<Fault>,
    writes: u64,
    durable_writes: Arc<AtomicU64>,
    files: Vec<(FileSlot, Arc<dyn DiskFile>)>,
    /// Write in progress that will be repeated: token, file, offset, length.
    chosen: Option<(u64, FileSlot, u64, u64)>,
    /// Pending repetitions: write count at which each is due, file, offset, bytes.
    later: VecDeque<(u64, FileSlot, u64, Vec<u8>)>,
}

impl FaultyIo {
    /// Wraps a correct I/O backend.
    #[must_use]
    pub fn new(io: Box<dyn FileIo>, fault: Option<Fault>) -> Self {
        Self {
            io,
            fault,
            writes: 0,
            durable_writes: Arc::default(),
            files: Vec::new(),
            chosen: None,
            later: VecDeque::new(),
        }
    }

    /// Returns the counter of writes that must be durable on completion. It continues to count.
    #[must_use]
    pub fn durable_writes(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.durable_writes)
    }

    fn file(&self, slot: FileSlot) -> Option<&Arc<dyn DiskFile>> {
        self.files.iter().find(|(open_slot, _)| *open_slot == slot).map(|(_, file)| file)
    }

    fn double_what_is_due(&mut self) {
        while self.later.front().is_some_and(|(write_number, ..)| *write_number <= self.writes) {
            let Some((_, slot, offset, bytes)) = self.later.pop_front() else { return };
            if let Some(file) = self.file(slot) {
                let _ = file.write_at(offset, &bytes);
            }
        }
    }

    /// Reads back the bytes of the selected write for its repetition.
    fn handle_done(&mut self, token: u64) {
        let Some((_, slot, offset, len)) = self.chosen.filter(|chosen| chosen.0 == token) else {
            return;
        };
        self.chosen = None;
        let mut bytes = vec![0; usize::try_from(len).unwrap_or(0)];
        let is_read = self.file(slot).is_some_and(|file| file.read_at(offset, &mut bytes).is_ok());
        if is_read {
            self.later.push_back((self.writes + DOUBLED_AFTER, slot, offset, bytes));
        }
    }
}

impl FileIo for FaultyIo {
    fn capacity(&self) -> usize {
        self.io.capacity()
    }

    fn add_file(&mut self, file: Arc<dyn DiskFile>) -> std::io::Result<FileSlot> {
        let slot = self.io.add_file(Arc::clone(&file))?;
        self.files.push((slot, file));
        Ok(slot)
    }

    fn remove_file(&mut self, slot: FileSlot) {
        self.files.retain(|(open_slot, _)| *open_slot != slot);
        self.io.remove_file(slot);
    }

    fn submit(&mut self, file: FileSlot, op: FileRequest<'_>, token: u64) -> bool {
        let FileRequest::Write { offset, source: ref bytes, is_durable } = op else {
            return self.io.submit(file, op, token);
        };
        let (number, len) = (self.writes + 1, bytes.len);
        let op = match self.fault {
            Some(Fault::Lose(interval)) if number % interval == 0 => FileRequest::Flush,
            _ => op,
        };
        if !self.io.submit(file, op, token) {
            return false;
        }
        self.writes = number;
        self.durable_writes.fetch_add(is_durable.into(), Ordering::Relaxed);
        match self.fault {
            Some(Fault::Double(interval)) if number % interval == 0 && self.chosen.is_none() => {
                self.chosen = Some((token, file, offset, len));
            }
            _ => {}
        }
        true
    }

    fn submit_queued(&mut self) -> std::io::Result<()> {
        self.io.submit_queued()
    }

    fn poll_completions(&mut self, completions: &mut Vec<FileCompletion>) -> usize {
        let before = completions.len();
        let count = self.io.poll_completions(completions);
        for FileCompletion { token, .. } in completions.iter().skip(before) {
            self.handle_done(*token);
        }
        self.double_what_is_due();
        count
    }

    fn has_immediate_completions(&self) -> bool {
        self.io.has_immediate_completions()
    }

    fn in_flight(&self) -> usize {
        self.io.in_flight()
    }

    fn arm(&mut self) -> ArmResult {
        self.io.arm()
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.io.wake_fd()
    }
}
