//! Message formats of requests and replies.

/// Message format of requests and replies after the handshake.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Framing {
    /// Compact requests and simple replies, which succeed or fail as a whole.
    #[default]
    Simple,
    /// Compact requests and structured replies (`NBD_OPT_STRUCTURED_REPLY`).
    Structured,
    /// Extended requests and replies with 64-bit lengths (`NBD_OPT_EXTENDED_HEADERS`).
    Extended,
}

impl Framing {
    /// Returns true if replies consist of chunks (structured or extended).
    pub const fn has_chunks(self) -> bool {
        !matches!(self, Self::Simple)
    }

    /// Returns true if requests and replies have extended headers.
    pub const fn is_extended(self) -> bool {
        matches!(self, Self::Extended)
    }
}
