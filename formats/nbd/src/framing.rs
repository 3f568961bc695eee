//! Message formats of requests and replies.

/// Message format of requests and replies during transmission.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Framing {
    /// Compact requests and simple replies, which succeed or fail as a whole.
    #[default]
    Simple,
    /// Compact requests and structured replies (`NBD_OPT_STRUCTURED_REPLY`).
    Structured,
    /// Extended requests and replies (`NBD_OPT_EXTENDED_HEADERS`) with 64-bit lengths.
    Extended,
}

impl Framing {
    /// Returns true if replies consist of chunks (structured or extended).
    pub const fn has_chunks(self) -> bool {
        !matches!(self, Self::Simple)
    }

    /// Returns true for extended headers.
    pub const fn is_extended(self) -> bool {
        matches!(self, Self::Extended)
    }
}
