//! From a request's header to what is to be done (section "Transmission").

use thiserror::Error;

use crate::chunk::ReadChunks;
use crate::command::{ByteRange, Command, Request};
use crate::extent::Extent;
use crate::flags::TransmissionFlags;
use crate::framing::Framing;
use crate::handshake::Negotiated;
use crate::header::{Header, NoHeader, REQUEST_BYTES, REQUEST_BYTES_EXTENDED, flag, kind};
use crate::octets::{NoRoom, Reader};
use crate::refused::Refused;
use crate::reply::ReplyTo;
use crate::request_error::RequestError;
use crate::status::{ALLOCATION_CONTEXT, StatusReply};

/// Most bytes that follow a header: longer ones end the connection. As much is said to be
/// understood everywhere (section "Size constraints").
pub const PAYLOAD_BYTES_MAX: u32 = 32 * 1024 * 1024;

/// Bytes of a payload that names one context: how many bytes of the export, and its number.
const CONTEXTS_BYTES: u32 = 12;

/// What a header says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incoming {
    /// It is not all there; [`Transmission::header_bytes`] are needed.
    Incomplete,
    /// To be carried out, once its payload is there.
    Request(Request),
    /// To be answered with an error, and its payload thrown away.
    Refused(Refused),
    /// `NBD_CMD_DISC`: the connection ends once all that was asked for before is answered.
    /// There is no reply.
    Disconnect,
}

/// Where the next header begins is not known, or too far away to be waited for: the
/// connection has to be closed. Offsets are in bytes from the beginning of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LostSync {
    /// Something else is where a header should begin.
    #[error("magic of a request at offset 0 is {found:#010x}, not {expected:#010x}; close")]
    Magic {
        /// What there is.
        found: u32,
        /// What belongs there.
        expected: u32,
    },
    /// More bytes follow than any client sends.
    #[error(
        "payload of command {kind} (length at offset 24) has {bytes} bytes, not {max} or fewer; close"
    )]
    PayloadTooLong {
        /// The number of the command.
        kind: u16,
        /// How many bytes.
        bytes: u64,
        /// The most there may be.
        max: u32,
    },
}

/// The server's side of a connection after its handshake. Small, and changes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmission {
    framing: Framing,
    flags: TransmissionFlags,
    base_allocation: bool,
    size: u64,
    block: u32,
    payload_max: u32,
}

impl Transmission {
    /// What follows this handshake.
    pub fn new(negotiated: &Negotiated) -> Self {
        let sizes = negotiated.export.block_sizes();
        Self {
            framing: negotiated.framing,
            flags: negotiated.flags,
            base_allocation: negotiated.base_allocation,
            size: negotiated.export.size(),
            block: sizes.min,
            payload_max: sizes.payload_max,
        }
    }

    /// Bytes of each request's header.
    pub const fn header_bytes(&self) -> usize {
        if self.framing.is_extended() { REQUEST_BYTES_EXTENDED } else { REQUEST_BYTES }
    }

    /// Reads the header at the front of `bytes`, and judges it. The payload that it speaks
    /// of comes behind, and the next header behind that.
    ///
    /// # Errors
    /// The connection cannot go on.
    #[inline]
    pub fn handle_header(&self, bytes: &[u8]) -> Result<Incoming, LostSync> {
        let header = match Header::read(self.framing, bytes) {
            Ok(header) => header,
            Err(NoHeader::Incomplete) => return Ok(Incoming::Incomplete),
            Err(NoHeader::Magic { found, expected }) => {
                return Err(LostSync::Magic { found, expected });
            }
        };
        if header.kind == kind::DISC {
            return Ok(Incoming::Disconnect);
        }
        let payload = header.payload_bytes(self.framing);
        let payload_bytes = match u32::try_from(payload) {
            Ok(bytes) if bytes <= PAYLOAD_BYTES_MAX => bytes,
            _ => {
                let (kind, max) = (header.kind, PAYLOAD_BYTES_MAX);
                return Err(LostSync::PayloadTooLong { kind, bytes: payload, max });
            }
        };
        let reply_to =
            ReplyTo { framing: self.framing, cookie: header.cookie, offset: header.offset };
        Ok(match self.judge(&header) {
            Ok(command) => Incoming::Request(Request { reply_to, command, payload_bytes }),
            Err(error) => Incoming::Refused(Refused { reply_to, error, payload_bytes }),
        })
    }

    /// Reads the payload of a [`Command::BlockStatusOf`]: the request is then one for
    /// extents, as any other. It is handed back as it is if it is of another kind.
    ///
    /// # Errors
    /// What to answer; the payload is used up.
    pub fn handle_contexts(&self, request: Request, payload: &[u8]) -> Result<Request, Refused> {
        let Command::BlockStatusOf { offset, one } = request.command else { return Ok(request) };
        let Request { reply_to, .. } = request;
        let refused = |error| Refused { reply_to, error, payload_bytes: 0 };
        let mut fields = Reader::new(payload);
        let named = fields.u64().zip(fields.u32()).filter(|_| fields.remaining() == 0);
        let Some((length, ALLOCATION_CONTEXT)) = named else {
            return Err(refused(RequestError::Contexts { bytes: payload.len() as u64 }));
        };
        let range = self.range(ByteRange { offset, length }, false).map_err(refused)?;
        Ok(Request { reply_to, command: Command::BlockStatus { range, one }, payload_bytes: 0 })
    }

    /// The pieces that answer a [`Command::Read`], once all it asks for was read: `extents`
    /// say how the range is allocated, from its beginning on; where none are given, all of
    /// it is data.
    pub fn read_chunks<I: IntoIterator<Item = Extent>>(
        &self,
        reply_to: ReplyTo,
        range: ByteRange,
        dont_fragment: bool,
        extents: I,
    ) -> ReadChunks<I::IntoIter> {
        ReadChunks::new(reply_to, range, dont_fragment, extents.into_iter())
    }

    /// Begins the reply to a [`Command::BlockStatus`] in `out`; as many extents are told
    /// as there is room for.
    ///
    /// # Errors
    /// `out` has fewer than [`STATUS_BYTES_MIN`](crate::STATUS_BYTES_MIN) bytes.
    pub fn block_status<'a>(
        &self,
        reply_to: ReplyTo,
        range: ByteRange,
        one: bool,
        out: &'a mut [u8],
    ) -> Result<StatusReply<'a>, NoRoom> {
        StatusReply::new(reply_to, range, one, self.payload_max, out)
    }

    fn judge(&self, header: &Header) -> Result<Command, RequestError> {
        self.check_offered(header)?;
        self.check_flags(header)?;
        let range = ByteRange { offset: header.offset, length: header.length };
        let fua = header.has(flag::FUA);
        match header.kind {
            kind::READ => {
                let range = self.range(range, false)?;
                self.check_read(range.length)?;
                Ok(Command::Read { range, dont_fragment: header.has(flag::DF) })
            }
            kind::WRITE => {
                let range = self.range(range, true)?;
                self.check_write(range.length)?;
                Ok(Command::Write { range, fua })
            }
            kind::FLUSH if range == (ByteRange { offset: 0, length: 0 }) => Ok(Command::Flush),
            kind::FLUSH => {
                Err(RequestError::FlushRange { offset: range.offset, length: range.length })
            }
            kind::TRIM => Ok(Command::Trim { range: self.range(range, false)?, fua }),
            kind::CACHE => Ok(Command::Cache { range: self.range(range, false)? }),
            kind::WRITE_ZEROES => Ok(Command::WriteZeroes {
                range: self.range(range, true)?,
                fua,
                no_hole: header.has(flag::NO_HOLE),
                fast: header.has(flag::FAST_ZERO),
            }),
            kind::BLOCK_STATUS => {
                let one = header.has(flag::REQ_ONE);
                if !header.has(flag::PAYLOAD_LEN) {
                    return Ok(Command::BlockStatus { range: self.range(range, false)?, one });
                }
                if range.length != CONTEXTS_BYTES.into() {
                    return Err(RequestError::Contexts { bytes: range.length });
                }
                Ok(Command::BlockStatusOf { offset: range.offset, one })
            }
            kind => Err(RequestError::UnknownCommand { kind }),
        }
    }

    /// Whether the export takes such commands at all.
    fn check_offered(&self, header: &Header) -> Result<(), RequestError> {
        let kind = header.kind;
        let writes = matches!(kind, kind::WRITE | kind::TRIM | kind::WRITE_ZEROES);
        if writes && self.flags.has(TransmissionFlags::READ_ONLY) {
            return Err(RequestError::ReadOnly);
        }
        let offer = match kind {
            kind::FLUSH => TransmissionFlags::SEND_FLUSH,
            kind::TRIM => TransmissionFlags::SEND_TRIM,
            kind::CACHE => TransmissionFlags::SEND_CACHE,
            kind::WRITE_ZEROES => TransmissionFlags::SEND_WRITE_ZEROES,
            kind::BLOCK_STATUS if !self.base_allocation => return Err(RequestError::NoContext),
            _ => TransmissionFlags::HAS_FLAGS,
        };
        if self.flags.has(offer) { Ok(()) } else { Err(RequestError::NotOffered { kind }) }
    }

    /// Whether the command takes these flags (section "Command flags").
    fn check_flags(&self, header: &Header) -> Result<(), RequestError> {
        let offered = |flags, offer| if self.flags.has(offer) { flags } else { 0 };
        let kind = header.kind;
        let own = match kind {
            kind::READ => offered(flag::DF, TransmissionFlags::SEND_DF),
            kind::WRITE if self.framing.is_extended() => flag::PAYLOAD_LEN,
            kind::WRITE_ZEROES => {
                flag::NO_HOLE | offered(flag::FAST_ZERO, TransmissionFlags::SEND_FAST_ZERO)
            }
            kind::BLOCK_STATUS => {
                let payload = TransmissionFlags::BLOCK_STATUS_PAYLOAD;
                flag::REQ_ONE | offered(flag::PAYLOAD_LEN, payload)
            }
            _ => 0,
        };
        let surplus = header.flags & !(own | offered(flag::FUA, TransmissionFlags::SEND_FUA));
        if surplus == 0 { Ok(()) } else { Err(RequestError::Flags { kind, flags: surplus }) }
    }

    /// The range, if it is inside of the export and on its blocks.
    fn range(&self, range: ByteRange, writes: bool) -> Result<ByteRange, RequestError> {
        let ByteRange { offset, length } = range;
        if length == 0 {
            return Err(RequestError::Empty);
        }
        // A power of two.
        let within_block = u64::from(self.block).saturating_sub(1);
        if (offset | length) & within_block != 0 {
            return Err(RequestError::OffBlock { offset, length, block: self.block });
        }
        match offset.checked_add(length) {
            Some(end) if end <= self.size => Ok(range),
            _ => Err(RequestError::BeyondEnd { offset, length, size: self.size, writes }),
        }
    }

    fn check_read(&self, length: u64) -> Result<(), RequestError> {
        let (max, chunks) = (self.payload_max, self.framing.has_chunks());
        if length > max.into() {
            return Err(RequestError::ReadTooLong { length, max, chunks });
        }
        Ok(())
    }

    fn check_write(&self, length: u64) -> Result<(), RequestError> {
        let max = self.payload_max;
        if length > max.into() {
            return Err(RequestError::WriteTooLong { length, max });
        }
        Ok(())
    }
}
