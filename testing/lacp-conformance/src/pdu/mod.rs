//! Codec of the suite for frames of the slow protocols.

mod frame;
mod lacpdu;
mod marker;
mod state;
mod strict;

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) use frame::FRAME_BYTES;
pub(crate) use frame::{
    ETHERNET_BYTES, Mac, SLOW_PROTOCOLS_TYPE, SUBTYPE_LACP, SUBTYPE_MARKER, mac_text, read,
    read_u16,
};
pub(crate) use lacpdu::{Lacpdu, PortInfo};
pub(crate) use marker::Marker;
pub(crate) use state::State;
pub(crate) use strict::{lacpdu_violations, marker_response_violations};

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
    pub(crate) fn decode(frame: &[u8]) -> Self {
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
