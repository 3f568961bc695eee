//! What a client sends: headers and payloads, in whatever pieces.

use std::io::IoSliceMut;
use std::os::fd::OwnedFd;

use rustix::io::{Errno, readv};
use rustix::net::{RecvFlags, recv};
use suimon_nbd::{Incoming, Refused, Request, Transmission};

use crate::pool::{CHUNK_BYTES, Memory};

/// Bytes taken from the socket at once, when it is not known what comes: many short
/// requests, and one copy of their payloads instead of a system call for each.
const AHEAD_BYTES: usize = 256 << 10;

/// The same behind a long payload, which is likely to be followed by another: what is not
/// taken ahead needs no copy.
const AHEAD_BYTES_LONG: usize = 512;

/// What is a long payload, in bytes.
const LONG_BYTES: u32 = 32 << 10;

/// Pieces that the kernel is handed at once.
const PIECES_MAX: usize = 64;

/// A request whose payload is coming.
#[derive(Debug)]
pub(crate) struct Arriving {
    pub(crate) request: Request,
    pub(crate) chunks: Vec<u32>,
    /// Bytes of its payload that are there.
    got: usize,
}

/// What came next.
#[derive(Debug)]
pub(crate) enum Event {
    /// A header; the payload of a write has not been read.
    Header(Request),
    /// A request whose payload is there.
    Whole(Arriving),
    /// To be answered so; its payload is passed over.
    Refused(Refused),
    /// The client says goodbye.
    Disconnect,
    /// Nothing more is there now.
    Nothing,
}

/// Why a connection cannot go on.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InputError {
    /// The client has said goodbye.
    #[error("the client has left")]
    Left,
    /// The other side has closed it.
    #[error("the client closed the connection without saying goodbye")]
    Closed,
    /// What it sends makes no sense.
    #[error(transparent)]
    LostSync(#[from] suimon_nbd::LostSync),
    /// The socket failed.
    #[error("its socket: {0}")]
    Socket(#[from] Errno),
}

/// A client's bytes that were read and not used.
#[derive(Debug)]
pub(crate) struct Input {
    /// Room for what is read; used is what lies from `start` to `end`.
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// A write whose payload is coming.
    arriving: Option<Arriving>,
    /// Bytes to pass over.
    skip: usize,
    /// How much is taken when it is not known what comes.
    ahead: usize,
    /// Whether the socket gave less than there was room for, so that it is empty.
    is_dry: bool,
}

impl Input {
    /// `bytes` were read behind the handshake.
    pub(crate) fn new(mut bytes: Vec<u8>) -> Self {
        let end = bytes.len();
        bytes.resize(end.max(AHEAD_BYTES), 0);
        let ahead = AHEAD_BYTES;
        Self { bytes, start: 0, end, arriving: None, skip: 0, ahead, is_dry: false }
    }

    /// Whether something is there that was not looked at for want of room.
    pub(crate) fn has_bytes(&self) -> bool {
        self.start < self.end
    }

    /// The socket may have something again.
    pub(crate) fn begin_turn(&mut self) {
        self.is_dry = false;
    }

    /// A write's payload goes to these chunks, which hold it.
    pub(crate) fn expect(&mut self, request: Request, chunks: Vec<u32>) {
        let is_long = request.payload_bytes >= LONG_BYTES;
        self.ahead = if is_long { AHEAD_BYTES_LONG } else { AHEAD_BYTES };
        self.arriving = Some(Arriving { request, chunks, got: 0 });
    }

    /// What comes next.
    ///
    /// # Errors
    /// The connection cannot go on.
    pub(crate) fn next(
        &mut self,
        socket: &OwnedFd,
        memory: &Memory,
        transmission: &Transmission,
    ) -> Result<Event, InputError> {
        loop {
            if let Some(mut arriving) = self.arriving.take() {
                if self.fill(socket, memory, &mut arriving)? {
                    return Ok(Event::Whole(arriving));
                }
                self.arriving = Some(arriving);
                return Ok(Event::Nothing);
            }
            let now = self.skip.min(self.end - self.start);
            self.start += now;
            self.skip -= now;
            let at_hand = self.bytes.get(self.start..self.end).unwrap_or_default();
            let incoming = if self.skip > 0 {
                Incoming::Incomplete
            } else {
                transmission.handle_header(at_hand)?
            };
            match incoming {
                Incoming::Incomplete => {
                    if !self.read_ahead(socket)? {
                        return Ok(Event::Nothing);
                    }
                }
                Incoming::Disconnect => return Ok(Event::Disconnect),
                Incoming::Refused(refused) => {
                    self.start += transmission.header_bytes();
                    self.skip = refused.payload_bytes as usize;
                    return Ok(Event::Refused(refused));
                }
                Incoming::Request(request) => {
                    self.start += transmission.header_bytes();
                    return Ok(Event::Header(request));
                }
            }
        }
    }

    /// Reads more; whether anything came.
    fn read_ahead(&mut self, socket: &OwnedFd) -> Result<bool, InputError> {
        // What is left of a header goes to the front.
        self.bytes.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let last = self.end.saturating_add(self.ahead).min(self.bytes.len());
        let room = self.bytes.get_mut(self.end..last).unwrap_or_default();
        let got = receive(socket, &mut [IoSliceMut::new(room)], &mut self.is_dry)?;
        self.end += got.unwrap_or(0);
        Ok(got.is_some())
    }

    /// Fills a payload; whether it is there as a whole.
    fn fill(
        &mut self,
        socket: &OwnedFd,
        memory: &Memory,
        arriving: &mut Arriving,
    ) -> Result<bool, InputError> {
        let all = arriving.request.payload_bytes as usize;
        self.copy(memory, arriving);
        while arriving.got < all {
            let mut pieces: [_; PIECES_MAX] = core::array::from_fn(|_| IoSliceMut::new(&mut []));
            let (mut count, is_whole) = arriving.pieces(memory, &mut pieces);
            // All that was there was used.
            (self.start, self.end) = (0, 0);
            if let (true, Some(behind), Some(room)) =
                (is_whole, pieces.get_mut(count), self.bytes.get_mut(..self.ahead))
            {
                // What comes behind the payload comes with it.
                *behind = IoSliceMut::new(room);
                count += 1;
            }
            let pieces = pieces.get_mut(..count).unwrap_or_default();
            let Some(got) = receive(socket, pieces, &mut self.is_dry)? else { return Ok(false) };
            let now = got.min(all - arriving.got);
            arriving.got += now;
            self.end = got - now;
        }
        Ok(true)
    }

    /// Copies to a payload what of it is there.
    #[allow(unsafe_code, reason = "fills chunks that nobody else has")]
    fn copy(&mut self, memory: &Memory, arriving: &mut Arriving) {
        let all = arriving.request.payload_bytes as usize;
        while arriving.got < all && self.start < self.end {
            let (number, from) = (arriving.got / CHUNK_BYTES, arriving.got % CHUNK_BYTES);
            let Some(&chunk) = arriving.chunks.get(number) else { return };
            let len = (CHUNK_BYTES - from).min(all - arriving.got).min(self.end - self.start);
            // SAFETY: the request was not handed on, so nobody else has its chunks.
            let room = unsafe { memory.part(chunk, from, len) };
            let Some(found) = self.bytes.get(self.start..self.start + len) else { return };
            room.copy_from_slice(found);
            self.start += len;
            arriving.got += len;
        }
    }
}

impl Arriving {
    /// The memory of what is still to come, as far as there is room for pieces: how many
    /// there are, and whether that is all of it.
    #[allow(unsafe_code, reason = "lends chunks that nobody else has")]
    fn pieces<'a>(&self, memory: &'a Memory, pieces: &mut [IoSliceMut<'a>]) -> (usize, bool) {
        let all = self.request.payload_bytes as usize;
        let (first, mut from) = (self.got / CHUNK_BYTES, self.got % CHUNK_BYTES);
        let mut left = all - self.got;
        let mut count = 0;
        for (&chunk, piece) in self.chunks.iter().skip(first).zip(pieces) {
            let len = (CHUNK_BYTES - from).min(left);
            if len == 0 {
                break;
            }
            // SAFETY: the request was not handed on, so nobody else has its chunks, and
            // each is lent once.
            *piece = IoSliceMut::new(unsafe { memory.part(chunk, from, len) });
            left -= len;
            from = 0;
            count += 1;
        }
        (count, left == 0)
    }
}

/// Bytes of the socket, which does not wait; `None` if there are none now.
fn receive(
    socket: &OwnedFd,
    rooms: &mut [IoSliceMut<'_>],
    is_dry: &mut bool,
) -> Result<Option<usize>, InputError> {
    let room: usize = rooms.iter().map(|room| room.len()).sum();
    if *is_dry {
        return Ok(None);
    }
    loop {
        // To look for one piece costs a third less so.
        let got = match rooms {
            [room] => recv(socket, &mut **room, RecvFlags::empty()).map(|(got, _)| got),
            _ => readv(socket, rooms),
        };
        match got {
            Ok(0) => return Err(InputError::Closed),
            Ok(got) => {
                *is_dry = got < room;
                return Ok(Some(got));
            }
            Err(Errno::AGAIN) => return Ok(None),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}
