//! Frames of the slow protocols, as bytes and as meaning: the suite's own codec.

mod lacpdu;
mod marker;
mod state;
mod strict;

#[cfg(test)]
mod tests;

pub(crate) use lacpdu::{Lacpdu, PortInfo};
pub(crate) use marker::Marker;
pub(crate) use state::State;
pub(crate) use strict::{lacpdu_violations, marker_response_violations};

/// An Ethernet address.
pub(crate) type Mac = [u8; 6];

/// Where LACPDUs and Marker PDUs are sent (IEEE 802.3 Annex 57A, Table 57A-1).
pub(crate) const SLOW_PROTOCOLS_MULTICAST: Mac = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x02];
/// The EtherType of the slow protocols.
pub(crate) const SLOW_PROTOCOLS_TYPE: u16 = 0x8809;
/// Destination, source, type.
pub(crate) const ETHERNET_BYTES: usize = 14;
/// An LACPDU of version 1 and a Marker PDU, with the Ethernet header, without FCS.
pub(crate) const FRAME_BYTES: usize = ETHERNET_BYTES + 110;
/// The subtype that says LACP.
pub(crate) const SUBTYPE_LACP: u8 = 1;
/// The subtype that says Marker protocol.
pub(crate) const SUBTYPE_MARKER: u8 = 2;

/// What a received frame is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An LACPDU long enough to be read.
    Lacp(Lacpdu),
    /// A Marker or Marker Response PDU.
    Marker(Marker),
    /// Anything else.
    Other,
}

impl Kind {
    /// Reads a frame. Nothing is checked but that what is read is there: whether the
    /// frame keeps the rules is for [`lacpdu_violations`] to say.
    pub(crate) fn of(frame: &[u8]) -> Self {
        if read_u16(frame, 12) != Some(SLOW_PROTOCOLS_TYPE) {
            return Self::Other;
        }
        let read = match frame.get(ETHERNET_BYTES) {
            Some(&SUBTYPE_LACP) => Lacpdu::decode(frame).map(Self::Lacp),
            Some(&SUBTYPE_MARKER) => Marker::decode(frame).map(Self::Marker),
            _ => None,
        };
        read.unwrap_or(Self::Other)
    }
}

/// A frame of the slow protocols with nothing but its header and subtype.
fn blank(source: Mac, subtype: u8, version: u8) -> Vec<u8> {
    let mut frame = Vec::with_capacity(FRAME_BYTES);
    frame.extend(SLOW_PROTOCOLS_MULTICAST);
    frame.extend(source);
    frame.extend(SLOW_PROTOCOLS_TYPE.to_be_bytes());
    frame.extend([subtype, version]);
    frame
}

/// The big-endian number at `at`.
pub(crate) fn read_u16(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(read(frame, at)?))
}

/// The bytes at `at`.
pub(crate) fn read<const N: usize>(frame: &[u8], at: usize) -> Option<[u8; N]> {
    frame.get(at..)?.first_chunk().copied()
}

/// An address as people write it.
pub(crate) fn mac_text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
