//! File I/O of one worker with io_uring (io_uring(7)).
#![allow(unsafe_code, reason = "hands pointers to the kernel")]

use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::Arc;
use std::time::Duration;

use io_uring::{IoUring, types};
use suimon_ports::{
    ArmResult, DiskFile, FileCompletion, FileIo, FileRequest, FileSlot, FlushFailure,
};

use crate::aligned::AlignedBytes;
use crate::buffers::BufferPool;
use crate::continuation::{Next, file_end, next_append_step, next_step};
use crate::entry::submission_entry;
use crate::host_file::HostFile;
use crate::operation::{Operation, OperationKind, ZEROS_BYTES};
use crate::restrictions::restrict;
use crate::synchronous;

/// Maximum time for which dropping a ring waits for operations in flight.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);
/// Number of submitted operations per unsubmitted one up to which the ring is submitted early.
const SENT_PER_UNSENT: usize = 2;
/// Maximum size in bytes of one read or write of the engine's own data.
const OWN_BYTES_MAX: u64 = 64 << 20;

/// File I/O of one worker with io_uring. Files are registered with the ring, so that operations
/// need no descriptor lookup.
///
/// Dropping it waits for operations in flight, because the kernel accesses memory that they hold.
/// The memory of operations that do not complete in time is leaked.
pub struct UringFileIo {
    ring: IoUring,
    files: Vec<Option<Arc<dyn DiskFile>>>,
    operations: Vec<Option<Operation>>,
    /// Indices of free slots in the table of operations.
    free: Vec<u32>,
    /// Operations whose next step did not fit into the submission queue, oldest first.
    waiting: VecDeque<u32>,
    /// Completions, not reported yet, of operations that were executed without the ring.
    ended: Vec<FileCompletion>,
    /// Unused lists of segments, kept for reuse without an allocation.
    spare_vectors: Vec<Vec<libc::iovec>>,
    pub(crate) buffers: BufferPool,
    zeros: AlignedBytes,
}

// SAFETY: pointers in `operations` refer to memory that the operations hold themselves or through
// their payload's memory, which may be used from any thread.
unsafe impl Send for UringFileIo {}

impl UringFileIo {
    /// Creates a ring for at most `capacity` operations in flight (1 to 4096), on at most `files`
    /// files.
    ///
    /// # Errors
    /// The error of the system call: io_uring is disabled (`kernel.io_uring_disabled`), or memory
    /// or descriptors are exhausted.
    pub fn new(capacity: u16, files: u32) -> io::Result<Self> {
        let capacity = u32::from(capacity.clamp(1, 4096));
        let mut builder = IoUring::builder();
        // The kernel delivers completions when this thread enters it, without interrupting the
        // thread.
        builder.setup_coop_taskrun().setup_taskrun_flag().setup_submit_all().dontfork();
        builder.setup_r_disabled();
        let ring = builder.build(capacity)?;
        ring.submitter().register_files_sparse(files.max(1))?;
        restrict(&ring)?;
        Ok(Self {
            ring,
            files: vec![None; files.max(1) as usize],
            operations: (0..capacity).map(|_| None).collect(),
            free: (0..capacity).rev().collect(),
            waiting: VecDeque::with_capacity(capacity as usize),
            ended: Vec::new(),
            spare_vectors: Vec::with_capacity(2 * capacity as usize),
            buffers: BufferPool::default(),
            zeros: AlignedBytes::zeroed(ZEROS_BYTES as usize),
        })
    }

    /// Creates an operation without starting it.
    ///
    /// # Errors
    /// There is no such file or payload, or the operation is not possible.
    pub(crate) fn create_operation(
        &mut self,
        slot: FileSlot,
        op: FileRequest<'_>,
        token: u64,
    ) -> io::Result<Operation> {
        let vectors = self.spare_vectors.pop().unwrap_or_default();
        let (buffers, lists) = (&mut self.buffers, &mut self.spare_vectors);
        let file = host_file(&self.files, slot).ok_or(io::ErrorKind::NotFound)?;
        let (unit, memory_unit) = (file.properties().alignment, file.memory_alignment());
        let new = |kind, offset, len| Operation {
            file: slot,
            token,
            kind,
            offset,
            len,
            unit,
            done_bytes: 0,
            iovecs: vectors,
            buffer: None,
            bounce_iovecs: Vec::new(),
            memory: None,
        };
        Ok(match op {
            FileRequest::Read { offset, destination: to } => new(
                OperationKind::Read,
                offset,
                to.len,
            )
            .with_payload(&to, memory_unit, buffers, lists)?,
            FileRequest::Write { offset, source: from, is_durable } => {
                let kind = OperationKind::Write { is_durable };
                new(kind, offset, from.len).with_payload(&from, memory_unit, buffers, lists)?
            }
            FileRequest::ReadBytes(range) => {
                let buffer = own_bytes(range.len(), buffers)?;
                new(OperationKind::Read, range.offset(), range.len()).with_buffer(buffer)
            }
            FileRequest::WriteBytes { offset, bytes } => {
                let mut buffer = own_bytes(bytes.len() as u64, buffers)?;
                buffer.as_mut_slice().copy_from_slice(&bytes);
                new(OperationKind::Write { is_durable: false }, offset, bytes.len() as u64)
                    .with_buffer(buffer)
            }
            FileRequest::Flush => {
                file.flush_failure().map_or(Ok(()), FlushFailure::check)?;
                new(OperationKind::Flush, 0, 0)
            }
            FileRequest::Discard(range) => {
                file.handle_zeroing(range.offset(), range.len());
                new(OperationKind::Discard, range.offset(), range.len())
            }
            FileRequest::Zero { range, may_unmap, only_if_fast } => {
                file.handle_zeroing(range.offset(), range.len());
                new(OperationKind::Zero { may_unmap, only_if_fast }, range.offset(), range.len())
            }
            FileRequest::Extend { len, required_end: required } => {
                // Existing holes are preserved.
                let end = file_end(file)?.min(len);
                if !file.can_allocate() {
                    let mut operation = new(OperationKind::Append { len }, end, len - end);
                    operation.handle_end(end);
                    return Ok(operation);
                }
                let allocated = file.claim_space(end, required.clamp(end, len), len);
                let mut operation = new(
                    OperationKind::Extend { required_len: required, len },
                    end,
                    allocated - end,
                );
                if allocated == end && end < len {
                    operation.handle_extended(false);
                }
                operation
            }
        })
    }

    fn host_file(&self, slot: FileSlot) -> Option<&HostFile> {
        host_file(&self.files, slot)
    }

    /// Assigns a slot to an operation and submits its first step. Returns false if the maximum
    /// number of operations is in flight.
    pub(crate) fn start(&mut self, operation: Operation) -> bool {
        let Some(index) = self.free.pop() else { return false };
        if let Some(slot) = self.operations.get_mut(index as usize) {
            *slot = Some(operation);
        }
        self.begin(index);
        self.kick_early();
        true
    }

    /// Submits the next step of the operation at `index`, or queues it if the submission queue is
    /// full.
    fn begin(&mut self, index: u32) {
        let Some(Some(operation)) = self.operations.get(index as usize) else { return };
        let entry = submission_entry(operation, &self.zeros).user_data(u64::from(index));
        // SAFETY: the entry points to memory held by the operation, which stays in its slot until
        // its completion was received; `zeros` lives as long as the ring.
        if unsafe { self.ring.submission().push(&entry) }.is_err() {
            self.waiting.push_back(index);
        }
    }

    /// Submits the ring if the device would otherwise be idle ([`should_submit_early`]). An error
    /// is ignored: the next submission returns it again.
    fn kick_early(&mut self) {
        let unsent = self.ring.submission().len();
        let started = self.operations.len() - self.free.len();
        if should_submit_early(unsent, started.saturating_sub(unsent)) {
            let _ = self.submit_queued();
        }
    }

    fn begin_waiting(&mut self) {
        for _ in 0..self.waiting.len() {
            if self.ring.submission().is_full() {
                return;
            }
            if let Some(index) = self.waiting.pop_front() {
                self.begin(index);
            }
        }
    }

    /// Processes the kernel's result of a step of the operation at `index`: submits the next step,
    /// or returns the completion of the operation if it has ended.
    fn handle_completions(&mut self, index: u32, result: i32) -> Option<FileCompletion> {
        let operation = self.operations.get_mut(index as usize)?.as_mut()?;
        if let (OperationKind::Write { .. }, Ok(moved @ 1..)) =
            (operation.kind, u64::try_from(result))
        {
            if let Some(file) = host_file(&self.files, operation.file) {
                file.handle_written(operation.next_offset(), moved);
            }
        }
        let mut next = next_step(operation, result);
        if let (OperationKind::Append { .. }, Next::SubmitStep) = (operation.kind, &next) {
            next = next_append_step(operation, host_file(&self.files, operation.file));
        }
        if matches!(next, Next::SubmitStep) {
            self.begin(index);
            return None;
        }
        let operation = self.operations.get_mut(index as usize)?.take()?;
        self.free.push(index);
        Some(self.end(operation, next))
    }

    fn end(&mut self, mut operation: Operation, next: Next) -> FileCompletion {
        let outcome = match next {
            Next::SubmitStep => Ok(()),
            Next::End(outcome) => outcome,
        };
        if let (OperationKind::Flush, Err(error)) = (operation.kind, &outcome) {
            let failure = self.host_file(operation.file).and_then(HostFile::flush_failure);
            failure.inspect(|failure| failure.record(error));
        }
        let outcome = outcome.map(|()| operation.take_bytes());
        for mut list in [operation.iovecs, operation.bounce_iovecs] {
            list.clear();
            if list.capacity() > 0 && self.spare_vectors.len() < self.spare_vectors.capacity() {
                self.spare_vectors.push(list);
            }
        }
        if let Some(buffer) = operation.buffer {
            self.buffers.recycle(buffer);
        }
        FileCompletion { token: operation.token, result: outcome }
    }

    /// Executes an operation on a file in memory in the calling thread, without blocking.
    fn execute(&mut self, mut operation: Operation) -> FileCompletion {
        loop {
            let result = match self.host_file(operation.file) {
                Some(file) => synchronous::execute_step(file, &operation),
                None => -libc::ENOENT,
            };
            let next = next_step(&mut operation, result);
            if !matches!(next, Next::SubmitStep) {
                return self.end(operation, next);
            }
        }
    }

    /// Returns the number of completions, not reported yet, of operations that were executed
    /// without the ring.
    #[cfg(test)]
    pub(crate) fn unreported_completions(&self) -> usize {
        self.ended.len()
    }

    fn is_synchronous(&self, operation: &Operation) -> bool {
        self.host_file(operation.file)
            .is_some_and(|file| synchronous::is_synchronous(file, operation))
    }
}

fn host_file(files: &[Option<Arc<dyn DiskFile>>], slot: FileSlot) -> Option<&HostFile> {
    files.get(slot.0 as usize)?.as_ref()?.as_any().downcast_ref()
}

/// Returns true if unsubmitted operations must be submitted before the end of the worker's
/// iteration, given their number (`unsent`) and that of submitted ones (`sent`). A device with few
/// operations in flight then executes the next one while further ones are prepared. With many in
/// flight, larger batches cost less.
const fn should_submit_early(unsent: usize, sent: usize) -> bool {
    unsent * SENT_PER_UNSENT >= sent
}

fn own_bytes(len: u64, buffers: &mut BufferPool) -> io::Result<AlignedBytes> {
    if len > OWN_BYTES_MAX {
        let reason = format!("a request of {len} bytes exceeds the limit of {OWN_BYTES_MAX}");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
    }
    Ok(buffers.take(usize::try_from(len).unwrap_or(0)))
}

impl FileIo for UringFileIo {
    fn capacity(&self) -> usize {
        self.operations.len()
    }

    fn add_file(&mut self, file: Arc<dyn DiskFile>) -> io::Result<FileSlot> {
        let host: &HostFile = file.as_any().downcast_ref().ok_or(io::ErrorKind::InvalidInput)?;
        let fd = host.as_fd().as_raw_fd();
        let free = self.files.iter().position(Option::is_none);
        let slot = free.ok_or(io::ErrorKind::QuotaExceeded)?;
        self.ring.submitter().register_files_update(slot as u32, &[fd])?;
        if let Some(entry) = self.files.get_mut(slot) {
            *entry = Some(file);
        }
        Ok(FileSlot(slot as u32))
    }

    fn remove_file(&mut self, slot: FileSlot) {
        if let Some(entry) = self.files.get_mut(slot.0 as usize) {
            // The kernel keeps a file with operations in flight open. If this fails, the file
            // remains open.
            let _ = self.ring.submitter().register_files_update(slot.0, &[-1]);
            *entry = None;
        }
    }

    fn submit(&mut self, file: FileSlot, op: FileRequest<'_>, token: u64) -> bool {
        // A completion without the ring counts as in flight until it is reported.
        if self.in_flight() >= self.operations.len() {
            return false;
        }
        let completion = match self.create_operation(file, op, token) {
            Ok(operation) if operation.has_no_effect() => {
                FileCompletion { token, result: Ok(Vec::new()) }
            }
            Ok(operation) if self.is_synchronous(&operation) => self.execute(operation),
            Ok(operation) => return self.start(operation),
            Err(error) => FileCompletion { token, result: Err(error) },
        };
        self.ended.push(completion);
        true
    }

    fn submit_queued(&mut self) -> io::Result<()> {
        if self.ring.submission().is_empty() {
            return Ok(());
        }
        match self.ring.submit() {
            Err(error) if error.raw_os_error() == Some(libc::EINTR) => Ok(()),
            // The kernel accepts no further operations until completions are received.
            Err(error) if error.raw_os_error() == Some(libc::EBUSY) => Ok(()),
            result => result.map(|_| ()),
        }
    }

    fn poll_completions(&mut self, completions: &mut Vec<FileCompletion>) -> usize {
        let before = completions.len();
        completions.append(&mut self.ended);
        if self.ring.completion().is_empty() && self.ring.submission().taskrun() {
            // Completions are delivered when this thread enters the kernel. A failure recurs.
            let _ = self.ring.submitter().submit_and_wait(0);
        }
        for _ in 0..self.operations.len() {
            let Some(completion) = self.ring.completion().next() else { break };
            let index = u32::try_from(completion.user_data()).unwrap_or(u32::MAX);
            completions.extend(self.handle_completions(index, completion.result()));
        }
        self.begin_waiting();
        completions.len() - before
    }

    fn has_immediate_completions(&self) -> bool {
        !self.ended.is_empty()
    }

    fn in_flight(&self) -> usize {
        self.operations.len() - self.free.len() + self.ended.len()
    }

    fn drain(&mut self, timeout: Duration) -> bool {
        let mut completions = Vec::new();
        let timeout = types::Timespec::from(timeout);
        while self.free.len() < self.operations.len() {
            let limit = types::SubmitArgs::new().timespec(&timeout);
            if let Err(error) = self.ring.submitter().submit_with_args(1, &limit) {
                if !matches!(error.raw_os_error(), Some(libc::EINTR | libc::EBUSY)) {
                    return false;
                }
            }
            self.poll_completions(&mut completions);
            completions.clear();
        }
        true
    }

    fn arm(&mut self) -> ArmResult {
        let kicked = self.submit_queued();
        let has_ended = !self.ended.is_empty()
            || !self.ring.completion().is_empty()
            || self.ring.submission().taskrun();
        if has_ended || kicked.is_err() { ArmResult::Pending } else { ArmResult::Armed }
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the ring owns its descriptor and lives as long as this borrow.
        unsafe { BorrowedFd::borrow_raw(self.ring.as_raw_fd()) }
    }
}

impl Drop for UringFileIo {
    fn drop(&mut self) {
        // Memory that the kernel may still write to must not be freed. The locks of files that it
        // may still write to must be kept.
        if !self.drain(DRAIN_TIMEOUT) {
            std::mem::forget(std::mem::take(&mut self.files));
            std::mem::forget(std::mem::take(&mut self.operations));
            std::mem::forget(std::mem::replace(&mut self.zeros, AlignedBytes::zeroed(0)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_grow_with_the_load_of_the_device() {
        let (mut sent, mut unsent, mut batches) = (0, 0, Vec::new());
        for _ in 0..32 {
            unsent += 1;
            if should_submit_early(unsent, sent) {
                batches.push(unsent);
                sent += unsent;
                unsent = 0;
            }
        }
        assert_eq!(batches, [1, 1, 1, 2, 3, 4, 6, 9]);
    }
}
