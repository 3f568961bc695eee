//! Transmission flags of an export (section "Transmission flags").

use core::fmt;

/// Set of transmission flags of an export.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TransmissionFlags(u16);

impl TransmissionFlags {
    /// `NBD_FLAG_HAS_FLAGS`: always set.
    pub const HAS_FLAGS: Self = Self(1);
    /// `NBD_FLAG_READ_ONLY`: writes are rejected.
    pub const READ_ONLY: Self = Self(1 << 1);
    /// `NBD_FLAG_SEND_FLUSH`: `NBD_CMD_FLUSH` may be sent.
    pub const SEND_FLUSH: Self = Self(1 << 2);
    /// `NBD_FLAG_SEND_FUA`: `NBD_CMD_FLAG_FUA` may be set.
    pub const SEND_FUA: Self = Self(1 << 3);
    /// `NBD_FLAG_ROTATIONAL`: rotating medium; sequential access is faster.
    pub const ROTATIONAL: Self = Self(1 << 4);
    /// `NBD_FLAG_SEND_TRIM`: `NBD_CMD_TRIM` may be sent.
    pub const SEND_TRIM: Self = Self(1 << 5);
    /// `NBD_FLAG_SEND_WRITE_ZEROES`: `NBD_CMD_WRITE_ZEROES` may be sent.
    pub const SEND_WRITE_ZEROES: Self = Self(1 << 6);
    /// `NBD_FLAG_SEND_DF`: `NBD_CMD_FLAG_DF` may be set.
    pub const SEND_DF: Self = Self(1 << 7);
    /// `NBD_FLAG_CAN_MULTI_CONN`: data flushed by one connection is visible to all.
    pub const CAN_MULTI_CONN: Self = Self(1 << 8);
    /// `NBD_FLAG_SEND_CACHE`: `NBD_CMD_CACHE` may be sent.
    pub const SEND_CACHE: Self = Self(1 << 10);
    /// `NBD_FLAG_SEND_FAST_ZERO`: `NBD_CMD_FLAG_FAST_ZERO` may be set.
    pub const SEND_FAST_ZERO: Self = Self(1 << 11);
    /// `NBD_FLAG_BLOCK_STATUS_PAYLOAD`: `NBD_CMD_BLOCK_STATUS` may select contexts by a payload.
    pub const BLOCK_STATUS_PAYLOAD: Self = Self(1 << 12);

    const NAMES: [(Self, &'static str); 12] = [
        (Self::HAS_FLAGS, "HAS_FLAGS"),
        (Self::READ_ONLY, "READ_ONLY"),
        (Self::SEND_FLUSH, "SEND_FLUSH"),
        (Self::SEND_FUA, "SEND_FUA"),
        (Self::ROTATIONAL, "ROTATIONAL"),
        (Self::SEND_TRIM, "SEND_TRIM"),
        (Self::SEND_WRITE_ZEROES, "SEND_WRITE_ZEROES"),
        (Self::SEND_DF, "SEND_DF"),
        (Self::CAN_MULTI_CONN, "CAN_MULTI_CONN"),
        (Self::SEND_CACHE, "SEND_CACHE"),
        (Self::SEND_FAST_ZERO, "SEND_FAST_ZERO"),
        (Self::BLOCK_STATUS_PAYLOAD, "BLOCK_STATUS_PAYLOAD"),
    ];

    /// Converts a 16-bit flags field. Unknown bits are kept.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// Returns the 16-bit flags field.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Returns true if every flag of `flags` is set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// Returns the set with `flags` added if `is_set` is true.
    #[must_use]
    pub(crate) const fn with(self, flags: Self, is_set: bool) -> Self {
        if is_set { Self(self.0 | flags.0) } else { self }
    }
}

impl fmt::Debug for TransmissionFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES.into_iter().filter(|(flag, _)| self.has(*flag));
        f.debug_set().entries(names.map(|(_, name)| name)).finish()
    }
}
