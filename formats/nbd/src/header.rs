//! Request headers (NBD specification, section "Request message").

use crate::field_codec::FieldReader;
use crate::framing::Framing;

/// Maximum payload after a header in bytes; longer payloads end the connection. The protocol
/// requires implementations to accept this size (section "Size constraints").
pub const PAYLOAD_BYTES_MAX: u32 = 32 * 1024 * 1024;

/// Length of a compact request header in bytes.
pub const REQUEST_BYTES: usize = 28;
/// Length of an extended request header in bytes.
pub const REQUEST_BYTES_EXTENDED: usize = 32;

/// `NBD_REQUEST_MAGIC`.
pub(crate) const MAGIC: u32 = 0x2560_9513;
/// `NBD_EXTENDED_REQUEST_MAGIC`.
const MAGIC_EXTENDED: u32 = 0x21e4_1c71;

/// Command numbers (section "Request types").
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

/// Command flags (section "Command flags").
pub(crate) mod flag {
    pub(crate) const FUA: u16 = 1;
    pub(crate) const NO_HOLE: u16 = 1 << 1;
    pub(crate) const DF: u16 = 1 << 2;
    pub(crate) const REQ_ONE: u16 = 1 << 3;
    pub(crate) const FAST_ZERO: u16 = 1 << 4;
    pub(crate) const PAYLOAD_LEN: u16 = 1 << 5;
}

/// Decoded fields of a request header, not validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) flags: u16,
    pub(crate) kind: u16,
    pub(crate) cookie: u64,
    pub(crate) offset: u64,
    pub(crate) length: u64,
}

/// Reason for which no header could be decoded.
pub(crate) enum HeaderDecodeError {
    /// The header has not been received completely.
    Incomplete,
    /// The magic number is wrong.
    Magic { found: u32, expected: u32 },
}

impl Header {
    /// Decodes the header at the start of `bytes`.
    ///
    /// # Errors
    ///
    /// [`HeaderDecodeError`]; a wrong magic number is reported as soon as its 4 bytes are present.
    pub(crate) fn read(framing: Framing, bytes: &[u8]) -> Result<Self, HeaderDecodeError> {
        let mut fields = FieldReader::new(bytes);
        let expected = if framing.is_extended() { MAGIC_EXTENDED } else { MAGIC };
        let found = fields.u32().ok_or(HeaderDecodeError::Incomplete)?;
        if found != expected {
            return Err(HeaderDecodeError::Magic { found, expected });
        }
        Self::read_fields(framing, fields).ok_or(HeaderDecodeError::Incomplete)
    }

    fn read_fields(framing: Framing, mut fields: FieldReader<'_>) -> Option<Self> {
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

    /// Returns the length in bytes of the payload that follows the header: that of the data of a
    /// write, or with extended headers and `NBD_CMD_FLAG_PAYLOAD_LEN` that of another command's
    /// payload. Extended writes should set the flag; QEMU 10.0 omits it but sends the data, so the
    /// flag is not required.
    pub(crate) const fn payload_bytes(&self, framing: Framing) -> u64 {
        let is_told = framing.is_extended() && self.has(flag::PAYLOAD_LEN);
        if self.kind == kind::WRITE || is_told { self.length } else { 0 }
    }
}
