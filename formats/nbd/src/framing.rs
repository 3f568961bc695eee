//! How requests and replies are framed.

/// How requests and replies are framed from the handshake's end on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Framing {
    /// Compact requests, simple replies: a read succeeds or fails as a whole.
    #[default]
    Simple,
    /// Compact requests, structured replies (`NBD_OPT_STRUCTURED_REPLY`).
    Structured,
    /// Extended requests and replies (`NBD_OPT_EXTENDED_HEADERS`): effect lengths of 64 bits.
    Extended,
}

impl Framing {
    /// Whether replies are made of chunks: structured ones or extended ones.
    pub const fn has_chunks(self) -> bool {
        !matches!(self, Self::Simple)
    }

    /// Whether headers are extended ones.
    pub const fn is_extended(self) -> bool {
        matches!(self, Self::Extended)
    }
}
