//! LACPDUs (802.1AX-2014, 6.4.2.3).

use std::fmt;

use super::State;
use super::frame::{FRAME_BYTES, Mac, SUBTYPE_LACP, blank, mac_text, read, read_u16};

/// Contents of an Actor or Partner Information TLV: one end's information about a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PortInfo {
    pub(crate) system_priority: u16,
    pub(crate) system: Mac,
    pub(crate) key: u16,
    pub(crate) port_priority: u16,
    pub(crate) port: u16,
    pub(crate) state: State,
}

/// An LACPDU of version 1, or of a later version decoded as version 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Lacpdu {
    /// Source address of the frame.
    pub(crate) source: Mac,
    pub(crate) version: u8,
    /// Information of the sender about itself.
    pub(crate) actor: PortInfo,
    /// Information of the sender about the receiver.
    pub(crate) partner: PortInfo,
    /// In units of 10 µs.
    pub(crate) collector_max_delay: u16,
}

/// Offsets of the TLVs in the frame.
pub(crate) const ACTOR_AT: usize = 16;
pub(crate) const PARTNER_AT: usize = 36;
pub(crate) const COLLECTOR_AT: usize = 56;
pub(crate) const TERMINATOR_AT: usize = 72;
/// Length of a TLV's header (type and length).
const HEAD: usize = 2;

impl PortInfo {
    /// Returns whether all fields but the state are equal.
    pub(crate) fn is_same_port(&self, other: &Self) -> bool {
        Self { state: State::default(), ..*self } == Self { state: State::default(), ..*other }
    }

    fn encode(&self, tlv_type: u8, output: &mut Vec<u8>) {
        output.extend([tlv_type, 20]);
        output.extend(self.system_priority.to_be_bytes());
        output.extend(self.system);
        output.extend(self.key.to_be_bytes());
        output.extend(self.port_priority.to_be_bytes());
        output.extend(self.port.to_be_bytes());
        output.extend([self.state.0, 0, 0, 0]);
    }

    fn decode(frame: &[u8], offset: usize) -> Option<Self> {
        Some(Self {
            system_priority: read_u16(frame, offset)?,
            system: read(frame, offset + 2)?,
            key: read_u16(frame, offset + 8)?,
            port_priority: read_u16(frame, offset + 10)?,
            port: read_u16(frame, offset + 12)?,
            state: State(*frame.get(offset + 14)?),
        })
    }
}

impl fmt::Display for PortInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { system_priority, key, port_priority, port, state, .. } = self;
        let system = mac_text(self.system);
        write!(
            f,
            "system {system_priority}/{system} key {key} port {port_priority}/{port} ({state})"
        )
    }
}

impl Lacpdu {
    /// Encodes the frame without FCS.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut frame = blank(self.source, SUBTYPE_LACP, self.version);
        self.actor.encode(1, &mut frame);
        self.partner.encode(2, &mut frame);
        frame.extend([3, 16]);
        frame.extend(self.collector_max_delay.to_be_bytes());
        // The rest of the Collector Information TLV, the Terminator TLV and the reserved octets.
        frame.resize(FRAME_BYTES, 0);
        frame
    }

    /// Decodes the fields at their fixed offsets without further checks; `None` if the frame is too
    /// short.
    pub(crate) fn decode(frame: &[u8]) -> Option<Self> {
        Some(Self {
            source: read(frame, 6)?,
            version: *frame.get(15)?,
            actor: PortInfo::decode(frame, ACTOR_AT + HEAD)?,
            partner: PortInfo::decode(frame, PARTNER_AT + HEAD)?,
            collector_max_delay: read_u16(frame, COLLECTOR_AT + HEAD)?,
        })
    }
}
