//! Queue of the requests of a connection after its handshake.

use std::any::Any;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;
use rustix::io::Errno;
use suimon_image::ByteRange;
use suimon_nbd::{NbdCommand, NegotiatedParameters, Request, RequestParser};
use suimon_ports::{
    AllocationExtent, ArmResult, DiskOp, DiskOutcome, DiskQueue, DiskRequest, FaultKind, QueueFault,
};
use suimon_uring::PayloadTable;

use crate::accounting::ConnectionAccount;
use crate::in_flight_request::{InFlightRequest, payload_bytes};
use crate::input::{Input, InputError, InputEvent};
use crate::memory::{CHUNK_BYTES, CHUNKS, Memory};
use crate::output::{Output, SendResult};
use crate::pool::Pool;
use crate::queue_resources::QueueResources;
use crate::split_request::{Phase, SplitRequest};
use crate::unread;
use crate::watch::SocketWatch;

/// Maximum number of requests of a connection in flight. Further requests are not received from the
/// socket.
pub const REQUESTS_MAX: u32 = 256;

/// Size of the socket's send buffer in bytes: the replies to the queue depth of most clients, so
/// that sending rarely blocks.
const SEND_BUFFER_BYTES: usize = 1 << 20;

/// Number of unsent replies at which no further request is received.
const REPLIES_MAX: usize = 1024;

/// Size of the heads of unsent replies in bytes at which no further request is received.
const HEADS_BYTES_MAX: usize = 64 << 10;

/// Connection of a client, as a queue of a disk. Dropping it closes the connection.
pub struct NbdQueue {
    /// Socket of the connection. Closed before the guard in `_resources`.
    pub(crate) socket: OwnedFd,
    pub(crate) watch: SocketWatch,
    /// True if the last poll returned requests.
    pub(crate) last_poll_had_requests: bool,
    /// True if the socket reports which replies the client has read.
    pub(crate) is_reading_reported: bool,
    /// Error of watching the socket, which the next receive reports.
    pub(crate) watch_error: Option<Errno>,
    /// Reason why the connection must end, which the next receive or send reports.
    pub(crate) end_reason: Option<&'static str>,
    pub(crate) request_parser: RequestParser,
    /// True if the client has negotiated structured or extended replies.
    pub(crate) has_chunks: bool,
    pub(crate) memory: Arc<Memory>,
    pub(crate) pool: Pool,
    pub(crate) table: PayloadTable,
    pub(crate) slots: Vec<Option<InFlightRequest>>,
    pub(crate) free_slots: Vec<u32>,
    pub(crate) input: Input,
    pub(crate) output: Output,
    pub(crate) is_output_blocked: bool,
    /// Request that waits for buffer memory for its payload.
    pub(crate) waiting_request: Option<Request>,
    /// True if the waiting request was already counted as delayed for lack of memory.
    pub(crate) is_shortage_recorded: bool,
    /// Request that is processed in parts. The connection has no other request meanwhile.
    pub(crate) split_request: Option<SplitRequest>,
    /// Tags of executed trims with forced unit access. The worker receives a flush for each of them
    /// next.
    pub(crate) flush_tags: Vec<u32>,
    /// Requests that the worker has returned unexecuted, in the order in which it will receive them
    /// again.
    pub(crate) returned_requests: VecDeque<DiskRequest>,
    pub(crate) _resources: Option<QueueResources>,
}

impl NbdQueue {
    /// Creates the queue of a connection after its handshake. `unparsed` contains bytes received
    /// after the handshake. `share` is the account that the buffers of the queue count towards.
    ///
    /// # Errors
    /// Memory or descriptors are exhausted.
    pub fn new(
        socket: impl Into<OwnedFd>,
        negotiated: &NegotiatedParameters,
        unparsed: Vec<u8>,
        share: Arc<ConnectionAccount>,
    ) -> std::io::Result<Self> {
        let socket: OwnedFd = socket.into();
        rustix::io::ioctl_fionbio(&socket, true)?;
        // The system may impose a lower limit.
        rustix::net::sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES)?;
        let memory = Arc::new(Memory::new()?);
        Ok(Self {
            watch: SocketWatch::new(&socket)?,
            last_poll_had_requests: false,
            is_reading_reported: unread::reports_unread_data(&socket),
            socket,
            watch_error: None,
            end_reason: None,
            request_parser: RequestParser::new(negotiated),
            has_chunks: negotiated.framing.has_chunks(),
            table: PayloadTable::new(REQUESTS_MAX, 4, Arc::clone(&memory) as _),
            memory,
            pool: Pool::new(share),
            slots: (0..REQUESTS_MAX).map(|_| None).collect(),
            free_slots: (0..REQUESTS_MAX).rev().collect(),
            input: Input::new(unparsed),
            output: Output::default(),
            is_output_blocked: false,
            waiting_request: None,
            is_shortage_recorded: false,
            split_request: None,
            flush_tags: Vec::new(),
            returned_requests: VecDeque::new(),
            _resources: None,
        })
    }

    /// Replaces the watch by a descriptor that cannot watch the socket.
    #[cfg(test)]
    pub(crate) fn lose_watch(&mut self) {
        self.watch.lose();
    }

    /// Attaches values that must exist as long as the queue.
    pub(crate) fn with_resources(mut self, inside: QueueResources) -> Self {
        self.input.guard.clone_from(&inside.guard);
        Self { _resources: Some(inside), ..self }
    }

    /// Returns true if a request may be read from the socket: a tag is free, fewer than
    /// [`REPLIES_MAX`] replies are unsent, and their heads have fewer than [`HEADS_BYTES_MAX`]
    /// bytes.
    fn has_room(&self) -> bool {
        let is_read = self.output.len() < REPLIES_MAX && self.output.head_bytes() < HEADS_BYTES_MAX;
        !self.free_slots.is_empty() && is_read
    }

    /// Returns true if the connection can continue without an event of its socket or its disk.
    fn can_continue(&self) -> bool {
        match (&self.split_request, &self.waiting_request) {
            (Some(parts), _) => match parts.phase {
                Phase::AwaitingMemory => self.pool.fits(parts.part_bytes()),
                Phase::Receiving => self.input.has_bytes(),
                Phase::OnDisk => false,
            },
            _ if !self.has_room() => false,
            (None, Some(request)) => {
                self.pool.fits(payload_bytes(request)) || self.parts_of(request).is_some()
            }
            (None, None) => self.input.has_bytes(),
        }
    }

    /// Returns the sizes of memory kept for later requests: empty lists, and bytes of reply heads.
    #[cfg(test)]
    pub(crate) fn spares(&self) -> (usize, usize) {
        (self.pool.spare_lists(), self.output.head_capacity())
    }

    /// Returns true if a reply remains to be sent, completely or in part.
    #[cfg(test)]
    pub(crate) fn has_replies(&self) -> bool {
        !self.output.is_empty()
    }

    /// Returns the next request for the disk; `None` if none is ready.
    ///
    /// # Errors
    /// The connection has ended.
    fn take(&mut self) -> Result<Option<DiskRequest>, InputError> {
        if let Some(request) = self.returned_requests.pop_front() {
            return Ok(Some(request));
        }
        if let Some(tag) = self.flush_tags.pop() {
            let range = ByteRange::new(0, 0);
            return Ok(range.map(|range| DiskRequest { tag, op: DiskOp::Flush, range }));
        }
        loop {
            if self.split_request.is_some() {
                return self.take_part();
            }
            if !self.has_room() {
                return Ok(None);
            }
            if let Some(request) = self.waiting_request {
                let Some(chunks) = self.take_chunks(payload_bytes(&request)) else {
                    if !core::mem::replace(&mut self.is_shortage_recorded, true) {
                        self.pool.record_shortage();
                    }
                    self.split_request = self.parts_of(&request);
                    if self.split_request.is_some() {
                        (self.waiting_request, self.is_shortage_recorded) = (None, false);
                        continue;
                    }
                    return Ok(None);
                };
                (self.waiting_request, self.is_shortage_recorded) = (None, false);
                if request.payload_bytes > 0 {
                    self.input.expect_payload(request, chunks);
                } else if let Some(started) = self.begin(request, chunks) {
                    return Ok(Some(started));
                }
            }
            match self.input.next_event(&self.socket, &self.memory, &self.request_parser)? {
                InputEvent::Incomplete => return Ok(None),
                InputEvent::Header(request) => self.waiting_request = Some(request),
                InputEvent::CompleteWrite(arrived) => {
                    let (request, chunks) = (arrived.request, arrived.chunks);
                    let started = match request.command {
                        NbdCommand::BlockStatusWithPayload { .. } => {
                            self.begin_block_status(request, chunks)
                        }
                        _ => self.begin(request, chunks),
                    };
                    if started.is_some() {
                        return Ok(started);
                    }
                }
                InputEvent::Rejected(refused) => {
                    self.queue_error_reply(&refused);
                }
                InputEvent::Disconnect => return Err(InputError::DisconnectRequested),
            }
        }
    }

    /// Takes memory chunks for a payload of `bytes` bytes. Returns `None` if too few are free, or
    /// the limits on buffer memory permit no more. The total number of chunks suffices for every
    /// payload.
    pub(crate) fn take_chunks(&mut self, bytes: u64) -> Option<Vec<u32>> {
        let Self { pool, memory, .. } = self;
        let bytes = bytes.min(u64::from(CHUNKS) * CHUNK_BYTES as u64);
        pool.take(bytes, &mut |chunks| memory.release(&chunks))
    }

    /// Returns the state of a request that is to be processed in parts. Returns `None` if the
    /// request needs no parts, or the client has not received all replies to earlier requests.
    fn parts_of(&self, request: &Request) -> Option<SplitRequest> {
        let is_first = self.free_slots.len() == REQUESTS_MAX as usize && self.output.is_empty();
        if is_first && self.pool.is_unused() { SplitRequest::new(*request) } else { None }
    }

    /// Watches the socket for the events that the queue can process now.
    fn arm_watch(&mut self) -> Result<(), Errno> {
        let mut events = epoll::EventFlags::empty();
        let is_reading = match &self.split_request {
            Some(parts) => parts.phase == Phase::Receiving,
            None => self.has_room() && self.waiting_request.is_none(),
        };
        events.set(epoll::EventFlags::IN, is_reading);
        events.set(epoll::EventFlags::OUT, self.is_output_blocked);
        self.watch.arm(&self.socket, events)
    }

    fn send(&mut self) -> Result<(), QueueFault> {
        let pool = &mut self.pool;
        let sending = self.output.send(&self.socket, &self.memory, |chunks| pool.release(chunks));
        self.is_output_blocked =
            sending.map_err(|errno| disconnected(&errno))? == SendResult::Blocked;
        Ok(())
    }

    /// Returns an error if the connection must end.
    fn check(&self) -> Result<(), QueueFault> {
        self.end_reason.map_or(Ok(()), |reason| Err(disconnected(&reason)))
    }
}

impl DiskQueue for NbdQueue {
    fn in_flight_max(&self) -> u32 {
        REQUESTS_MAX
    }

    fn receive(
        &mut self,
        max: usize,
        requests: &mut Vec<DiskRequest>,
    ) -> Result<usize, QueueFault> {
        if let Some(errno) = self.watch_error {
            let detail = format!("the connection cannot be polled: {errno}");
            return Err(QueueFault { kind: FaultKind::SystemCallFailed, detail });
        }
        self.check()?;
        self.watch.record_poll(&self.socket, core::mem::take(&mut self.last_poll_had_requests));
        self.input.begin_poll();
        if self.is_output_blocked {
            self.send()?;
        }
        for count in 0..max {
            match self.take() {
                Ok(Some(request)) => {
                    self.last_poll_had_requests = true;
                    requests.push(request);
                }
                Ok(None) => return Ok(count),
                Err(InputError::DisconnectRequested) => {
                    let detail = "the client disconnected".to_owned();
                    return Err(QueueFault { kind: FaultKind::Disconnected, detail });
                }
                Err(error @ (InputError::LostSync(_) | InputError::DescriptorAttached)) => {
                    return Err(QueueFault {
                        kind: FaultKind::ProtocolViolation,
                        detail: error.to_string(),
                    });
                }
                Err(error) => return Err(disconnected(&error)),
            }
        }
        Ok(max)
    }

    fn payloads(&self) -> &dyn Any {
        &self.table
    }

    fn zero_payload(&mut self, tag: u32, offset: u64, len: u64) {
        self.table.zero(tag, offset, len);
    }

    fn set_allocation(&mut self, tag: u32, extents: &[AllocationExtent]) {
        if let Some(Some(slot)) = self.slots.get_mut(tag as usize) {
            slot.extents.extend_from_slice(extents);
        }
    }

    fn complete(&mut self, tag: u32, outcome: DiskOutcome) {
        let Some(entry) = self.slots.get_mut(tag as usize) else { return };
        let Some(mut slot) = entry.take() else { return };
        if slot.requires_flush && outcome == DiskOutcome::Done {
            slot.requires_flush = false;
            *entry = Some(slot);
            self.flush_tags.push(tag);
            return;
        }
        self.free_slots.push(tag);
        match self.split_request {
            Some(parts) => self.complete_part(parts, slot, outcome),
            None => self.queue_reply(slot, outcome),
        }
    }

    fn requeue(&mut self, request: DiskRequest) -> bool {
        self.returned_requests.push_back(request);
        true
    }

    fn flush(&mut self) -> Result<(), QueueFault> {
        self.check()?;
        if self.output.is_empty() {
            return Ok(());
        }
        self.send()
    }

    fn arm(&mut self) -> ArmResult {
        let has_work = !self.flush_tags.is_empty() || !self.returned_requests.is_empty();
        if has_work || self.end_reason.is_some() || self.can_continue() {
            return ArmResult::Pending;
        }
        self.watch_error = self.arm_watch().err();
        if self.watch_error.is_some() { ArmResult::Pending } else { ArmResult::Armed }
    }

    fn disarm(&mut self) {}

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        true
    }

    fn release_unused_buffers(&mut self) -> bool {
        let Self { pool, memory, .. } = self;
        let has_chunks = pool.release_unused(&mut |chunks| memory.release(&chunks));
        let has_bytes = self.input.release_unused();
        self.output.release_unused();
        has_chunks || has_bytes
    }

    fn has_unconsumed_completions(&self) -> bool {
        self.is_reading_reported && !self.is_output_blocked && unread::has_unread_data(&self.socket)
    }
}

fn disconnected(error: &impl ToString) -> QueueFault {
    QueueFault { kind: FaultKind::Disconnected, detail: error.to_string() }
}
