//! I/O on files in memory, with operations that complete in any order, fail or do not complete.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

use suimon_image::ImageFile;
use suimon_image::testing::LoggedChange as Change;
use suimon_ports::{
    ArmResult, DiskFile, FileCompletion, FileIo, FileRequest, FileSlot, PayloadRange,
};

use crate::testing::fake_file::FakeFile;
use crate::testing::fake_queue::Payloads;
use crate::testing::random_numbers::RandomNumbers;

/// Bytes of a page of a fake file.
const PAGE: u64 = 4096;

enum Effect {
    Nothing,
    Unsupported,
    Flush,
    ReadInto { offset: u64, payloads: Payloads, tag: u32, from: usize, len: usize },
    ReadBytes { offset: u64, len: usize },
    Write { offset: u64, bytes: Vec<u8>, is_durable: bool },
    Change(Change),
}

struct Pending {
    file: FileSlot,
    token: u64,
    effect: Effect,
}

/// Faults that the fake I/O injects.
#[derive(Default)]
pub struct FaultInjection {
    /// One operation in this number fails at random; 0 for no failures.
    pub one_in: u64,
    /// Error of operations that fail at random.
    pub kind: Option<io::ErrorKind>,
    /// True while no operation completes.
    pub is_stalled: bool,
    /// File on which no operation completes.
    pub stalled_file: Option<FileSlot>,
    /// True if flushes do not complete.
    pub stalled_flushes: bool,
    /// True if every zeroing operation fails.
    pub failing_zeroing: bool,
    /// True if zeroing of more than a page does not complete.
    pub stalled_zeroing: bool,
    /// Range of offsets of a file (start, end) in which reads do not complete.
    pub stalled_reads: Option<(u64, u64)>,
    /// Number of operations submitted so far.
    pub submitted: usize,
    /// Number of submitted operations that zero more than a page, and the largest number of bytes
    /// that one of them zeroes.
    pub zeroed: (usize, u64),
    /// True if operations complete in the iteration of their submission.
    pub completes_at_once: bool,
    /// True if flushes do not fail by `one_in`.
    pub excludes_flushes: bool,
    /// Error with which flushes fail; `None` if they succeed.
    pub failing_flush: Option<io::ErrorKind>,
    /// Error with which writes that request durability (FUA) fail.
    pub failing_durable_write: Option<io::ErrorKind>,
    /// True if the file cannot have holes, which is detected only by the first attempt.
    pub cannot_zero: bool,
    /// Number of flushes submitted so far.
    pub flushes: usize,
    /// True while the registration of a file blocks the worker.
    pub blocks_files: bool,
    /// True if the registration of files fails.
    pub refuses_files: bool,
    /// Number of registrations of files that have begun.
    pub files_begun: usize,
    /// True if the store is full: pages are allocated only in place of freed ones.
    pub is_full: bool,
}

impl FaultInjection {
    fn stalls(&self, pending: &Pending) -> bool {
        let is_stalled = match &pending.effect {
            Effect::Flush => self.stalled_flushes,
            Effect::Change(Change::Zero { len, .. }) => self.stalled_zeroing && *len > PAGE,
            Effect::ReadInto { offset, .. } => {
                self.stalled_reads.is_some_and(|(from, to)| (from..to).contains(offset))
            }
            _ => false,
        };
        is_stalled || Some(pending.file) == self.stalled_file
    }
}

/// I/O that executes and completes operations in any order. A flush makes durable exactly those
/// operations that completed before the flush began.
pub struct FakeIo {
    files: Vec<Option<Arc<dyn DiskFile>>>,
    pending: Vec<Pending>,
    capacity: usize,
    random: RandomNumbers,
    /// Allocated pages, by file and number.
    pages: BTreeSet<(FileSlot, u64)>,
    /// Largest number of allocated pages while the store is full.
    pages_max: Option<usize>,
    /// Faults to inject.
    pub faults: Arc<Mutex<FaultInjection>>,
    /// True if files have no allocated pages when added.
    pub is_sparse: bool,
    fd: File,
}

impl FakeIo {
    /// Creates I/O for up to `capacity` operations at a time. `seed` determines the order in which
    /// they complete.
    ///
    /// # Panics
    /// `/dev/null` cannot be opened.
    #[must_use]
    pub fn new(seed: u64, capacity: usize) -> Self {
        Self {
            files: Vec::new(),
            pending: Vec::new(),
            capacity,
            random: RandomNumbers(seed),
            pages: BTreeSet::new(),
            pages_max: None,
            faults: Arc::default(),
            is_sparse: false,
            fd: File::open("/dev/null").unwrap(),
        }
    }

    /// Allocates the pages that an operation writes to. Returns false if the store is full.
    fn allocate(&mut self, pending: &Pending, is_full: bool) -> bool {
        let max = is_full.then(|| self.pages_max.unwrap_or(self.pages.len()));
        self.pages_max = max;
        let (offset, len) = match &pending.effect {
            Effect::Write { offset, bytes, .. }
            | Effect::Change(Change::Write { offset, bytes }) => (*offset, bytes.len() as u64),
            Effect::Change(Change::Zero { offset, len }) => {
                let (file, end) = (pending.file, (offset + len) / PAGE);
                self.pages.retain(|(page_file, page)| {
                    *page_file != file || *page < offset.div_ceil(PAGE) || *page >= end
                });
                return true;
            }
            _ => return true,
        };
        let pages = (offset / PAGE..(offset + len).div_ceil(PAGE)).map(|page| (pending.file, page));
        let new: Vec<_> = pages.filter(|page| !self.pages.contains(page)).collect();
        if !new.is_empty() && max.is_some_and(|max| self.pages.len() + new.len() > max) {
            return false;
        }
        self.pages.extend(new);
        true
    }

    fn file(&self, slot: FileSlot) -> &FakeFile {
        self.files[slot.0 as usize].as_ref().unwrap().as_any().downcast_ref().unwrap()
    }

    fn execute(&self, pending: &Pending) -> Vec<u8> {
        let memory = self.file(pending.file).memory();
        match &pending.effect {
            Effect::Nothing | Effect::Unsupported | Effect::Flush => Vec::new(),
            Effect::ReadBytes { offset, len } => memory.read_padded(*offset, *len),
            Effect::ReadInto { offset, payloads, tag, from: start, len } => {
                let content = memory.read_padded(*offset, *len);
                payloads.lock().unwrap()[*tag as usize][*start..*start + *len]
                    .copy_from_slice(&content);
                Vec::new()
            }
            Effect::Write { offset, bytes, is_durable } => {
                memory.write_at(*offset, bytes).unwrap();
                if *is_durable {
                    memory.flush().unwrap();
                }
                Vec::new()
            }
            Effect::Change(change) => {
                match change {
                    Change::Write { offset, bytes } => memory.write_at(*offset, bytes).unwrap(),
                    Change::SetLen(len) if memory.len().unwrap() < *len => {
                        memory.set_len(*len).unwrap();
                    }
                    Change::SetLen(_) => {}
                    Change::Zero { offset, len } => memory.zero(*offset, *len).unwrap(),
                    Change::Flush => memory.flush().unwrap(),
                }
                Vec::new()
            }
        }
    }
}

fn payloads(part: &PayloadRange<'_>) -> Payloads {
    Arc::clone(part.payloads.downcast_ref::<Payloads>().unwrap())
}

impl FileIo for FakeIo {
    fn capacity(&self) -> usize {
        self.capacity
    }
    fn add_file(&mut self, file: Arc<dyn DiskFile>) -> io::Result<FileSlot> {
        self.faults.lock().unwrap().files_begun += 1;
        while self.faults.lock().unwrap().blocks_files {
            std::thread::yield_now();
        }
        if self.faults.lock().unwrap().refuses_files {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        let slot = FileSlot(self.files.len() as u32);
        let pages = file.properties().len.div_ceil(PAGE);
        // A raw file of these tests is sparse; pages written by the formats are allocated.
        if !self.is_sparse {
            self.pages.extend((0..pages).map(|page| (slot, page)));
        }
        self.files.push(Some(file));
        Ok(slot)
    }
    fn remove_file(&mut self, slot: FileSlot) {
        assert!(self.pending.iter().all(|pending| pending.file != slot), "it is in use");
        assert!(self.files[slot.0 as usize].take().is_some());
    }
    fn submit(&mut self, file: FileSlot, op: FileRequest<'_>, token: u64) -> bool {
        if self.pending.len() >= self.capacity {
            return false;
        }
        let effect = match op {
            FileRequest::Read { offset, destination: to } => Effect::ReadInto {
                offset,
                payloads: payloads(&to),
                tag: to.tag,
                from: to.offset as usize,
                len: to.len as usize,
            },
            FileRequest::Write { offset, source: from, is_durable } => {
                let (start, len) = (from.offset as usize, from.len as usize);
                let payloads = payloads(&from);
                let bytes =
                    payloads.lock().unwrap()[from.tag as usize][start..start + len].to_vec();
                Effect::Write { offset, bytes, is_durable }
            }
            FileRequest::ReadBytes(range) => {
                Effect::ReadBytes { offset: range.offset(), len: range.len() as usize }
            }
            FileRequest::WriteBytes { offset, bytes } => {
                Effect::Change(Change::Write { offset, bytes })
            }
            FileRequest::Flush => {
                let mut fault_state = self.faults.lock().unwrap();
                fault_state.flushes += 1;
                if fault_state.failing_flush.is_none() {
                    self.file(file).memory().flush().unwrap();
                }
                drop(fault_state);
                Effect::Flush
            }
            FileRequest::Discard(_) if self.faults.lock().unwrap().cannot_zero => Effect::Nothing,
            FileRequest::Zero { only_if_fast: true, .. }
                if self.faults.lock().unwrap().cannot_zero =>
            {
                Effect::Unsupported
            }
            FileRequest::Discard(range) | FileRequest::Zero { range, .. } => {
                let mut fault_state = self.faults.lock().unwrap();
                if range.len() > PAGE {
                    fault_state.zeroed =
                        (fault_state.zeroed.0 + 1, fault_state.zeroed.1.max(range.len()));
                }
                drop(fault_state);
                Effect::Change(Change::Zero { offset: range.offset(), len: range.len() })
            }
            FileRequest::Extend { len, .. } => Effect::Change(Change::SetLen(len)),
        };
        self.faults.lock().unwrap().submitted += 1;
        self.pending.push(Pending { file, token, effect });
        true
    }
    fn submit_queued(&mut self) -> io::Result<()> {
        Ok(())
    }
    fn poll_completions(&mut self, completions: &mut Vec<FileCompletion>) -> usize {
        if self.faults.lock().unwrap().is_stalled {
            return 0;
        }
        let pending = std::mem::take(&mut self.pending).into_iter();
        let (stalled, free) =
            pending.partition(|pending_entry| self.faults.lock().unwrap().stalls(pending_entry));
        let stalled: Vec<Pending> = stalled;
        self.pending = free;
        let count_all = self.pending.len() as u64;
        let completes_at_once = self.faults.lock().unwrap().completes_at_once;
        let count = if completes_at_once { count_all } else { self.random.below(count_all + 1) };
        for _ in 0..count {
            let index = self.random.below(self.pending.len() as u64) as usize;
            let pending = self.pending.swap_remove(index);
            let fault_state = self.faults.lock().unwrap();
            let kind = fault_state.kind.filter(|_| self.random.below(fault_state.one_in) == 0);
            let is_full = fault_state.is_full;
            let kind = match &pending.effect {
                Effect::Flush => {
                    fault_state.failing_flush.or(kind.filter(|_| !fault_state.excludes_flushes))
                }
                Effect::Unsupported => Some(io::ErrorKind::Unsupported),
                Effect::Write { is_durable: true, .. } => {
                    fault_state.failing_durable_write.or(kind)
                }
                Effect::Change(Change::Zero { .. }) if fault_state.failing_zeroing => {
                    Some(io::ErrorKind::Other)
                }
                _ => kind,
            };
            drop(fault_state);
            let outcome = match kind {
                Some(kind) => Err(kind.into()),
                None if !self.allocate(&pending, is_full) => Err(io::ErrorKind::StorageFull.into()),
                None => Ok(self.execute(&pending)),
            };
            completions.push(FileCompletion { token: pending.token, result: outcome });
        }
        self.pending.extend(stalled);
        count as usize
    }
    fn has_immediate_completions(&self) -> bool {
        self.faults.lock().unwrap().completes_at_once && !self.pending.is_empty()
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
