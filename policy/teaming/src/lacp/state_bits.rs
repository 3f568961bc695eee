//! State bits of a port (IEEE 802.1AX-2014, 6.4.2.3, Figure 6-8).

use core::fmt;

use serde::{Deserialize, Serialize};

/// `Actor_State` or `Partner_State`: set of state bits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PortState(u8);

impl PortState {
    /// `LACP_Activity`: the end is active, that is, sends LACPDUs regardless of its Partner.
    pub const ACTIVITY: Self = Self(1);
    /// `LACP_Timeout`: the end uses the Short Timeout and requires LACPDUs every second.
    pub const TIMEOUT: Self = Self(1 << 1);
    /// `Aggregation`: the link can be part of an aggregate.
    pub const AGGREGATION: Self = Self(1 << 2);
    /// `Synchronization`: the port is attached to the correct Aggregator.
    pub const SYNCHRONIZATION: Self = Self(1 << 3);
    /// `Collecting`: the port accepts received frames.
    pub const COLLECTING: Self = Self(1 << 4);
    /// `Distributing`: the port sends frames.
    pub const DISTRIBUTING: Self = Self(1 << 5);
    /// `Defaulted`: the Partner information is configured, not received.
    pub const DEFAULTED: Self = Self(1 << 6);
    /// `Expired`: no LACPDU was received within the timeout.
    pub const EXPIRED: Self = Self(1 << 7);

    const NAMES: [(Self, &'static str); 8] = [
        (Self::ACTIVITY, "activity"),
        (Self::TIMEOUT, "short-timeout"),
        (Self::AGGREGATION, "aggregation"),
        (Self::SYNCHRONIZATION, "synchronization"),
        (Self::COLLECTING, "collecting"),
        (Self::DISTRIBUTING, "distributing"),
        (Self::DEFAULTED, "defaulted"),
        (Self::EXPIRED, "expired"),
    ];

    /// Decodes the set from an octet; every octet is valid.
    pub const fn from_octet(octet: u8) -> Self {
        Self(octet)
    }

    /// Encodes the set as an octet.
    pub const fn octet(self) -> u8 {
        self.0
    }

    /// Returns true if all of `bits` are set.
    pub const fn has(self, bits: Self) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// Returns the set with `bits` set or cleared.
    #[must_use]
    pub const fn with(self, bits: Self, enabled: bool) -> Self {
        if enabled { Self(self.0 | bits.0) } else { Self(self.0 & !bits.0) }
    }

    /// Sets or clears `bits`.
    pub(crate) const fn set(&mut self, bits: Self, enabled: bool) {
        *self = self.with(bits, enabled);
    }

    /// Returns the intersection of the sets.
    #[must_use]
    pub const fn and(self, bits: Self) -> Self {
        Self(self.0 & bits.0)
    }

    /// Returns the union of the sets.
    #[must_use]
    pub const fn or(self, bits: Self) -> Self {
        Self(self.0 | bits.0)
    }

    /// Returns the names of the bits that are set, lowest bit first.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(bit, _)| self.has(*bit)).map(|(_, name)| name)
    }
}

impl fmt::Debug for PortState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
