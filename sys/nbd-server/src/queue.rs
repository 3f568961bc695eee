//! Connection of a client after its handshake, as a queue of a disk.

use std::any::Any;
use std::collections::VecDeque;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll;
use rustix::io::Errno;
use suimon_image::ByteRange;
use suimon_nbd::{
    ByteRange as NbdRange, Command, Extent, ExtentState, NbdError, Negotiated, REPLY_BYTES_MAX,
    Refused, Request, STATUS_BYTES_MIN, Transmission,
};
use suimon_ports::{
    AllocatedExtent, Allocation, DiskOp, DiskOutcome, DiskQueue, DiskRequest, FaultKind, PortFault,
    Wakeup,
};
use suimon_uring::{PayloadTable, PayloadUse, Piece};

use crate::client::Inside;
use crate::input::{Event, Input, InputError};
use crate::output::{Output, Sending};
use crate::pool::{CHUNK_BYTES, CHUNKS, Memory, Pool, SMALL_BYTES};
use crate::slot::{Slot, Work, payload_bytes, work_of};
use crate::untaken;
use crate::watch::SocketWatch;

/// Maximum number of requests of a connection in flight; further ones stay in the socket.
pub const REQUESTS_MAX: u32 = 256;

/// Size in bytes of an extent in the longer of both framings.
const STATUS_EXTENT_BYTES: usize = 16;

/// Size of the socket's send buffer: the replies to the queue depth of most clients, so that
/// sending rarely blocks.
const SEND_BUFFER_BYTES: usize = 1 << 20;

/// Number of unsent replies from which no further request is read.
const REPLIES_MAX: usize = 1024;

/// Connection of a client, as a queue of a disk. Dropping it closes the connection.
pub struct NbdQueue {
    socket: OwnedFd,
    watch: SocketWatch,
    /// True if the last poll returned requests.
    has_brought: bool,
    /// True if the socket reports which replies the client has read.
    is_reading_told: bool,
    /// Error of watching the socket; reported when requests are received.
    unwatchable: Option<Errno>,
    transmission: Transmission,
    memory: Arc<Memory>,
    pool: Pool,
    table: PayloadTable,
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    input: Input,
    output: Output,
    is_blocked: bool,
    /// Request that waits for memory for its payload.
    waiting: Option<Request>,
    /// Requests to be followed by a flush.
    to_flush: Vec<u32>,
    /// Requests that were taken back, in the order in which they are to be received again.
    returned: VecDeque<DiskRequest>,
    _inside: Option<Inside>,
}

impl NbdQueue {
    /// Creates the queue of a connection after its handshake; `rest` was received after it.
    ///
    /// # Errors
    /// Memory or descriptors are exhausted.
    pub fn new(
        socket: impl Into<OwnedFd>,
        negotiated: &Negotiated,
        rest: Vec<u8>,
    ) -> std::io::Result<Self> {
        let socket: OwnedFd = socket.into();
        rustix::io::ioctl_fionbio(&socket, true)?;
        // The system may impose a lower limit.
        rustix::net::sockopt::set_socket_send_buffer_size(&socket, SEND_BUFFER_BYTES)?;
        let memory = Arc::new(Memory::new()?);
        Ok(Self {
            watch: SocketWatch::new(&socket)?,
            has_brought: false,
            is_reading_told: untaken::is_told(&socket),
            socket,
            unwatchable: None,
            transmission: Transmission::new(negotiated),
            table: PayloadTable::new(REQUESTS_MAX, 4, Arc::clone(&memory) as _),
            memory,
            pool: Pool::new(),
            slots: (0..REQUESTS_MAX).map(|_| None).collect(),
            free: (0..REQUESTS_MAX).rev().collect(),
            input: Input::new(rest),
            output: Output::default(),
            is_blocked: false,
            waiting: None,
            to_flush: Vec::new(),
            returned: VecDeque::new(),
            _inside: None,
        })
    }

    /// Replaces the watch by a descriptor that cannot watch the socket.
    #[cfg(test)]
    pub(crate) fn lose_watch(&mut self) {
        self.watch.lose();
    }

    /// Attaches values that count the connection as long as it exists.
    pub(crate) fn counted_by(self, inside: Inside) -> Self {
        Self { _inside: Some(inside), ..self }
    }

    /// Returns true if a request may be read from the socket: a tag is free and fewer than
    /// [`REPLIES_MAX`] replies are unsent.
    fn has_room(&self) -> bool {
        !self.free.is_empty() && self.output.len() < REPLIES_MAX
    }

    /// Returns the sizes of memory kept for later requests: empty lists, and bytes of reply heads.
    #[cfg(test)]
    pub(crate) fn spares(&self) -> (usize, usize) {
        (self.pool.spare_lists(), self.output.head_capacity())
    }

    /// Returns true if a reply is not fully sent.
    #[cfg(test)]
    pub(crate) fn has_replies(&self) -> bool {
        !self.output.is_empty()
    }

    /// Returns the next request that is ready for execution; `None` if there is none.
    fn take(&mut self) -> Result<Option<DiskRequest>, InputError> {
        if let Some(request) = self.returned.pop_front() {
            return Ok(Some(request));
        }
        if let Some(tag) = self.to_flush.pop() {
            let range = ByteRange::new(0, 0);
            return Ok(range.map(|range| DiskRequest { tag, op: DiskOp::Flush, range }));
        }
        while self.has_room() {
            if let Some(request) = self.waiting {
                let Some(chunks) = self.chunks(payload_bytes(&request)) else {
                    return Ok(None);
                };
                self.waiting = None;
                if request.payload_bytes > 0 {
                    self.input.expect(request, chunks);
                } else if let Some(begun) = self.begin(request, chunks) {
                    return Ok(Some(begun));
                }
            }
            match self.input.next(&self.socket, &self.memory, &self.transmission)? {
                Event::Nothing => return Ok(None),
                Event::Header(request) => self.waiting = Some(request),
                Event::Whole(arrived) => {
                    let (request, chunks) = (arrived.request, arrived.chunks);
                    let begun = match request.command {
                        Command::BlockStatusOf { .. } => self.begin_named(request, chunks),
                        _ => self.begin(request, chunks),
                    };
                    if begun.is_some() {
                        return Ok(begun);
                    }
                }
                Event::Refused(refused) => {
                    self.refuse(&refused);
                }
                Event::Disconnect => return Err(InputError::Left),
            }
        }
        Ok(None)
    }

    /// Takes chunks for a payload; `None` if there are too few now. The number of chunks is
    /// sufficient for every payload.
    fn chunks(&mut self, bytes: u64) -> Option<Vec<u32>> {
        self.pool.take(bytes.min(u64::from(CHUNKS) * CHUNK_BYTES as u64))
    }

    fn refuse(&mut self, refused: &Refused) {
        self.output.push(REPLY_BYTES_MAX, |out| refused.encode(out).ok(), Vec::new(), 0);
    }

    /// Begins a request whose payload contains parameters.
    #[allow(unsafe_code, reason = "reads chunks that the client's bytes were put into")]
    fn begin_named(&mut self, request: Request, chunks: Vec<u32>) -> Option<DiskRequest> {
        let bytes = request.payload_bytes as usize;
        let judged = chunks.first().map(|&chunk| {
            // SAFETY: the request was not handed on, so nothing else accesses its chunk, and its
            // payload of a few bytes fits into it.
            let payload = unsafe { self.memory.part(chunk, 0, bytes.min(SMALL_BYTES)) };
            self.transmission.handle_contexts(request, payload)
        });
        self.pool.give_back(chunks);
        match judged? {
            Ok(request) => self.begin(request, Vec::new()),
            Err(refused) => {
                self.refuse(&refused);
                None
            }
        }
    }

    /// Assigns a tag to a request. Requests that need no disk operation are completed.
    fn begin(&mut self, request: Request, chunks: Vec<u32>) -> Option<DiskRequest> {
        let refusal = match work_of(&request.command) {
            Work::Nothing => None,
            Work::Overflow => Some((NbdError::Inval, "the end of the range exceeds 64 bits")),
            Work::Disk(op, range) => match self.free.pop() {
                Some(tag) => return Some(self.begin_on_disk(request, chunks, (tag, op, range))),
                // The number of requests read at a time prevents it.
                None => Some((NbdError::Nomem, "too many requests are in flight")),
            },
        };
        let reply_to = request.reply_to;
        let encode = |out: &mut [u8]| match refusal {
            None => reply_to.done(out).ok(),
            Some((error, text)) => reply_to.error(error, text, out).ok(),
        };
        self.output.push(REPLY_BYTES_MAX, encode, Vec::new(), 0);
        self.pool.give_back(chunks);
        None
    }

    fn begin_on_disk(
        &mut self,
        request: Request,
        chunks: Vec<u32>,
        (tag, op, range): (u32, DiskOp, ByteRange),
    ) -> DiskRequest {
        let usage = if op == DiskOp::Read { PayloadUse::Destination } else { PayloadUse::Source };
        self.describe(tag, usage, payload_bytes(&request), &chunks);
        let is_to_flush = matches!(request.command, Command::Trim { fua: true, .. });
        if let Some(slot) = self.slots.get_mut(tag as usize) {
            *slot = Some(Slot { request, chunks, extents: Vec::new(), is_to_flush });
        }
        DiskRequest { tag, op, range }
    }

    #[allow(unsafe_code, reason = "says where a payload lies")]
    fn describe(&mut self, tag: u32, usage: PayloadUse, bytes: u64, chunks: &[u32]) {
        let memory = &self.memory;
        let mut left = usize::try_from(bytes).unwrap_or(usize::MAX);
        let pieces = chunks.iter().map(|&chunk| {
            let len = left.min(CHUNK_BYTES);
            left -= len;
            Piece { pointer: memory.chunk(chunk), len }
        });
        // SAFETY: the chunks are in memory that the table holds, and belong to this request until
        // its reply; references into them exist before and after, but not meanwhile.
        unsafe { self.table.set(tag, usage, pieces) };
    }

    fn answer(&mut self, slot: Slot, outcome: DiskOutcome) {
        let Slot { request, chunks, extents, .. } = slot;
        let to = request.reply_to;
        let error = match outcome {
            DiskOutcome::Done => None,
            DiskOutcome::Failed => Some((NbdError::Io, "the store of the disk failed the request")),
            DiskOutcome::NoSpace => Some((NbdError::Nospc, "the store of the disk is full")),
            DiskOutcome::Unsupported => {
                Some((NbdError::Notsup, "a fast zero is not possible for this range"))
            }
            DiskOutcome::ReadOnly => Some((NbdError::Perm, "the disk is read-only")),
        };
        if let Some((error, why)) = error {
            self.output.push(REPLY_BYTES_MAX, |out| to.error(error, why, out).ok(), Vec::new(), 0);
        } else if let Command::Read { range, .. } = request.command {
            let head = self.read_head(&request, range);
            let bytes = usize::try_from(range.length).unwrap_or(0);
            return self.output.push(REPLY_BYTES_MAX, head, chunks, bytes);
        } else if let Command::BlockStatus { range, one } = request.command {
            let room = STATUS_BYTES_MIN + STATUS_EXTENT_BYTES * extents.len();
            let transmission = self.transmission;
            let told = |out: &mut [u8]| {
                let mut reply = transmission.block_status(to, range, one, out).ok()?;
                extents.into_iter().map(extent).all(|extent| reply.push(extent));
                Some(reply.finish())
            };
            self.output.push(room, told, Vec::new(), 0);
        } else {
            self.output.push(REPLY_BYTES_MAX, |out| to.done(out).ok(), Vec::new(), 0);
        }
        self.pool.give_back(chunks);
    }

    /// Encodes the head of the only chunk of a read's reply.
    fn read_head(
        &self,
        request: &Request,
        range: NbdRange,
    ) -> impl FnOnce(&mut [u8]) -> Option<usize> + use<> {
        let whole = core::iter::empty();
        let mut chunks = self.transmission.read_chunks(request.reply_to, range, true, whole);
        move |out| chunks.next()?.encode_head(out).ok()
    }

    /// Arms the watch for the events that can be handled.
    fn arm_watch(&mut self) -> Result<(), Errno> {
        let mut wanted = epoll::EventFlags::empty();
        wanted.set(epoll::EventFlags::IN, self.has_room() && self.waiting.is_none());
        wanted.set(epoll::EventFlags::OUT, self.is_blocked);
        self.watch.arm(&self.socket, wanted)
    }

    fn send(&mut self) -> Result<(), Errno> {
        let pool = &mut self.pool;
        let sending =
            self.output.send(&self.socket, &self.memory, |chunks| pool.give_back(chunks))?;
        self.is_blocked = sending == Sending::Blocked;
        Ok(())
    }
}

impl DiskQueue for NbdQueue {
    fn tags(&self) -> u32 {
        REQUESTS_MAX
    }

    fn receive(&mut self, max: usize, requests: &mut Vec<DiskRequest>) -> Result<usize, PortFault> {
        if let Some(errno) = self.unwatchable {
            let detail = format!("the connection cannot be polled: {errno}");
            return Err(PortFault { kind: FaultKind::Host, detail });
        }
        self.watch.handle_look(&self.socket, core::mem::take(&mut self.has_brought));
        self.input.begin_turn();
        if self.is_blocked {
            self.send().map_err(|errno| gone(&errno))?;
        }
        for taken in 0..max {
            match self.take() {
                Ok(Some(request)) => {
                    self.has_brought = true;
                    requests.push(request);
                }
                Ok(None) => return Ok(taken),
                Err(InputError::Left) => {
                    let detail = "the client disconnected".to_owned();
                    return Err(PortFault { kind: FaultKind::Gone, detail });
                }
                Err(InputError::LostSync(error)) => {
                    return Err(PortFault { kind: FaultKind::Hostile, detail: error.to_string() });
                }
                Err(error) => return Err(gone(&error)),
            }
        }
        Ok(max)
    }

    fn payloads(&self) -> &dyn Any {
        &self.table
    }

    fn zero_payload(&mut self, tag: u32, from: u64, len: u64) {
        self.table.zero(tag, from, len);
    }

    fn tell_allocation(&mut self, tag: u32, extents: &[AllocatedExtent]) {
        if let Some(Some(slot)) = self.slots.get_mut(tag as usize) {
            slot.extents.extend_from_slice(extents);
        }
    }

    fn complete(&mut self, tag: u32, outcome: DiskOutcome) {
        let Some(place) = self.slots.get_mut(tag as usize) else { return };
        let Some(mut slot) = place.take() else { return };
        if slot.is_to_flush && outcome == DiskOutcome::Done {
            slot.is_to_flush = false;
            *place = Some(slot);
            self.to_flush.push(tag);
            return;
        }
        self.free.push(tag);
        self.answer(slot, outcome);
    }

    fn take_back(&mut self, request: DiskRequest) -> bool {
        self.returned.push_back(request);
        true
    }

    fn flush(&mut self) -> Result<(), PortFault> {
        if self.output.is_empty() {
            return Ok(());
        }
        self.send().map_err(|errno| gone(&errno))
    }

    fn arm(&mut self) -> Wakeup {
        let can_take = self.has_room() && self.waiting.is_none() && self.input.has_bytes();
        if !self.to_flush.is_empty() || !self.returned.is_empty() || can_take {
            return Wakeup::Pending;
        }
        self.unwatchable = self.arm_watch().err();
        if self.unwatchable.is_some() { Wakeup::Pending } else { Wakeup::Armed }
    }

    fn disarm(&mut self) {}

    fn wake_fd(&self) -> BorrowedFd<'_> {
        self.watch.as_fd()
    }

    fn is_polled_by_fd(&self) -> bool {
        true
    }

    fn has_untaken_answers(&self) -> bool {
        self.is_reading_told && !self.is_blocked && untaken::has_untaken(&self.socket)
    }
}

/// Converts an extent to the context `base:allocation`.
fn extent(of: AllocatedExtent) -> Extent {
    let state = match of.allocation {
        Allocation::Data => ExtentState::DATA,
        Allocation::Hole => ExtentState::HOLE | ExtentState::ZERO,
    };
    Extent { length: of.len, state }
}

fn gone(error: &impl ToString) -> PortFault {
    PortFault { kind: FaultKind::Gone, detail: error.to_string() }
}
