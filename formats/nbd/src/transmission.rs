//! Parsing and validation of requests after the handshake (NBD specification, section
//! "Transmission").

use thiserror::Error;

use crate::block_status::{ALLOCATION_CONTEXT_ID, BlockStatusEncoder};
use crate::chunk::ReadChunks;
use crate::command::{ExportRange, NbdCommand, Request};
use crate::extent::StatusExtent;
use crate::field_codec::{BufferTooShort, FieldReader};
use crate::flags::TransmissionFlags;
use crate::framing::Framing;
use crate::handshake::NegotiatedParameters;
use crate::header::{
    Header, HeaderDecodeError, PAYLOAD_BYTES_MAX, REQUEST_BYTES, REQUEST_BYTES_EXTENDED, flag, kind,
};
use crate::rejected_request::RejectedRequest;
use crate::reply::ReplyEncoder;
use crate::request_error::RequestError;

/// Length in bytes of a block status payload that selects one context: 64-bit length, 32-bit
/// context id.
const CONTEXTS_BYTES: u32 = 12;

/// Result of parsing a request header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParsedHeader {
    /// The header is incomplete; [`RequestParser::header_bytes`] bytes are required.
    Incomplete,
    /// Valid request. Execute it after its payload was received.
    Request(Request),
    /// Invalid request. Send the error reply and discard the payload.
    Rejected(RejectedRequest),
    /// `NBD_CMD_DISC`: close the connection after earlier requests have completed. No reply is
    /// sent.
    Disconnect,
}

/// Error after which the start of the next header is unknown, or whose payload is too long to
/// discard. The connection must be closed. Offsets are in bytes from the start of the header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum DesynchronizedError {
    /// Wrong magic number at the start of a header.
    #[error(
        "magic of a request at offset 0 is {found:#010x} instead of {expected:#010x}; close the \
         connection"
    )]
    Magic {
        /// Magic number that was received.
        found: u32,
        /// Magic number that was expected.
        expected: u32,
    },
    /// The payload exceeds the limit.
    #[error(
        "payload of command {kind} (length at offset 24) has {bytes} bytes, at most {max} are \
         accepted; close the connection"
    )]
    PayloadTooLong {
        /// Number of the rejected command.
        kind: u16,
        /// Length of the payload in bytes.
        bytes: u64,
        /// Maximum length permitted, in bytes.
        max: u32,
    },
}

/// Parser of the requests of one connection after the handshake. It does not change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestParser {
    framing: Framing,
    flags: TransmissionFlags,
    base_allocation: bool,
    size: u64,
    block: u32,
    payload_max: u32,
}

impl RequestParser {
    /// Creates the parser for the result of a handshake.
    pub fn new(negotiated: &NegotiatedParameters) -> Self {
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

    /// Returns the length of a request header in bytes.
    pub const fn header_bytes(&self) -> usize {
        if self.framing.is_extended() { REQUEST_BYTES_EXTENDED } else { REQUEST_BYTES }
    }

    /// Parses and validates the header at the start of `bytes`. The payload follows the header, the
    /// next header follows the payload.
    ///
    /// # Errors
    ///
    /// The connection must be closed.
    #[inline]
    pub fn parse_header(&self, bytes: &[u8]) -> Result<ParsedHeader, DesynchronizedError> {
        let header = match Header::read(self.framing, bytes) {
            Ok(header) => header,
            Err(HeaderDecodeError::Incomplete) => return Ok(ParsedHeader::Incomplete),
            Err(HeaderDecodeError::Magic { found, expected }) => {
                return Err(DesynchronizedError::Magic { found, expected });
            }
        };
        if header.kind == kind::DISC {
            return Ok(ParsedHeader::Disconnect);
        }
        let payload = header.payload_bytes(self.framing);
        let payload_bytes = match u32::try_from(payload) {
            Ok(bytes) if bytes <= PAYLOAD_BYTES_MAX => bytes,
            _ => {
                let (kind, max) = (header.kind, PAYLOAD_BYTES_MAX);
                return Err(DesynchronizedError::PayloadTooLong { kind, bytes: payload, max });
            }
        };
        let reply_to =
            ReplyEncoder { framing: self.framing, cookie: header.cookie, offset: header.offset };
        Ok(match self.validate(&header) {
            Ok(command) => ParsedHeader::Request(Request { reply_to, command, payload_bytes }),
            Err(error) => {
                ParsedHeader::Rejected(RejectedRequest { reply_to, error, payload_bytes })
            }
        })
    }

    /// Parses the payload of a [`NbdCommand::BlockStatusWithPayload`] and returns the request as
    /// [`NbdCommand::BlockStatus`]. Other requests are returned unchanged.
    ///
    /// # Errors
    ///
    /// The rejected request with its error reply; its payload counts as discarded.
    pub fn parse_contexts(
        &self,
        request: Request,
        payload: &[u8],
    ) -> Result<Request, RejectedRequest> {
        let NbdCommand::BlockStatusWithPayload { offset, first_only } = request.command else {
            return Ok(request);
        };
        let Request { reply_to, .. } = request;
        let refused = |error| RejectedRequest { reply_to, error, payload_bytes: 0 };
        let mut fields = FieldReader::new(payload);
        let context = fields.u64().zip(fields.u32()).filter(|_| fields.remaining() == 0);
        let Some((length, ALLOCATION_CONTEXT_ID)) = context else {
            return Err(refused(RequestError::Contexts { bytes: payload.len() as u64 }));
        };
        let range = self.range(ExportRange { offset, length }, false).map_err(refused)?;
        Ok(Request {
            reply_to,
            command: NbdCommand::BlockStatus { range, first_only },
            payload_bytes: 0,
        })
    }

    /// Returns the chunks of the reply to a [`NbdCommand::Read`], after its data was read
    /// completely. `extents` is the allocation status from the start of the range; bytes without an
    /// extent count as data.
    pub fn split_read_reply<I: IntoIterator<Item = StatusExtent>>(
        &self,
        reply_to: ReplyEncoder,
        range: ExportRange,
        dont_fragment: bool,
        extents: I,
    ) -> ReadChunks<I::IntoIter> {
        ReadChunks::new(reply_to, range, dont_fragment, extents.into_iter())
    }

    /// Starts the reply to a [`NbdCommand::BlockStatus`] in `out`, whose length limits the number
    /// of extents.
    ///
    /// # Errors
    ///
    /// `out` has fewer than [`STATUS_BUFFER_BYTES_MIN`](crate::STATUS_BUFFER_BYTES_MIN) bytes.
    pub fn begin_block_status_reply<'a>(
        &self,
        reply_to: ReplyEncoder,
        range: ExportRange,
        first_only: bool,
        out: &'a mut [u8],
    ) -> Result<BlockStatusEncoder<'a>, BufferTooShort> {
        BlockStatusEncoder::new(reply_to, range, first_only, self.payload_max, out)
    }

    fn validate(&self, header: &Header) -> Result<NbdCommand, RequestError> {
        self.check_offered(header)?;
        self.check_flags(header)?;
        let range = ExportRange { offset: header.offset, length: header.length };
        let fua = header.has(flag::FUA);
        match header.kind {
            kind::READ => {
                let range = self.range(range, false)?;
                self.check_read(range.length)?;
                Ok(NbdCommand::Read { range, dont_fragment: header.has(flag::DF) })
            }
            kind::WRITE => {
                let range = self.range(range, true)?;
                self.check_write(range.length)?;
                Ok(NbdCommand::Write { range, fua })
            }
            kind::FLUSH if range == (ExportRange { offset: 0, length: 0 }) => Ok(NbdCommand::Flush),
            kind::FLUSH => {
                Err(RequestError::FlushWithRange { offset: range.offset, length: range.length })
            }
            kind::TRIM => Ok(NbdCommand::Trim { range: self.range(range, false)?, fua }),
            kind::CACHE => Ok(NbdCommand::Cache { range: self.range(range, false)? }),
            kind::WRITE_ZEROES => Ok(NbdCommand::WriteZeroes {
                range: self.range(range, true)?,
                fua,
                no_hole: header.has(flag::NO_HOLE),
                fails_if_slow: header.has(flag::FAST_ZERO),
            }),
            kind::BLOCK_STATUS => {
                let first_only = header.has(flag::REQ_ONE);
                if !header.has(flag::PAYLOAD_LEN) {
                    return Ok(NbdCommand::BlockStatus {
                        range: self.range(range, false)?,
                        first_only,
                    });
                }
                if range.length != CONTEXTS_BYTES.into() {
                    return Err(RequestError::Contexts { bytes: range.length });
                }
                Ok(NbdCommand::BlockStatusWithPayload { offset: range.offset, first_only })
            }
            kind => Err(RequestError::UnknownCommand { kind }),
        }
    }

    /// Checks that the export offers the command.
    ///
    /// # Errors
    ///
    /// The reason for which the request is rejected.
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
        if self.flags.has(offer) { Ok(()) } else { Err(RequestError::NotNegotiated { kind }) }
    }

    /// Checks the command's flags (section "Command flags").
    ///
    /// # Errors
    ///
    /// The reason for which the request is rejected.
    fn check_flags(&self, header: &Header) -> Result<(), RequestError> {
        let offered = |flags, offer| if self.flags.has(offer) { flags } else { 0 };
        let kind = header.kind;
        let supported = match kind {
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
        let surplus = header.flags & !(supported | offered(flag::FUA, TransmissionFlags::SEND_FUA));
        if surplus == 0 { Ok(()) } else { Err(RequestError::InvalidFlags { kind, flags: surplus }) }
    }

    /// Checks that the range is non-empty, aligned and within the export, and returns it.
    ///
    /// # Errors
    ///
    /// The reason for which the request is rejected.
    fn range(&self, range: ExportRange, writes: bool) -> Result<ExportRange, RequestError> {
        let ExportRange { offset, length } = range;
        if length == 0 {
            return Err(RequestError::ZeroLength);
        }
        // This requires that `block` is a power of two.
        let within_block = u64::from(self.block).saturating_sub(1);
        if (offset | length) & within_block != 0 {
            return Err(RequestError::Unaligned { offset, length, block_min: self.block });
        }
        match offset.checked_add(length) {
            Some(end) if end <= self.size => Ok(range),
            _ => {
                Err(RequestError::OutOfRange { offset, length, size: self.size, is_write: writes })
            }
        }
    }

    fn check_read(&self, length: u64) -> Result<(), RequestError> {
        let (max, chunks) = (self.payload_max, self.framing.has_chunks());
        if length > max.into() {
            return Err(RequestError::ReadTooLong { length, max, has_chunked_replies: chunks });
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
