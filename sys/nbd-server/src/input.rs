//! Parsing of a client's byte stream into requests and payloads.

use std::io::IoSliceMut;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::{Errno, readv};
use rustix::net::{RecvFlags, recv};
use suimon_nbd::{ParsedHeader, RejectedRequest, Request, RequestParser};
use suimon_socket_runtime::DescriptorGuard;

use crate::limit_level::READ_AHEAD_BYTES;
use crate::memory::{CHUNK_BYTES, Memory};

/// Number of bytes received in addition to a long payload. Another long payload is likely to
/// follow, and data that is not received in advance needs no copy.
const AHEAD_BYTES_LONG: usize = 512;

/// Number of bytes received at once by a connection without a buffer. A connection allocates its
/// buffer on receipt of data, and frees it when idle.
const FIRST_BYTES: usize = 4 << 10;

/// Minimum length in bytes of a long payload.
const LONG_BYTES: u32 = 32 << 10;

/// Maximum number of memory segments per system call.
const PIECES_MAX: usize = 64;

/// Write request, and the part of its payload that was received.
#[derive(Debug)]
pub(crate) struct PartialWrite {
    pub(crate) request: Request,
    pub(crate) chunks: Vec<u32>,
    /// Bytes of the payload received so far.
    received: usize,
}

/// Next event of the stream.
#[derive(Debug)]
pub(crate) enum InputEvent {
    /// Request without its payload: the header was received.
    Header(Request),
    /// Write request whose payload was received completely.
    CompleteWrite(PartialWrite),
    /// Invalid request, which needs an error reply. Its payload is skipped.
    Rejected(RejectedRequest),
    /// Request to disconnect (`NBD_CMD_DISC`).
    Disconnect,
    /// No complete message is available now.
    Incomplete,
}

/// Reason why a connection ended.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    /// The client sent a disconnect request.
    #[error("the client disconnected")]
    DisconnectRequested,
    /// The peer closed the connection.
    #[error("the client closed the connection without NBD_CMD_DISC")]
    ConnectionClosed,
    /// Invalid message: the start of the next message is unknown.
    #[error(transparent)]
    LostSync(#[from] suimon_nbd::DesynchronizedError),
    /// The client attached a descriptor (`SCM_RIGHTS`) to its data.
    #[error("the client attached a descriptor to its data")]
    DescriptorAttached,
    /// A system call on the socket failed.
    #[error("the socket failed: {0}")]
    Socket(#[from] Errno),
}

/// Bytes of a client that were received and not parsed yet.
#[derive(Debug)]
pub(crate) struct Input {
    /// Receive buffer; the bytes between `start` and `end` are received and not parsed. Shorter
    /// than [`READ_AHEAD_BYTES`] if nothing was received since it was freed.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Write with a partly received payload.
    arriving: Option<PartialWrite>,
    /// Number of bytes to discard: the remainder of a rejected request's payload.
    skip: usize,
    /// Maximum number of bytes to receive at once while the length of the next message is unknown.
    ahead: usize,
    /// True if the last call received less than requested, so that the socket was empty.
    is_dry: bool,
    /// True if the received bytes are an incomplete header.
    is_incomplete: bool,
    /// True if data was received since unused memory was last released.
    was_used: bool,
    /// Guard through which data is received; `None` if the kernel refuses descriptors on the
    /// socket.
    pub(crate) guard: Option<Arc<DescriptorGuard>>,
}

impl Input {
    /// Creates the input with the bytes received after the handshake.
    pub(crate) fn new(bytes: Vec<u8>) -> Self {
        Self {
            start: 0,
            end: bytes.len(),
            bytes,
            arriving: None,
            skip: 0,
            ahead: READ_AHEAD_BYTES,
            is_dry: false,
            is_incomplete: false,
            was_used: true,
            guard: None,
        }
    }

    /// Returns true if received bytes were not parsed yet, because the connection cannot accept
    /// another request.
    pub(crate) fn has_bytes(&self) -> bool {
        self.start < self.end && !self.is_incomplete
    }

    /// Frees the buffer if no data was received since the last call. Returns true if the buffer
    /// remains, so that a later call may free it.
    pub(crate) fn release_unused(&mut self) -> bool {
        let is_empty = self.start == self.end;
        if is_empty && !self.was_used {
            self.bytes = Vec::new();
            (self.start, self.end) = (0, 0);
        }
        self.was_used = false;
        is_empty && !self.bytes.is_empty()
    }

    /// Discards the next `bytes` bytes of the stream: the remainder of a payload.
    pub(crate) fn skip(&mut self, bytes: u64) {
        self.skip = self.skip.saturating_add(usize::try_from(bytes).unwrap_or(usize::MAX));
    }

    /// Begins an iteration of the worker: the socket may have data again.
    pub(crate) fn begin_poll(&mut self) {
        self.is_dry = false;
    }

    /// Sets the memory chunks that receive the payload of `request`.
    pub(crate) fn expect_payload(&mut self, request: Request, chunks: Vec<u32>) {
        let is_long = request.payload_bytes >= LONG_BYTES;
        self.ahead = if is_long { AHEAD_BYTES_LONG } else { READ_AHEAD_BYTES };
        self.arriving = Some(PartialWrite { request, chunks, received: 0 });
    }

    /// Returns the next event.
    ///
    /// # Errors
    /// The connection has ended.
    pub(crate) fn next_event(
        &mut self,
        socket: &OwnedFd,
        memory: &Memory,
        transmission: &RequestParser,
    ) -> Result<InputEvent, InputError> {
        self.is_incomplete = false;
        loop {
            if let Some(mut arriving) = self.arriving.take() {
                if self.fill(socket, memory, &mut arriving)? {
                    return Ok(InputEvent::CompleteWrite(arriving));
                }
                self.arriving = Some(arriving);
                return Ok(InputEvent::Incomplete);
            }
            let now = self.skip.min(self.end - self.start);
            self.start += now;
            self.skip -= now;
            let current = self.bytes.get(self.start..self.end).unwrap_or_default();
            let incoming = if self.skip > 0 {
                ParsedHeader::Incomplete
            } else {
                transmission.parse_header(current)?
            };
            match incoming {
                ParsedHeader::Incomplete => {
                    if !self.read_ahead(socket)? {
                        self.is_incomplete = true;
                        return Ok(InputEvent::Incomplete);
                    }
                }
                ParsedHeader::Disconnect => return Ok(InputEvent::Disconnect),
                ParsedHeader::Rejected(refused) => {
                    self.start += transmission.header_bytes();
                    self.skip = refused.payload_bytes as usize;
                    return Ok(InputEvent::Rejected(refused));
                }
                ParsedHeader::Request(request) => {
                    self.start += transmission.header_bytes();
                    return Ok(InputEvent::Header(request));
                }
            }
        }
    }

    /// Receives more bytes into the buffer. Returns true if there were any.
    fn read_ahead(&mut self, socket: &OwnedFd) -> Result<bool, InputError> {
        if self.bytes.len() < READ_AHEAD_BYTES {
            if self.start == self.end {
                return self.read_first(socket);
            }
            self.bytes.resize(READ_AHEAD_BYTES, 0);
        }
        // An incomplete header is moved to the front.
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let last = self.end.saturating_add(self.ahead).min(self.bytes.len());
        let space = self.bytes.get_mut(self.end..last).unwrap_or_default();
        let guard = self.guard.as_deref();
        let received = receive(socket, &mut [IoSliceMut::new(space)], &mut self.is_dry, guard)?;
        self.end += received.unwrap_or(0);
        self.was_used |= received.is_some();
        Ok(received.is_some())
    }

    /// Receives the first bytes after the buffer was freed, and allocates a buffer for them.
    /// Returns true if there were any.
    fn read_first(&mut self, socket: &OwnedFd) -> Result<bool, InputError> {
        let mut first = [0; FIRST_BYTES];
        let guard = self.guard.as_deref();
        let count = receive(socket, &mut [IoSliceMut::new(&mut first)], &mut self.is_dry, guard)?;
        let Some(count) = count else { return Ok(false) };
        self.bytes = vec![0; READ_AHEAD_BYTES];
        for (byte, received) in self.bytes.iter_mut().zip(first.iter().take(count)) {
            *byte = *received;
        }
        (self.start, self.end, self.was_used) = (0, count, true);
        Ok(true)
    }

    /// Receives a payload. Returns true if it is complete.
    fn fill(
        &mut self,
        socket: &OwnedFd,
        memory: &Memory,
        arriving: &mut PartialWrite,
    ) -> Result<bool, InputError> {
        let total = arriving.request.payload_bytes as usize;
        self.copy(memory, arriving);
        while arriving.received < total {
            let mut slices: [_; PIECES_MAX] = core::array::from_fn(|_| IoSliceMut::new(&mut []));
            let (mut count, is_whole) = arriving.pieces(memory, &mut slices);
            // All received bytes were parsed.
            (self.start, self.end) = (0, 0);
            if let (true, Some(after_payload), Some(space)) =
                (is_whole, slices.get_mut(count), self.bytes.get_mut(..self.ahead))
            {
                // The same call also receives bytes after the payload.
                *after_payload = IoSliceMut::new(space);
                count += 1;
            }
            let slices = slices.get_mut(..count).unwrap_or_default();
            let received_bytes = receive(socket, slices, &mut self.is_dry, self.guard.as_deref())?;
            let Some(received_bytes) = received_bytes else { return Ok(false) };
            let now = received_bytes.min(total - arriving.received);
            arriving.received += now;
            self.end = received_bytes - now;
            self.was_used = true;
        }
        Ok(true)
    }

    /// Copies payload bytes from the receive buffer to the chunks of `arriving`.
    #[allow(unsafe_code, reason = "fills chunks that nobody else has")]
    fn copy(&mut self, memory: &Memory, arriving: &mut PartialWrite) {
        let total = arriving.request.payload_bytes as usize;
        while arriving.received < total && self.start < self.end {
            let (number, offset) =
                (arriving.received / CHUNK_BYTES, arriving.received % CHUNK_BYTES);
            let Some(&chunk) = arriving.chunks.get(number) else { return };
            let len =
                (CHUNK_BYTES - offset).min(total - arriving.received).min(self.end - self.start);
            // SAFETY: the request was not passed on yet, so nothing else accesses its chunks.
            let target = unsafe { memory.chunk_slice(chunk, offset, len) };
            let Some(source) = self.bytes.get(self.start..self.start + len) else { return };
            target.copy_from_slice(source);
            self.start += len;
            arriving.received += len;
        }
    }
}

impl PartialWrite {
    /// Fills `slices` with the memory of the payload's missing bytes. Returns the number of slices,
    /// and true if they cover all missing bytes.
    #[allow(unsafe_code, reason = "lends chunks that nobody else has")]
    fn pieces<'a>(&self, memory: &'a Memory, slices: &mut [IoSliceMut<'a>]) -> (usize, bool) {
        let total = self.request.payload_bytes as usize;
        let (first, mut offset) = (self.received / CHUNK_BYTES, self.received % CHUNK_BYTES);
        let mut remaining = total - self.received;
        let mut count = 0;
        for (&chunk, slice) in self.chunks.iter().skip(first).zip(slices) {
            let len = (CHUNK_BYTES - offset).min(remaining);
            if len == 0 {
                break;
            }
            // SAFETY: the request was not passed on yet, so nothing else accesses its chunks, and
            // each chunk is borrowed once.
            *slice = IoSliceMut::new(unsafe { memory.chunk_slice(chunk, offset, len) });
            remaining -= len;
            offset = 0;
            count += 1;
        }
        (count, remaining == 0)
    }
}

/// Receives bytes without blocking. Returns their number; `None` if there are none. Sets `is_dry`
/// if the socket is empty afterwards.
///
/// # Errors
/// The connection has ended.
fn receive(
    socket: &OwnedFd,
    rooms: &mut [IoSliceMut<'_>],
    is_dry: &mut bool,
    guard: Option<&DescriptorGuard>,
) -> Result<Option<usize>, InputError> {
    let capacity: usize = rooms.iter().map(|slice| slice.len()).sum();
    if *is_dry {
        return Ok(None);
    }
    loop {
        // For a single segment, recv takes a third less time than readv.
        let result = match (guard, &mut *rooms) {
            (Some(guard), rooms) => receive_guarded(socket, rooms, guard)?,
            (None, [slice]) => {
                recv(socket, &mut **slice, RecvFlags::empty()).map(|(count, _)| count)
            }
            (None, rooms) => readv(socket, rooms),
        };
        match result {
            Ok(0) => return Err(InputError::ConnectionClosed),
            Ok(count) => {
                *is_dry = count < capacity;
                return Ok(Some(count));
            }
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Receives bytes from a client that may attach descriptors. The inner result is that of the system
/// call.
///
/// # Errors
/// The client attached a descriptor.
fn receive_guarded(
    socket: &OwnedFd,
    rooms: &mut [IoSliceMut<'_>],
    guard: &DescriptorGuard,
) -> Result<Result<usize, Errno>, InputError> {
    match guard.receive(socket.as_fd(), rooms) {
        Ok(count) => Ok(Ok(count)),
        Err(error) => match Errno::from_io_error(&error) {
            Some(errno) => Ok(Err(errno)),
            None => Err(InputError::DescriptorAttached),
        },
    }
}
