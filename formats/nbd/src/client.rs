//! The client's side of the protocol, for one disk: what to send, and what the server says.
//!
//! A client here needs structured replies, which every server of today has: with them the
//! bytes of a read are told where they begin, so that no reply has to be known by what was
//! asked.

mod handshake;
mod handshake_error;
mod reply;
mod request;

pub use handshake::{ClientHandshake, ClientProgress, ClientStep, FarExport};
pub use handshake_error::ClientHandshakeError;
pub use reply::{
    CHUNK_BYTES_MAX, FarExtents, FarFailure, LostReplies, REPLY_HEAD_BYTES, Replied, Reply,
    ReplyReader,
};
pub use request::{ClientCommand, ClientRequest};
