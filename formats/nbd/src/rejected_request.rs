//! Requests that are rejected with an error reply.

use crate::message::Message;
use crate::octets::BufferTooShort;
use crate::reply::ReplyTo;
use crate::request_error::RequestError;

/// Rejected request: its error reply and the payload to skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectedRequest {
    /// Reply encoder for this request.
    pub reply_to: ReplyTo,
    /// Reason why the request is rejected.
    pub error: RequestError,
    /// Length of the payload to discard, in bytes. The next header follows it.
    pub payload_bytes: u32,
}

impl RejectedRequest {
    /// Encodes the error reply and returns its length; [`REPLY_BYTES_MAX`](crate::REPLY_BYTES_MAX)
    /// bytes of room suffice.
    ///
    /// # Errors
    /// Fails if `out` is too short.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooShort> {
        self.reply_to.error(self.error.code(), Message::new(&self.error).as_str(), out)
    }
}
