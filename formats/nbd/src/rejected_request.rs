//! Requests that the server rejects with an error reply.

use crate::error_message::ErrorMessage;
use crate::field_codec::BufferTooShort;
use crate::reply::ReplyEncoder;
use crate::request_error::RequestError;

/// Rejected request: its error, and the length of the payload to discard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RejectedRequest {
    /// Reply encoder for this request.
    pub reply_to: ReplyEncoder,
    /// Reason for which the request is rejected.
    pub error: RequestError,
    /// Length in bytes of the payload to discard. The next header follows it.
    pub payload_bytes: u32,
}

impl RejectedRequest {
    /// Encodes the error reply into `out` and returns its length;
    /// [`REPLY_BYTES_MAX`](crate::REPLY_BYTES_MAX) bytes of room suffice.
    ///
    /// # Errors
    ///
    /// `out` is too short.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, BufferTooShort> {
        self.reply_to.encode_error(self.error.code(), ErrorMessage::new(&self.error).as_str(), out)
    }
}
