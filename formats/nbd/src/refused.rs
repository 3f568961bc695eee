//! A request that is answered with an error.

use crate::message::Message;
use crate::octets::NoRoom;
use crate::reply::ReplyTo;
use crate::request_error::RequestError;

/// A request that cannot be carried out, what to answer, and what to skip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    /// Where its reply goes.
    pub reply_to: ReplyTo,
    /// Why.
    pub error: RequestError,
    /// Bytes that follow the header and have to be thrown away: the next header comes
    /// behind them.
    pub payload_bytes: u32,
}

impl Refused {
    /// Encodes the reply; [`REPLY_BYTES_MAX`](crate::REPLY_BYTES_MAX) bytes are enough.
    /// Returns how many it has.
    ///
    /// # Errors
    /// `out` is too short.
    pub fn encode(&self, out: &mut [u8]) -> Result<usize, NoRoom> {
        self.reply_to.error(self.error.code(), Message::of(&self.error).as_str(), out)
    }
}
