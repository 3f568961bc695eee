//! Ethernet frame that carries a slow protocol PDU.

use serde::{Deserialize, Serialize};
use suimon_frame::{MacAddr, ethertype};
use thiserror::Error;

/// Destination group address of slow protocols (IEEE 802.3, Table 57A-1).
pub(crate) const DESTINATION: MacAddr = MacAddr::SLOW_PROTOCOLS;
/// EtherType of slow protocols (IEEE 802.3, Table 57A-2).
pub(crate) const ETHERTYPE: u16 = ethertype::SLOW;
/// Offset of the PDU in the frame, in bytes.
pub(crate) const PDU_OFFSET: usize = 14;

/// Length of a frame with a LACPDU or Marker PDU without FCS, in bytes: Ethernet header and 110
/// octets (IEEE 802.1AX-2014, 6.4.2.3 and 6.5.3.3).
pub const SLOW_FRAME_BYTES: usize = PDU_OFFSET + 110;

/// LACPDU or Marker Response to send, as a complete Ethernet frame.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct SlowFrame([u8; SLOW_FRAME_BYTES]);

impl SlowFrame {
    /// Returns the bytes of the frame from the destination address on, without FCS.
    pub const fn bytes(&self) -> &[u8; SLOW_FRAME_BYTES] {
        &self.0
    }

    /// Creates a frame from the first [`SLOW_FRAME_BYTES`] bytes of `frame`; missing bytes are
    /// zero.
    pub(crate) fn from_frame_bytes(frame: &[u8]) -> Self {
        let mut bytes = [0; SLOW_FRAME_BYTES];
        for (to, from) in bytes.iter_mut().zip(frame) {
            *to = *from;
        }
        Self(bytes)
    }

    /// Creates a frame with the source address `source` whose PDU begins with the concatenated
    /// `parts`; the rest is zero. Excess bytes are dropped.
    pub(crate) fn from_parts(source: MacAddr, parts: &[&[u8]]) -> Self {
        let mut bytes = [0; SLOW_FRAME_BYTES];
        let header = [&DESTINATION.octets()[..], &source.octets(), &ETHERTYPE.to_be_bytes()];
        let octets = header.iter().chain(parts).flat_map(|part| part.iter());
        for (to, from) in bytes.iter_mut().zip(octets) {
            *to = *from;
        }
        Self(bytes)
    }

    /// Overwrites the byte at `index`; no effect beyond the end of the frame.
    pub(crate) fn put(&mut self, index: usize, octet: u8) {
        if let Some(byte) = self.0.get_mut(index) {
            *byte = octet;
        }
    }

    /// Sets the destination to the slow protocols' group address and the source to `source`.
    pub(crate) fn set_addresses(&mut self, source: MacAddr) {
        let octets = DESTINATION.octets().into_iter().chain(source.octets());
        for (to, from) in self.0.iter_mut().zip(octets) {
            *to = from;
        }
    }
}

/// Error: a frame in a recording is not [`SLOW_FRAME_BYTES`] long. Contains its length in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("recorded slow protocol frame has {0} bytes instead of {SLOW_FRAME_BYTES}")]
pub struct InvalidSlowFrameLength(usize);

impl TryFrom<Vec<u8>> for SlowFrame {
    type Error = InvalidSlowFrameLength;

    fn try_from(bytes: Vec<u8>) -> Result<Self, InvalidSlowFrameLength> {
        bytes.try_into().map(Self).map_err(|bytes: Vec<u8>| InvalidSlowFrameLength(bytes.len()))
    }
}

impl From<SlowFrame> for Vec<u8> {
    fn from(frame: SlowFrame) -> Self {
        frame.0.to_vec()
    }
}
