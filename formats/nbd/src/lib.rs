//! The NBD protocol. The server's side: from a client's bytes to what it wants, and from
//! what came of it to the bytes of a reply; and of the client's side what copying needs.
//!
//! The source is the protocol's document, `doc/proto.md` of
//! <https://github.com/NetworkBlockDevice/nbd>, with its extension `EXTENDED_HEADERS`
//! (branch `extension-ext-header`). Sections are named as they are there.
//!
//! Lifecycle of a connection
//! - The server sends [`GREETING`]. Then [`Handshake::handle_bytes`] takes what the client
//!   sends and writes what to answer, option by option, until a [`Step`] says that TLS has
//!   to begin, that the client has left, or that an export was [`Negotiated`].
//! - From there on a [`Transmission`] reads requests. [`Transmission::handle_header`] says
//!   what is [`Incoming`]: a [`Request`] to carry out, one to refuse, or the end.
//! - A request's [`ReplyTo`] encodes its reply into the caller's buffers:
//!   [`ReplyTo::done`], [`ReplyTo::error`], the chunks of [`Transmission::read_chunks`],
//!   the extents of [`Transmission::block_status`].
//!
//! A client of ours, for one disk, has its own half
//! - [`ClientHandshake::handle_bytes`] takes what a server sends until the export was
//!   [agreed](ClientStep::Agreed) on.
//! - [`ClientRequest::encode`] says what to send, and [`ReplyReader::read`] what came back.
//!
//! What it does not do: it reads and writes no socket and no disk, does no TLS, keeps no
//! time. Who calls it sets a limit to how long a handshake may last, sends what was
//! answered before it hands over more bytes, and answers what was in flight before it
//! ends a connection.
//!
//! Invariants
//! - Any bytes give a value or a typed error, never a panic, and the same ones in
//!   whatever pieces they come.
//! - A handshake ends: it takes [`OPTIONS_MAX`] options of [`OPTION_BYTES_MAX`] bytes, and
//!   keeps no more than one option.
//! - A [`Request`] is one that may be carried out: it lies inside of the export, on its
//!   blocks, and is of a kind that was offered.
//! - Nothing is allocated for a request or a reply. A client's bytes are never longer than
//!   [`PAYLOAD_BYTES_MAX`] between one header and the next.
#![forbid(unsafe_code)]
#![deny(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

mod chunk;
mod client;
mod command;
mod error_code;
mod export;
mod export_error;
mod export_list;
mod extent;
mod flags;
mod framing;
mod handshake;
mod header;
mod message;
mod octets;
mod refused;
mod reply;
mod request_error;
mod status;
mod text;
mod transmission;

pub use chunk::{Chunk, ChunkKind, ReadChunks};
pub use client::{
    CHUNK_BYTES_MAX, ClientCommand, ClientHandshake, ClientHandshakeError, ClientProgress,
    ClientRequest, ClientStep, FarExport, FarExtents, FarFailure, LostReplies, REPLY_HEAD_BYTES,
    Replied, Reply, ReplyReader,
};
pub use command::{ByteRange, Command, Request};
pub use error_code::NbdError;
pub use export::{BlockSizes, EXPORT_BYTES_MAX, Export, ExportSpec, Features};
pub use export_error::ExportError;
pub use export_list::ExportList;
pub use extent::{Extent, ExtentState};
pub use flags::TransmissionFlags;
pub use framing::Framing;
pub use handshake::{
    GREETING, Handshake, HandshakeError, Negotiated, OPTION_BYTES_MAX, OPTIONS_MAX, OptionCode,
    OptionError, Progress, QUERIES_MAX, Step, TlsMode,
};
pub use header::{REQUEST_BYTES, REQUEST_BYTES_EXTENDED};
pub use octets::NoRoom;
pub use refused::Refused;
pub use reply::{REPLY_BYTES_MAX, ReplyTo};
pub use request_error::RequestError;
pub use status::{ALLOCATION_CONTEXT, EXTENTS_MAX, STATUS_BYTES_MIN, StatusReply};
pub use text::STRING_BYTES_MAX;
pub use transmission::{Incoming, LostSync, PAYLOAD_BYTES_MAX, Transmission};
