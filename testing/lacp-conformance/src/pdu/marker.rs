//! Marker and Marker Response PDUs (802.1AX-2014, 6.5.3.3).

use super::frame::{FRAME_BYTES, Mac, SUBTYPE_MARKER, blank, read, read_u16};

/// A Marker PDU or Marker Response PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    /// Source address of the frame.
    pub(crate) source: Mac,
    /// Whether this is a Marker Response PDU.
    pub(crate) is_response: bool,
    pub(crate) requester_port: u16,
    pub(crate) requester_system: Mac,
    pub(crate) transaction: u32,
}

impl Marker {
    /// Encodes the frame without FCS.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut frame = blank(self.source, SUBTYPE_MARKER, 1);
        frame.extend([if self.is_response { 2 } else { 1 }, 16]);
        frame.extend(self.requester_port.to_be_bytes());
        frame.extend(self.requester_system);
        frame.extend(self.transaction.to_be_bytes());
        // Pad, Terminator TLV and reserved octets.
        frame.resize(FRAME_BYTES, 0);
        frame
    }

    /// Decodes the fields at their fixed offsets; `None` if the frame is too short or the first TLV
    /// is neither a Marker nor a Marker Response TLV.
    pub(crate) fn decode(frame: &[u8]) -> Option<Self> {
        let is_response = match frame.get(16)? {
            1 => false,
            2 => true,
            _ => return None,
        };
        Some(Self {
            source: read(frame, 6)?,
            is_response,
            requester_port: read_u16(frame, 18)?,
            requester_system: read(frame, 20)?,
            transaction: u32::from_be_bytes(read(frame, 26)?),
        })
    }
}
