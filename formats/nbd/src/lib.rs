//! NBD protocol: parsing of requests, encoding of replies and the handshake of a server; and the
//! client side as far as copying disks requires it.
//!
//! Specification: `doc/proto.md` of <https://github.com/NetworkBlockDevice/nbd>, with the extension
//! `EXTENDED_HEADERS` (branch `extension-ext-header`). Comments cite its section titles.
//!
//! Server side of a connection
//! - The server sends [`GREETING`]. [`ServerHandshake::handle_bytes`] processes the client's
//!   options and produces replies, until a [`ServerStep`] reports that TLS has to start, the client
//!   aborted, or an export was [negotiated](ServerStep::Negotiated).
//! - A [`RequestParser`] then parses requests. [`RequestParser::parse_header`] returns a
//!   [`ParsedHeader`]: a [`Request`] to execute, a rejected request, or a disconnect.
//! - The [`ReplyEncoder`] of a request encodes the reply into the caller's buffers:
//!   [`ReplyEncoder::encode_success`], [`ReplyEncoder::error`], the chunks of
//!   [`RequestParser::split_read_reply`], the extents of
//!   [`RequestParser::begin_block_status_reply`].
//!
//! Client side of a connection, for one export
//! - [`ClientHandshake::handle_bytes`] processes the server's messages until the export is
//!   [negotiated](ClientStep::Negotiated).
//! - [`ClientRequest::encode`] encodes requests; [`ReplyReader::read`] parses replies.
//!
//! This crate performs no I/O, TLS or timekeeping. The caller limits the duration of a handshake,
//! sends pending output before it passes more input, and completes requests in flight before it
//! closes a connection.
//!
//! Invariants
//! - Any input yields a value or a typed error, never a panic, independent of how the input is
//!   split.
//! - A handshake is finite: at most [`OPTIONS_MAX`] options of [`OPTION_BYTES_MAX`] bytes, of
//!   which one is buffered at a time.
//! - A [`Request`] is validated: its range is within the export and aligned to its blocks, and
//!   the export offers its command.
//! - Requests and replies need no allocation. At most [`PAYLOAD_BYTES_MAX`] bytes separate two
//!   headers of a client.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod block_status;
mod chunk;
mod client;
mod command;
mod error_code;
mod error_message;
mod export;
mod export_error;
mod export_list;
mod extent;
mod field_codec;
mod flags;
mod framing;
mod handshake;
mod header;
mod rejected_request;
mod reply;
mod request_error;
mod text;
mod transmission;

pub use block_status::{
    ALLOCATION_CONTEXT_ID, BlockStatusEncoder, EXTENTS_MAX, STATUS_BUFFER_BYTES_MIN,
};
pub use chunk::{Chunk, ChunkKind, ReadChunks};
pub use client::{
    ClientCommand, ClientHandshake, ClientHandshakeError, ClientProgress, ClientRequest,
    ClientStep, ErrorReply, ExtentsReply, NON_DATA_CHUNK_BYTES_MAX, ParsedReply,
    REPLY_HEAD_BYTES_MAX, RemoteExport, ReplyContent, ReplyError, ReplyReader,
};
pub use command::{ExportRange, NbdCommand, Request};
pub use error_code::NbdError;
pub use export::{BlockSizes, EXPORT_BYTES_MAX, Export, ExportSpec, Features};
pub use export_error::ExportError;
pub use export_list::ExportList;
pub use extent::{ExtentState, StatusExtent};
pub use field_codec::BufferTooShort;
pub use flags::TransmissionFlags;
pub use framing::Framing;
pub use handshake::{
    GREETING, HandshakeError, NegotiatedParameters, OPTION_BYTES_MAX, OPTIONS_MAX, OptionCode,
    OptionError, QUERIES_MAX, ServerHandshake, ServerProgress, ServerStep, TlsMode,
};
pub use header::{PAYLOAD_BYTES_MAX, REQUEST_BYTES, REQUEST_BYTES_EXTENDED};
pub use rejected_request::RejectedRequest;
pub use reply::{REPLY_BYTES_MAX, ReplyEncoder};
pub use request_error::RequestError;
pub use text::STRING_BYTES_MAX;
pub use transmission::{DesynchronizedError, ParsedHeader, RequestParser};
