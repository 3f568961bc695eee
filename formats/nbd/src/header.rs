//! The header of a request (section "Request message").

use crate::framing::Framing;
use crate::octets::Reader;

/// Bytes of a compact request's header.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of an extended request's header.
pub const REQUEST_BYTES_EXTENDED: usize = 32;

/// `NBD_REQUEST_MAGIC`.
pub(crate) const MAGIC: u32 = 0x2560_9513;
/// `NBD_EXTENDED_REQUEST_MAGIC`.
const MAGIC_EXTENDED: u32 = 0x21e4_1c71;

/// Numbers of commands (section "Request types").
pub(crate) mod kind {
    pub(crate) const READ: u16 = 0;
    pub(crate) const WRITE: u16 = 1;
    pub(crate) const DISC: u16 = 2;
    pub(crate) const FLUSH: u16 = 3;
    pub(crate) const TRIM: u16 = 4;
    pub(crate) const CACHE: u16 = 5;
    pub(crate) const WRITE_ZEROES: u16 = 6;
    pub(crate) const BLOCK_STATUS: u16 = 7;
}

/// Flags of commands (section "Command flags").
pub(crate) mod flag {
    pub(crate) const FUA: u16 = 1;
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    pub(crate) const DF: u16 = 1 << 2;
    pub(crate) const REQ_ONE: u16 = 1 << 3;
    pub(crate) const FAST_ZERO: u16 = 1 << 4;
    pub(crate) const PAYLOAD_LEN: u16 = 1 << 5;
}

/// A header's fields, whatever they say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) flags: u16,
    pub(crate) kind: u16,
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Why there is no header.
pub(crate) enum NoHeader {
    /// It is not all there.
    Incomplete,
    /// It begins with something else.
    Magic { found: u32, expected: u32 },
}

impl Header {
    /// Reads a header from the front of `bytes`. What begins wrong is wrong before it is
    /// all there.
    pub(crate) fn read(framing: Framing, bytes: &[u8]) -> Result<Self, NoHeader> {
        let mut fields = Reader::new(bytes);
        let expected = if framing.is_extended() { MAGIC_EXTENDED } else { MAGIC };
        let found = fields.u32().ok_or(NoHeader::Incomplete)?;
        if found != expected {
            return Err(NoHeader::Magic { found, expected });
        }
        Self::read_fields(framing, fields).ok_or(NoHeader::Incomplete)
    }

    fn read_fields(framing: Framing, mut fields: Reader<'_>) -> Option<Self> {
        Some(Self {
            flags: fields.u16()?,
            kind: fields.u16()?,
            cookie: fields.u64()?,
            offset: fields.u64()?,
            length: if framing.is_extended() { fields.u64()? } else { fields.u32()?.into() },
        })
    }

    pub(crate) const fn has(&self, flag: u16) -> bool {
        self.flags & flag != 0
    }

    /// Bytes that follow the header: those of a write, and in extended headers those that
    /// a flag speaks of. A write there should have the flag too; QEMU 10.0 leaves it out
    /// and sends the data, so that a write without the flag is one with it.
    pub(crate) const fn payload_bytes(&self, framing: Framing) -> u64 {
        let is_told = framing.is_extended() && self.has(flag::PAYLOAD_LEN);
        if self.kind == kind::WRITE || is_told { self.length } else { 0 }
    }
}
