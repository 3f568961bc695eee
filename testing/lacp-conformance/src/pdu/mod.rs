//! Codec of the suite for frames of the slow protocols.

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

/// Destination address of LACPDUs and Marker PDUs (IEEE 802.3 Annex 57A, Table 57A-1).
pub(crate) const SLOW_PROTOCOLS_MULTICAST: Mac = [0x01, 0x80, 0xc2, 0x00, 0x00, 0x02];
/// EtherType of the slow protocols.
pub(crate) const SLOW_PROTOCOLS_TYPE: u16 = 0x8809;
/// Length of the Ethernet header: destination, source, type.
pub(crate) const ETHERNET_BYTES: usize = 14;
/// Length of an LACPDU of version 1 or a Marker PDU with the Ethernet header, without FCS.
pub(crate) const FRAME_BYTES: usize = ETHERNET_BYTES + 110;
/// Subtype of LACP.
pub(crate) const SUBTYPE_LACP: u8 = 1;
/// Subtype of the Marker protocol.
pub(crate) const SUBTYPE_MARKER: u8 = 2;

/// Type and contents of a received frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An LACPDU that is long enough to be decoded.
    Lacp(Lacpdu),
    /// A Marker or Marker Response PDU.
    Marker(Marker),
    /// Any other frame.
    Other,
}

impl Kind {
    /// Decodes a frame. The only check is that all fields are present; [`lacpdu_violations`] checks
    /// conformance.
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

/// Returns the header and subtype of a frame of the slow protocols.
fn blank(source: Mac, subtype: u8, version: u8) -> Vec<u8> {
    let mut frame = Vec::with_capacity(FRAME_BYTES);
    frame.extend(SLOW_PROTOCOLS_MULTICAST);
    frame.extend(source);
    frame.extend(SLOW_PROTOCOLS_TYPE.to_be_bytes());
    frame.extend([subtype, version]);
    frame
}

/// Returns the big-endian number at offset `at`.
pub(crate) fn read_u16(frame: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes(read(frame, at)?))
}

/// Returns the bytes at offset `at`.
pub(crate) fn read<const N: usize>(frame: &[u8], at: usize) -> Option<[u8; N]> {
    frame.get(at..)?.first_chunk().copied()
}

/// Returns an address as text.
pub(crate) fn mac_text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}
