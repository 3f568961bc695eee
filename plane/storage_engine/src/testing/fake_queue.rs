//! Queue of a disk, and its client, in memory.

use std::any::Any;
use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex};

use suimon_ports::{ArmResult, DiskOutcome, DiskQueue, DiskRequest, QueueFault};

/// Payload buffers, indexed by the request's tag.
pub type Payloads = Arc<Mutex<Vec<Vec<u8>>>>;

/// Client of a fake queue: its requests and their completions.
#[derive(Default)]
pub struct Client {
    /// Requests that the queue has not delivered yet.
    pub requests: VecDeque<DiskRequest>,
    /// Published completions: tag and outcome.
    pub completions: Vec<(u32, DiskOutcome)>,
    /// Completions (tag, outcome) that are not published yet.
    unpublished: Vec<(u32, DiskOutcome)>,
    /// Fault with which the queue fails after its requests were delivered.
    pub fault: Option<QueueFault>,
    /// True if the queue rejects [`DiskQueue::requeue`].
    pub refuses_reclaim: bool,
    /// Number of further calls of [`DiskQueue::release_unused_buffers`] that report remaining
    /// unused buffers.
    pub unused_buffers: usize,
    /// Number of calls of [`DiskQueue::release_unused_buffers`] so far.
    pub release_calls: usize,
}

/// Queue that delivers the requests of a [`Client`].
pub struct FakeQueue {
    /// Requests of the queue and their completions.
    pub client: Arc<Mutex<Client>>,
    /// Payload buffers of the requests.
    pub payloads: Payloads,
    fd: File,
    /// True if a poll costs a system call, as for sockets.
    pub is_polled_by_fd: bool,
    /// True if the client has published completions to process.
    pub has_unconsumed: bool,
    /// True if the client's next queue delivers the requests that this queue leaves uncompleted.
    pub redelivers: bool,
}

impl FakeQueue {
    /// Creates a queue with this number of tags.
    ///
    /// # Panics
    /// `/dev/null` cannot be opened.
    #[must_use]
    pub fn new(tags: usize) -> Self {
        Self {
            client: Arc::default(),
            payloads: Arc::new(Mutex::new(vec![Vec::new(); tags])),
            fd: File::open("/dev/null").unwrap(),
            is_polled_by_fd: false,
            has_unconsumed: false,
            redelivers: false,
        }
    }
}

impl DiskQueue for FakeQueue {
    fn in_flight_max(&self) -> u32 {
        self.payloads.lock().unwrap().len() as u32
    }
    fn receive(
        &mut self,
        max: usize,
        requests: &mut Vec<DiskRequest>,
    ) -> Result<usize, QueueFault> {
        let mut client = self.client.lock().unwrap();
        let count = client.requests.len().min(max);
        requests.extend(client.requests.drain(..count));
        client.fault.clone().map_or(Ok(count), Err)
    }
    fn payloads(&self) -> &dyn Any {
        &self.payloads
    }
    fn zero_payload(&mut self, tag: u32, start: u64, len: u64) {
        let (start, len) = (start as usize, len as usize);
        self.payloads.lock().unwrap()[tag as usize][start..start + len].fill(0);
    }
    fn complete(&mut self, tag: u32, outcome: DiskOutcome) {
        self.client.lock().unwrap().unpublished.push((tag, outcome));
    }
    fn requeue(&mut self, request: DiskRequest) -> bool {
        let mut client = self.client.lock().unwrap();
        if !client.refuses_reclaim {
            client.requests.push_front(request);
        }
        !client.refuses_reclaim
    }
    fn redelivers_after_drop(&self) -> bool {
        self.redelivers
    }
    fn flush(&mut self) -> Result<(), QueueFault> {
        let mut client = self.client.lock().unwrap();
        let unpublished = std::mem::take(&mut client.unpublished);
        client.completions.extend(unpublished);
        Ok(())
    }
    fn arm(&mut self) -> ArmResult {
        let is_empty = self.client.lock().unwrap().requests.is_empty();
        if is_empty { ArmResult::Armed } else { ArmResult::Pending }
    }
    fn disarm(&mut self) {}
    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
    fn is_polled_by_fd(&self) -> bool {
        self.is_polled_by_fd
    }
    fn release_unused_buffers(&mut self) -> bool {
        let mut client = self.client.lock().unwrap();
        client.release_calls += 1;
        client.unused_buffers = client.unused_buffers.saturating_sub(1);
        client.unused_buffers > 0
    }
    fn has_unconsumed_completions(&self) -> bool {
        self.has_unconsumed
    }
}
