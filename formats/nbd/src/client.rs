//! Client side of the protocol, for access to one export.
//!
//! The client requires structured replies. Each data chunk then states its offset, so that replies
//! can be parsed without a table of requests.

mod handshake;
mod handshake_error;
mod reply;
mod request;

pub use handshake::{ClientHandshake, ClientProgress, ClientStep, RemoteExport};
pub use handshake_error::ClientHandshakeError;
pub use reply::{
    ErrorReply, ExtentsReply, NON_DATA_CHUNK_BYTES_MAX, ParsedReply, REPLY_HEAD_BYTES_MAX,
    ReplyContent, ReplyError, ReplyReader,
};
pub use request::{ClientCommand, ClientRequest};
