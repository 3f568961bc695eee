//! The eight bits of a port's state (IEEE 802.1AX-2014, 6.4.2.3, Figure 6-8).

use core::fmt;

use serde::{Deserialize, Serialize};

/// `Actor_State` or `Partner_State`: a set of bits.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PortState(u8);

impl PortState {
    /// `LACP_Activity`: speaks without being spoken to.
    pub const ACTIVITY: Self = Self(1);
    /// `LACP_Timeout`: wants to hear something every second (Short Timeout).
    pub const TIMEOUT: Self = Self(1 << 1);
    /// `Aggregation`: can be one link of several.
    pub const AGGREGATION: Self = Self(1 << 2);
    /// `Synchronization`: attached to the right Aggregator.
    pub const SYNCHRONIZATION: Self = Self(1 << 3);
    /// `Collecting`: takes frames.
    pub const COLLECTING: Self = Self(1 << 4);
    /// `Distributing`: sends frames.
    pub const DISTRIBUTING: Self = Self(1 << 5);
    /// `Defaulted`: knows its Partner by configuration only.
    pub const DEFAULTED: Self = Self(1 << 6);
    /// `Expired`: has not heard its Partner for too long.
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

    /// The set that this octet encodes; every octet is one.
    pub const fn from_octet(octet: u8) -> Self {
        Self(octet)
    }

    /// The octet.
    pub const fn octet(self) -> u8 {
        self.0
    }

    /// Whether all of `bits` are set.
    pub const fn has(self, bits: Self) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// The set with `bits` set or cleared.
    #[must_use]
    pub const fn with(self, bits: Self, on: bool) -> Self {
        if on { Self(self.0 | bits.0) } else { Self(self.0 & !bits.0) }
    }

    /// Sets or clears `bits`.
    pub(crate) const fn set(&mut self, bits: Self, on: bool) {
        *self = self.with(bits, on);
    }

    /// What the sets have in common.
    #[must_use]
    pub const fn and(self, bits: Self) -> Self {
        Self(self.0 & bits.0)
    }

    /// Both sets.
    #[must_use]
    pub const fn or(self, bits: Self) -> Self {
        Self(self.0 | bits.0)
    }

    /// The names of the bits that are set, lowest first.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::NAMES.into_iter().filter(move |(bit, _)| self.has(*bit)).map(|(_, name)| name)
    }
}

impl fmt::Debug for PortState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}
