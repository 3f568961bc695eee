//! The state octet of a port in LACPDUs.

use std::fmt;

/// Actor_State or Partner_State (802.1AX-2014, 6.4.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct State(pub(crate) u8);

const NAMES: [&str; 8] = [
    "activity",
    "short-timeout",
    "aggregation",
    "synchronization",
    "collecting",
    "distributing",
    "defaulted",
    "expired",
];

impl State {
    pub(crate) const ACTIVITY: Self = Self(0x01);
    pub(crate) const SHORT_TIMEOUT: Self = Self(0x02);
    pub(crate) const AGGREGATION: Self = Self(0x04);
    pub(crate) const SYNCHRONIZATION: Self = Self(0x08);
    pub(crate) const COLLECTING: Self = Self(0x10);
    pub(crate) const DISTRIBUTING: Self = Self(0x20);
    pub(crate) const DEFAULTED: Self = Self(0x40);
    pub(crate) const EXPIRED: Self = Self(0x80);
    /// Synchronization, Collecting and Distributing: frames pass in both directions.
    pub(crate) const IN_USE: Self = Self(0x38);

    /// Returns whether all of `bits` are set.
    pub(crate) const fn has(self, bits: Self) -> bool {
        self.0 & bits.0 == bits.0
    }

    /// Returns whether any of `bits` is set.
    pub(crate) const fn has_any(self, bits: Self) -> bool {
        self.0 & bits.0 != 0
    }

    /// Returns the state with `bits` set.
    pub(crate) const fn with(self, bits: Self) -> Self {
        Self(self.0 | bits.0)
    }

    /// Returns the state with `bits` clear.
    pub(crate) const fn without(self, bits: Self) -> Self {
        Self(self.0 & !bits.0)
    }

    /// Returns the state with `bits` set or clear.
    pub(crate) const fn put(self, bits: Self, set: bool) -> Self {
        if set { self.with(bits) } else { self.without(bits) }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let set: Vec<&str> = (0u8..)
            .zip(NAMES)
            .filter(|(bit, _)| self.0 >> bit & 1 != 0)
            .map(|(_, name)| name)
            .collect();
        if set.is_empty() { write!(f, "none") } else { write!(f, "{}", set.join("+")) }
    }
}
