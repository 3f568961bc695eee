//! Marker and Marker Response PDUs (802.1AX-2014, 6.5.3.3).

use super::{FRAME_BYTES, Mac, SUBTYPE_MARKER, blank, read, read_u16};

/// A Marker PDU or the response to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Marker {
    /// The frame's source address.
    pub(crate) source: Mac,
    /// Whether it answers.
    pub(crate) is_response: bool,
    pub(crate) requester_port: u16,
    pub(crate) requester_system: Mac,
    pub(crate) transaction: u32,
}

impl Marker {
    /// The frame, without FCS.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut frame = blank(self.source, SUBTYPE_MARKER, 1);
        frame.extend([if self.is_response { 2 } else { 1 }, 16]);
        frame.extend(self.requester_port.to_be_bytes());
        frame.extend(self.requester_system);
        frame.extend(self.transaction.to_be_bytes());
        // Pad, terminator and what is reserved.
        frame.resize(FRAME_BYTES, 0);
        frame
    }

    /// Reads the fields at their places; `None` if they are not there, or the TLV's
    /// type is neither a marker's nor a response's.
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
