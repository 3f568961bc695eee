//! Numbers of options (section "Option types").

use core::fmt;

/// What a client asks for before requests begin. Every number is one; few are known.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OptionCode(pub u32);

impl OptionCode {
    /// `NBD_OPT_EXPORT_NAME`: to use an export, whatever it is like.
    pub const EXPORT_NAME: Self = Self(1);
    /// `NBD_OPT_ABORT`: to leave.
    pub const ABORT: Self = Self(2);
    /// `NBD_OPT_LIST`: the names of all exports.
    pub const LIST: Self = Self(3);
    /// `NBD_OPT_STARTTLS`: to be encrypted.
    pub const STARTTLS: Self = Self(5);
    /// `NBD_OPT_INFO`: what an export is like.
    pub const INFO: Self = Self(6);
    /// `NBD_OPT_GO`: as [`OptionCode::INFO`], and to use it.
    pub const GO: Self = Self(7);
    /// `NBD_OPT_STRUCTURED_REPLY`: replies in chunks.
    pub const STRUCTURED_REPLY: Self = Self(8);
    /// `NBD_OPT_LIST_META_CONTEXT`: what can be said of an export's extents.
    pub const LIST_META_CONTEXT: Self = Self(9);
    /// `NBD_OPT_SET_META_CONTEXT`: what is to be said of them.
    pub const SET_META_CONTEXT: Self = Self(10);
    /// `NBD_OPT_EXTENDED_HEADERS`: lengths of 64 bits.
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

/// The protocol's name, or the number of an option without one.
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
