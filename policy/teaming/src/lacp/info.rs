//! Description of one end of a link, as LACPDUs contain it.

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;

use super::PortState;

/// One end of a link: System, key, port and state (IEEE 802.1AX-2014, 6.4.2.3). A lower number
/// means a higher priority.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortInfo {
    /// System priority; lower numbers have precedence.
    pub system_priority: u16,
    /// MAC address that identifies the System.
    pub system: MacAddr,
    /// Operational key. Ports of one System with the same key can aggregate.
    pub key: u16,
    /// Port priority; lower numbers have precedence.
    pub port_priority: u16,
    /// Port number within the System.
    pub port: u16,
    /// State bits of the port.
    pub state: PortState,
}

impl PortInfo {
    /// Length of these fields in a PDU, in bytes.
    pub(crate) const BYTES: usize = 15;

    /// Returns the System Identifier (priority and address) as a number; a lower number has
    /// precedence (6.3.2).
    pub(crate) const fn system_id(&self) -> u64 {
        (self.system_priority as u64) << 48 | self.system.to_u64()
    }

    /// Returns the Port Identifier (priority and number) as a number; a lower number has precedence
    /// (6.3.4).
    pub(crate) const fn port_id(&self) -> u32 {
        (self.port_priority as u32) << 16 | self.port as u32
    }

    /// Returns true if both have the same System, key, port and port priority, and the same state
    /// bits among `bits`.
    pub(crate) fn agrees(&self, other: &Self, bits: PortState) -> bool {
        self.is_same_port(other)
            && self.key == other.key
            && self.state.and(bits) == other.state.and(bits)
    }

    /// Returns true if System and port are equal.
    pub(crate) const fn is_same_port(&self, other: &Self) -> bool {
        self.system_id() == other.system_id() && self.port_id() == other.port_id()
    }

    pub(crate) fn to_octets(self) -> [u8; Self::BYTES] {
        let [p0, p1] = self.system_priority.to_be_bytes();
        let [a, b, c, d, e, f] = self.system.octets();
        let [k0, k1] = self.key.to_be_bytes();
        let [q0, q1] = self.port_priority.to_be_bytes();
        let [n0, n1] = self.port.to_be_bytes();
        [p0, p1, a, b, c, d, e, f, k0, k1, q0, q1, n0, n1, self.state.octet()]
    }

    pub(crate) fn from_octets(octets: [u8; Self::BYTES]) -> Self {
        let [p0, p1, a, b, c, d, e, f, k0, k1, q0, q1, n0, n1, state] = octets;
        Self {
            system_priority: u16::from_be_bytes([p0, p1]),
            system: MacAddr::new([a, b, c, d, e, f]),
            key: u16::from_be_bytes([k0, k1]),
            port_priority: u16::from_be_bytes([q0, q1]),
            port: u16::from_be_bytes([n0, n1]),
            state: PortState::from_octet(state),
        }
    }
}
