//! What a LACPDU says of one end of a link.

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;

use super::PortState;

/// One end of a link: its System, key, port and state (IEEE 802.1AX-2014,
/// 6.4.2.3). Priorities: the lower number goes first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortInfo {
    /// Priority of the System.
    pub system_priority: u16,
    /// The System's address.
    pub system: MacAddr,
    /// Ports of one System and one key can aggregate.
    pub key: u16,
    /// Priority of the port.
    pub port_priority: u16,
    /// The port's number within its System.
    pub port: u16,
    /// Its state.
    pub state: PortState,
}

impl PortInfo {
    /// Bytes of the fields in a PDU.
    pub(crate) const BYTES: usize = 15;

    /// The System Identifier as a number: the lower one goes first (6.3.2).
    pub(crate) const fn system_id(&self) -> u64 {
        (self.system_priority as u64) << 48 | self.system.to_u64()
    }

    /// The Port Identifier: the lower one goes first (6.3.4).
    pub(crate) const fn port_id(&self) -> u32 {
        (self.port_priority as u32) << 16 | self.port as u32
    }

    /// Whether System, key and port are the same and, of the state, `bits`.
    pub(crate) fn agrees(&self, other: &Self, bits: PortState) -> bool {
        self.is_same_port(other)
            && self.key == other.key
            && self.state.and(bits) == other.state.and(bits)
    }

    /// Whether System and port are the same.
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
