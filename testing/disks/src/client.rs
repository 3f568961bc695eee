//! A disk client in this process: a queue that issues a new request for each completion, so that
//! the measured cost is that of the disk service.

use std::any::Any;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use suimon_image::ByteRange;
use suimon_ports::{ArmResult, DiskOp, DiskOutcome, DiskQueue, DiskRequest, QueueFault};
use suimon_uring::{PayloadTable, PayloadUse};

/// Type of the requests of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestPattern {
    /// Reads at random offsets, without end.
    RandomReads,
    /// Writes of zeros at random offsets, without end.
    RandomWrites,
    /// Sequential writes of zeros until the end of the disk.
    Filling,
    /// Reads and writes of zeros, without end.
    Mixed {
        /// Percentage of reads, 0 to 100.
        read_percent: u8,
        /// Whether offsets are random. Otherwise they are sequential and wrap at the end of the
        /// disk.
        is_random: bool,
    },
}

impl RequestPattern {
    /// Returns the percentage of reads.
    const fn read_percent(self) -> u8 {
        match self {
            Self::RandomReads => 100,
            Self::RandomWrites | Self::Filling => 0,
            Self::Mixed { read_percent, .. } => read_percent,
        }
    }

    const fn is_random(self) -> bool {
        match self {
            Self::RandomReads | Self::RandomWrites => true,
            Self::Filling => false,
            Self::Mixed { is_random, .. } => is_random,
        }
    }
}

/// Parameters of a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientSpec {
    /// Type of the requests.
    pub pattern: RequestPattern,
    /// Number of outstanding requests.
    pub depth: u32,
    /// Size of a request in bytes.
    pub bytes: u32,
    /// Size of the disk in bytes, at least the size of a request.
    pub disk_bytes: u64,
}

/// Counters of completed requests, readable by other threads.
#[derive(Debug, Default)]
pub struct CompletionCounters {
    done: AtomicU64,
    failed: AtomicU64,
}

impl CompletionCounters {
    /// Returns the number of successful requests.
    #[must_use]
    pub fn done(&self) -> u64 {
        self.done.load(Ordering::Relaxed)
    }

    /// Returns the number of failed requests.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::Relaxed)
    }
}

/// The disk queue of the client. Its payloads are in its own memory.
pub struct Client {
    spec: ClientSpec,
    /// First tag for reads; lower tags are for writes. The payload of a tag is always transferred
    /// in the same direction.
    first_reader: u32,
    tags: u32,
    free_writers: Vec<u32>,
    free_readers: Vec<u32>,
    outstanding: u32,
    payloads: PayloadTable,
    /// Number of requests issued.
    requested: u64,
    dice: u64,
    answers: Arc<CompletionCounters>,
    done: u64,
    failed: u64,
    wake: Arc<OwnedFd>,
}

/// Returns a descriptor that is never readable.
///
/// # Errors
/// The process has no descriptor left.
pub fn never_readable() -> std::io::Result<OwnedFd> {
    Ok(rustix::event::eventfd(0, rustix::event::EventfdFlags::CLOEXEC)?)
}

impl Client {
    /// Creates a client that never waits for requests. `wake` is a descriptor from
    /// [`never_readable`]; a worker that waits for descriptors needs a different one for each
    /// client.
    #[must_use]
    pub fn new(spec: ClientSpec, wake: Arc<OwnedFd>) -> Self {
        let percent = spec.pattern.read_percent();
        let first_reader = if percent < 100 { spec.depth } else { 0 };
        let tags = first_reader + if percent > 0 { spec.depth } else { 0 };
        let usage = |tag| {
            if tag < first_reader { PayloadUse::Source } else { PayloadUse::Destination }
        };
        Self {
            spec,
            first_reader,
            tags,
            free_writers: (0..first_reader).collect(),
            free_readers: (first_reader..tags).collect(),
            outstanding: 0,
            payloads: PayloadTable::with_memory(tags, spec.bytes as usize, usage),
            requested: 0,
            dice: 0x2545_f491_4f6c_dd1d,
            answers: Arc::default(),
            done: 0,
            failed: 0,
            wake,
        }
    }

    /// Returns the counters of the client.
    #[must_use]
    pub fn answers(&self) -> Arc<CompletionCounters> {
        Arc::clone(&self.answers)
    }

    /// Returns the number of non-overlapping requests that fit in the disk.
    fn places(&self) -> u64 {
        (self.spec.disk_bytes / u64::from(self.spec.bytes)).max(1)
    }

    fn has_more(&self) -> bool {
        self.spec.pattern != RequestPattern::Filling || self.requested < self.places()
    }

    /// Returns the next pseudorandom number (xorshift64, Marsaglia).
    fn next_random(&mut self) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice >> 16
    }

    /// Returns the index of the next request's location on the disk.
    fn next_place(&mut self) -> u64 {
        let number =
            if self.spec.pattern.is_random() { self.next_random() } else { self.requested };
        number % self.places()
    }

    /// Returns whether the next request is a read.
    fn reads_next(&mut self) -> bool {
        match self.spec.pattern.read_percent() {
            0 => false,
            100 => true,
            percent => self.next_random() % 100 < u64::from(percent),
        }
    }
}

impl DiskQueue for Client {
    fn in_flight_max(&self) -> u32 {
        self.tags
    }

    fn receive(
        &mut self,
        max: usize,
        requests: &mut Vec<DiskRequest>,
    ) -> Result<usize, QueueFault> {
        let mut count = 0;
        while count < max && self.outstanding < self.spec.depth && self.has_more() {
            let (op, free) = if self.reads_next() {
                (DiskOp::Read, &mut self.free_readers)
            } else {
                (DiskOp::Write { is_durable: false }, &mut self.free_writers)
            };
            let Some(tag) = free.pop() else { break };
            let bytes = u64::from(self.spec.bytes);
            let range = ByteRange::new(self.next_place() * bytes, bytes);
            let range = range.expect("places are within the disk");
            requests.push(DiskRequest { tag, op, range });
            self.requested += 1;
            self.outstanding += 1;
            count += 1;
        }
        Ok(count)
    }

    fn payloads(&self) -> &dyn Any {
        &self.payloads
    }

    fn zero_payload(&mut self, tag: u32, start: u64, len: u64) {
        self.payloads.zero(tag, start, len);
    }

    fn complete(&mut self, tag: u32, outcome: DiskOutcome) {
        match outcome {
            DiskOutcome::Done => self.done += 1,
            _ => self.failed += 1,
        }
        self.outstanding -= 1;
        if tag < self.first_reader {
            self.free_writers.push(tag);
        } else {
            self.free_readers.push(tag);
        }
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        self.answers.done.store(self.done, Ordering::Relaxed);
        self.answers.failed.store(self.failed, Ordering::Relaxed);
        Ok(())
    }

    fn arm(&mut self) -> ArmResult {
        let is_complete = self.outstanding == self.spec.depth || !self.has_more();
        if is_complete { ArmResult::Armed } else { ArmResult::Pending }
    }

    fn disarm(&mut self) {}

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        false
    }
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
