//! What an export can do, as clients are told (section "Transmission flags").

use core::fmt;

/// A set of transmission flags.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TransmissionFlags(u16);

impl TransmissionFlags {
    /// `NBD_FLAG_HAS_FLAGS`: always there.
    pub const HAS_FLAGS: Self = Self(1);
    /// `NBD_FLAG_READ_ONLY`: writes are refused.
    pub const READ_ONLY: Self = Self(1 << 1);
    /// `NBD_FLAG_SEND_FLUSH`: `NBD_CMD_FLUSH` may be sent.
    pub const SEND_FLUSH: Self = Self(1 << 2);
    /// `NBD_FLAG_SEND_FUA`: `NBD_CMD_FLAG_FUA` may be set.
    pub const SEND_FUA: Self = Self(1 << 3);
    /// `NBD_FLAG_ROTATIONAL`: the order of requests matters.
    pub const ROTATIONAL: Self = Self(1 << 4);
    /// `NBD_FLAG_SEND_TRIM`: `NBD_CMD_TRIM` may be sent.
    pub const SEND_TRIM: Self = Self(1 << 5);
    /// `NBD_FLAG_SEND_WRITE_ZEROES`: `NBD_CMD_WRITE_ZEROES` may be sent.
    pub const SEND_WRITE_ZEROES: Self = Self(1 << 6);
    /// `NBD_FLAG_SEND_DF`: `NBD_CMD_FLAG_DF` may be set.
    pub const SEND_DF: Self = Self(1 << 7);
    /// `NBD_FLAG_CAN_MULTI_CONN`: what one connection has flushed, all of them see.
    pub const CAN_MULTI_CONN: Self = Self(1 << 8);
    /// `NBD_FLAG_SEND_CACHE`: `NBD_CMD_CACHE` may be sent.
    pub const SEND_CACHE: Self = Self(1 << 10);
    /// `NBD_FLAG_SEND_FAST_ZERO`: `NBD_CMD_FLAG_FAST_ZERO` may be set.
    pub const SEND_FAST_ZERO: Self = Self(1 << 11);
    /// `NBD_FLAG_BLOCK_STATUS_PAYLOAD`: `NBD_CMD_BLOCK_STATUS` may name contexts.
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

    /// What a field of 16 bits says. Bits that nothing is known of are kept.
    pub const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The field of 16 bits.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// Whether all of `flags` are set.
    pub const fn has(self, flags: Self) -> bool {
        self.0 & flags.0 == flags.0
    }

    /// The set with `flags` in it, if `on`.
    #[must_use]
    pub(crate) const fn with(self, flags: Self, on: bool) -> Self {
        if on { Self(self.0 | flags.0) } else { self }
    }
}

impl fmt::Debug for TransmissionFlags {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Self::NAMES.into_iter().filter(|(flag, _)| self.has(*flag));
        f.debug_set().entries(names.map(|(_, name)| name)).finish()
    }
}
