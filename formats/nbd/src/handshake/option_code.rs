//! Option codes (section "Option types").

use core::fmt;

/// Code of a handshake option. Any number is valid; unknown options are rejected.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OptionCode(pub u32);

impl OptionCode {
    /// `NBD_OPT_EXPORT_NAME`: selects an export and ends the handshake, without an error reply.
    pub const EXPORT_NAME: Self = Self(1);
    /// `NBD_OPT_ABORT`: ends the connection.
    pub const ABORT: Self = Self(2);
    /// `NBD_OPT_LIST`: lists the names of all exports.
    pub const LIST: Self = Self(3);
    /// `NBD_OPT_STARTTLS`: starts TLS encryption.
    pub const STARTTLS: Self = Self(5);
    /// `NBD_OPT_INFO`: requests information about an export.
    pub const INFO: Self = Self(6);
    /// `NBD_OPT_GO`: requests information, selects the export and ends the handshake.
    pub const GO: Self = Self(7);
    /// `NBD_OPT_STRUCTURED_REPLY`: enables structured replies.
    pub const STRUCTURED_REPLY: Self = Self(8);
    /// `NBD_OPT_LIST_META_CONTEXT`: lists metadata contexts.
    pub const LIST_META_CONTEXT: Self = Self(9);
    /// `NBD_OPT_SET_META_CONTEXT`: selects metadata contexts.
    pub const SET_META_CONTEXT: Self = Self(10);
    /// `NBD_OPT_EXTENDED_HEADERS`: enables extended headers with 64-bit lengths.
    pub const EXTENDED_HEADERS: Self = Self(11);

    const NAMES: [(Self, &'static str); 10] = [
        (Self::EXPORT_NAME, "NBD_OPT_EXPORT_NAME"),
        (Self::ABORT, "NBD_OPT_ABORT"),
        (Self::LIST, "NBD_OPT_LIST"),
        (Self::STARTTLS, "NBD_OPT_STARTTLS"),
        (Self::INFO, "NBD_OPT_INFO"),
        (Self::GO, "NBD_OPT_GO"),
        (Self::STRUCTURED_REPLY, "NBD_OPT_STRUCTURED_REPLY"),
        (Self::LIST_META_CONTEXT, "NBD_OPT_LIST_META_CONTEXT"),
        (Self::SET_META_CONTEXT, "NBD_OPT_SET_META_CONTEXT"),
        (Self::EXTENDED_HEADERS, "NBD_OPT_EXTENDED_HEADERS"),
    ];
}

/// Formats the protocol's name of the option, or the number of an unknown one.
impl fmt::Display for OptionCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Self::NAMES.into_iter().find(|(code, _)| code == self) {
            Some((_, name)) => f.write_str(name),
            None => write!(f, "option {}", self.0),
        }
    }
}

impl fmt::Debug for OptionCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
