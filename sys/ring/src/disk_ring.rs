//! Request ring of a VM's disk: requests are taken in order and completed in any order.

use std::any::Any;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use suimon_eventfd::PeerEventFd;
use suimon_ports::{ArmResult, DiskOp, DiskOutcome, DiskQueue, DiskRequest, QueueFault};
use suimon_uring::PayloadUse;

use crate::chain;
use crate::chain_head::ChainHead;
use crate::disk_properties::DiskProperties;
use crate::disk_request::{
    Header, RequestAction, RequestBytes, SEGMENT_BYTES, STATUS_IO_ERROR, STATUS_OK, has_segment,
    validate, virtio_status,
};
use crate::fault::RingFault;
use crate::kick::kick_eventfd;
use crate::memory::GuestMemory;
use crate::packed::PackedQueue;
use crate::request_buffers::{GuestRange, RequestBuffers};
use crate::setup::{RingSetup, RingTracking};
use crate::split::SplitQueue;
use crate::virtqueue::{Access, OutOfOrderVirtqueue, RingState, TakenChain};

/// Maximum size of a disk's ring in entries. A ring's memory grows with its size and the number of
/// buffers per request; this limit bounds it to 64 MB for any driver.
pub const DISK_QUEUE_SIZE_MAX: u16 = 1024;

/// Request ring of a VM's disk (virtio 1.3, section 5.2.6), as a [`DiskQueue`]. Payloads stay in
/// guest memory; [`DiskQueue::payloads`] is a [`suimon_uring::PayloadTable`].
///
/// The ring itself completes invalid requests: ranges outside the disk or not of whole sectors,
/// writes to a read-only disk, and request types that were not negotiated. A chain without a
/// complete header or without a status byte is a fault that ends the ring.
///
/// `len` of a used element is exact: the number of bytes written without a gap from the first
/// device-writable byte on. It includes the status only if all bytes before it were written, so
/// that it is 0 if a read failed.
///
/// Before the owner drops the ring, it waits until every request is completed, and flushes: the
/// final position in [`RingState`] states that everything before it was used. Requests not
/// completed by then remain in flight for the next user of the ring's part of the in-flight region,
/// as after a death of the process. Without such a part they are lost. Requests completed after a
/// [`RingFault`] remain in flight as well.
///
/// Memory is allocated when the ring is created, and later only if a request has more buffers than
/// any request before.
pub struct DiskRing {
    queue: Box<dyn DiskQueue>,
    state: Arc<RingState>,
}

impl DiskRing {
    /// Creates a running ring without a dirty page log and without in-flight tracking.
    ///
    /// # Errors
    /// As [`DiskRing::with_tracking`].
    pub fn new(
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        disk: Arc<DiskProperties>,
    ) -> Result<Self, QueueFault> {
        Self::with_tracking(memory, setup, RingTracking::default(), disk)
    }

    /// Creates a running ring. Kicks are suppressed until it is armed. Requests that the ring's
    /// part of the in-flight region records as in flight are received first, oldest first.
    ///
    /// # Errors
    /// The ring's size, areas or records are invalid, or `IN_ORDER` was negotiated (as
    /// [`RingFault`] reports), or no file descriptor is available.
    pub fn with_tracking(
        memory: Arc<GuestMemory>,
        setup: &RingSetup,
        records: RingTracking,
        disk: Arc<DiskProperties>,
    ) -> Result<Self, QueueFault> {
        let RingSetup { queue, size, .. } = *setup;
        let (access, max) = (Access::ReadThenWrite, DISK_QUEUE_SIZE_MAX);
        let is_plain = records.is_empty();
        match (setup.features.packed(), is_plain) {
            (false, _) if size > max.into() => Err(RingFault::Size { queue, size, max }.into()),
            (true, _) if size > max.into() => {
                Err(RingFault::PackedSize { queue, size, max }.into())
            }
            (false, true) => {
                Self::over(SplitQueue::<false>::new(memory, setup, records, access)?, setup, disk)
            }
            (false, false) => {
                Self::over(SplitQueue::<true>::new(memory, setup, records, access)?, setup, disk)
            }
            (true, true) => {
                Self::over(PackedQueue::<false>::new(memory, setup, records, access)?, setup, disk)
            }
            (true, false) => {
                Self::over(PackedQueue::<true>::new(memory, setup, records, access)?, setup, disk)
            }
        }
    }

    fn over<Q: OutOfOrderVirtqueue + 'static>(
        queue: Q,
        setup: &RingSetup,
        disk: Arc<DiskProperties>,
    ) -> Result<Self, QueueFault> {
        let state = Arc::clone(&queue.queue_state().state);
        Ok(Self { state, queue: Box::new(DiskEngine::new(queue, setup, disk)?) })
    }

    /// Returns the ring's position and fault state, which outlive the ring.
    pub fn state(&self) -> Arc<RingState> {
        Arc::clone(&self.state)
    }

    /// Returns the ring as a trait object.
    pub fn into_queue(self) -> Box<dyn DiskQueue> {
        self.queue
    }
}

/// Request that was taken from the ring.
#[derive(Default)]
struct InFlight {
    /// Chain of the request; `None` while the tag is free.
    chain: Option<TakenChain>,
    status: StatusLocation,
    is_read: bool,
    /// Ranges of guest memory that a read writes; empty unless written buffers are logged.
    destination: Vec<GuestRange>,
}

/// Location of a request's status.
#[derive(Clone, Copy, Default)]
struct StatusLocation {
    /// Guest-physical address of the status byte.
    status: u64,
    /// Number of device-writable bytes before the status.
    capacity: u64,
}

/// Request ring of a disk over one form of virtqueue (split or packed).
struct DiskEngine<Q> {
    queue: Q,
    kick: Arc<PeerEventFd>,
    /// True if the driver never kicks: the ring must be polled and cannot be armed.
    is_poll_only: bool,
    disk: Arc<DiskProperties>,
    /// Requests in flight, indexed by tag.
    requests: Vec<InFlight>,
    /// Free tags, used as a stack, so that few tags are in use and stay in the cache.
    free_tags: Vec<u32>,
    /// Requests that the worker has returned unexecuted, in the order in which it will receive them
    /// again.
    returned: VecDeque<DiskRequest>,
    buffers: RequestBuffers,
}

impl<Q: OutOfOrderVirtqueue> DiskEngine<Q> {
    fn new(queue: Q, setup: &RingSetup, disk: Arc<DiskProperties>) -> Result<Self, QueueFault> {
        let tags = queue.size();
        Ok(Self {
            kick: kick_eventfd(setup)?,
            is_poll_only: setup.kick.is_none(),
            disk,
            requests: (0..tags).map(|_| InFlight::default()).collect(),
            free_tags: (0..u32::from(tags)).rev().collect(),
            returned: VecDeque::new(),
            buffers: RequestBuffers::new(tags, Arc::clone(queue.queue_state().view.memory())),
            queue,
        })
    }

    /// Takes at most `max` available requests for the disk. Counts chains that the ring completes
    /// itself in `completed`; their number is bounded by the ring's size, because none is returned
    /// during the call.
    fn take_requests(
        &mut self,
        max: usize,
        requests: &mut Vec<DiskRequest>,
        completed: &mut usize,
    ) -> Result<(), RingFault> {
        let mut remaining = max;
        while remaining > 0 && self.queue.fetch()? > 0 {
            let (Some(head), Some(tag)) = (self.queue.peek(), self.free_tags.last().copied())
            else {
                break;
            };
            if self.take_request(head, tag, requests)? {
                self.free_tags.pop();
                remaining -= 1;
            } else {
                *completed += 1;
            }
        }
        self.queue.prefetch_ahead()
    }

    /// Takes one chain as the request `tag`. Returns false if the ring has completed it itself.
    #[inline(always)]
    fn take_request(
        &mut self,
        head: ChainHead,
        tag: u32,
        requests: &mut Vec<DiskRequest>,
    ) -> Result<bool, RingFault> {
        let (header, answer) = self.gather(head, tag)?;
        let mut segment = [0; SEGMENT_BYTES];
        if has_segment(header) {
            self.buffers.read_data_prefix(&mut segment);
        }
        let readable = self.buffers.readable_bytes();
        let parts = RequestBytes { readable, writable: answer.capacity, segment };
        let verdict = validate(&self.disk, self.queue.queue_state().features, header, &parts);
        let chain = self.queue.take(head)?;
        if let Some(under_way) = self.requests.get_mut(tag as usize) {
            under_way.chain = Some(chain);
            under_way.status = answer;
        }
        let (op, range) = match verdict {
            RequestAction::Submit(op, range) if self.assign_payload(tag, op) => (op, range),
            // The payload has too many segments.
            RequestAction::Submit(..) => return Ok(self.complete_locally(tag, STATUS_IO_ERROR)),
            RequestAction::Complete(status) => return Ok(self.complete_locally(tag, status)),
            RequestAction::Identify => return Ok(self.identify(tag)),
        };
        if let Some(under_way) = self.requests.get_mut(tag as usize) {
            under_way.is_read = op == DiskOp::Read;
            under_way.destination.clear();
            if under_way.is_read && self.queue.is_logging() {
                under_way.destination.extend(self.buffers.writable_ranges());
            }
        }
        requests.push(DiskRequest { tag, op, range });
        Ok(true)
    }

    /// Reads the header of a chain, and locates its other buffers and its status byte.
    #[inline(always)]
    fn gather(&mut self, head: ChainHead, tag: u32) -> Result<(Header, StatusLocation), RingFault> {
        let buffers = &mut self.buffers;
        buffers.begin_chain();
        chain::gather(&mut self.queue, head, buffers)?;
        let Some(header) = buffers.header().map(Header::decode) else {
            return Err(self
                .request_fault(head, "the device-readable bytes are fewer than a request header"));
        };
        let Some(status) = buffers.take_status(tag) else {
            return Err(self.request_fault(head, "no device-writable byte for the status"));
        };
        Ok((header, StatusLocation { status, capacity: buffers.writable_bytes() }))
    }

    #[cold]
    fn request_fault(&self, head: ChainHead, reason: &'static str) -> RingFault {
        RingFault::Request { queue: self.queue.queue_state().queue, head: head.index, reason }
    }

    /// Completes a request with a status, without the disk. Returns false, as
    /// [`Self::take_request`] does for such a request.
    #[inline(never)]
    fn complete_locally(&mut self, tag: u32, status: u8) -> bool {
        self.complete_chain(tag, status, 0);
        false
    }

    /// Completes a request with as many bytes of the serial number as its buffers hold. Returns
    /// false, as [`Self::complete_locally`].
    #[inline(never)]
    fn identify(&mut self, tag: u32) -> bool {
        let (serial, queue) = (self.disk.serial(), &self.queue);
        let mark_written = |span: GuestRange| queue.mark_written(span.addr, span.len);
        let written = self.buffers.write_data_prefix(&serial, mark_written);
        self.complete_chain(tag, STATUS_OK, written as u64);
        false
    }

    /// Records the location of the current chain's payload for `tag`. Returns false if the payload
    /// has too many segments.
    #[inline(always)]
    fn assign_payload(&mut self, tag: u32, op: DiskOp) -> bool {
        match op {
            DiskOp::Read => self.buffers.assign_payload(tag, PayloadUse::Destination),
            DiskOp::Write { .. } => self.buffers.assign_payload(tag, PayloadUse::Source),
            DiskOp::Flush
            | DiskOp::Discard
            | DiskOp::WriteZeroes { .. }
            | DiskOp::AllocationStatus { .. } => {
                self.buffers.clear_payload(tag);
                true
            }
        }
    }

    /// Completes the chain of a request, to whose buffers `written` bytes were written without a
    /// gap.
    #[inline(always)]
    fn complete_chain(&mut self, tag: u32, status: u8, written: u64) {
        let Some(under_way) = self.requests.get_mut(tag as usize) else { return };
        let Some(chain) = under_way.chain.take() else { return };
        let StatusLocation { status: address, capacity } = under_way.status;
        self.buffers.write_status(tag, status);
        self.queue.mark_written(address, 1);
        let reported = if written == capacity { written.saturating_add(1) } else { written };
        self.queue.complete_taken(chain, u32::try_from(reported).unwrap_or(u32::MAX));
    }
}

impl<Q: OutOfOrderVirtqueue> DiskQueue for DiskEngine<Q> {
    fn in_flight_max(&self) -> u32 {
        u32::from(self.queue.size())
    }

    fn receive(
        &mut self,
        max: usize,
        requests: &mut Vec<DiskRequest>,
    ) -> Result<usize, QueueFault> {
        self.queue.queue_state().check()?;
        let (before, mut completed) = (requests.len(), 0);
        let returned = self.returned.len().min(max);
        requests.extend(self.returned.drain(..returned));
        let result = self.take_requests(max - returned, requests, &mut completed);
        if completed > 0 {
            self.queue.publish();
        }
        match result {
            Ok(()) => Ok(requests.len() - before),
            Err(fault) => Err(self.queue.queue_state_mut().fail(fault).into()),
        }
    }

    fn payloads(&self) -> &dyn Any {
        self.buffers.payload_table()
    }

    fn zero_payload(&mut self, tag: u32, offset: u64, len: u64) {
        self.buffers.payload_table().zero(tag, offset, len);
    }

    fn complete(&mut self, tag: u32, outcome: DiskOutcome) {
        let Some(under_way) = self.requests.get_mut(tag as usize) else { return };
        if under_way.chain.is_none() {
            return;
        }
        self.free_tags.push(tag);
        self.buffers.clear_payload(tag);
        if self.queue.queue_state().check().is_err() {
            under_way.chain = None;
            return;
        }
        // A failed read may have written part of its payload.
        for span in &under_way.destination {
            self.queue.mark_written(span.addr, span.len);
        }
        let status = virtio_status(outcome);
        let has_written = under_way.is_read && status == STATUS_OK;
        let written = if has_written { under_way.status.capacity } else { 0 };
        self.complete_chain(tag, status, written);
    }

    fn requeue(&mut self, request: DiskRequest) -> bool {
        self.returned.push_back(request);
        true
    }

    fn redelivers_after_drop(&self) -> bool {
        // While written pages are logged the guest moves to another host, which has no record of
        // what is in flight.
        self.queue.records_in_flight() && !self.queue.is_logging()
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        self.queue.publish();
        Ok(self.queue.queue_state().check()?)
    }

    fn arm(&mut self) -> ArmResult {
        if self.is_poll_only || !self.returned.is_empty() {
            ArmResult::Pending
        } else {
            self.queue.arm()
        }
    }

    fn disarm_lazily(&mut self) {
        self.queue.park();
    }

    fn disarm(&mut self) {
        self.queue.park();
        self.kick.clear();
    }

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.kick.as_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        false
    }
}
