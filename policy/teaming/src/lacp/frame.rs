//! A slow protocol's PDU as a whole Ethernet frame.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_frame::{MacAddr, ethertype};
use thiserror::Error;

/// Where slow protocols are sent to (IEEE 802.3, Table 57A-1).
pub(crate) const DESTINATION: MacAddr = MacAddr::SLOW_PROTOCOLS;
/// Their Ethernet type (IEEE 802.3, Table 57A-2).
pub(crate) const ETHERTYPE: u16 = ethertype::SLOW;
/// Where a frame's PDU begins.
pub(crate) const PDU_AT: usize = 14;

/// Bytes of a LACPDU's or Marker PDU's frame without FCS: the Ethernet header
/// and 110 octets (IEEE 802.1AX-2014, 6.4.2.3 and 6.5.3.3).
pub const SLOW_FRAME_BYTES: usize = PDU_AT + 110;

/// A frame to send.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<u8>", into = "Vec<u8>")]
pub struct SlowFrame([u8; SLOW_FRAME_BYTES]);

impl SlowFrame {
    /// Its bytes, from the destination address on, without FCS.
    pub const fn bytes(&self) -> &[u8; SLOW_FRAME_BYTES] {
        &self.0
    }

    /// The first bytes of `frame`; what it lacks is zero.
    pub(crate) fn copy_of(frame: &[u8]) -> Self {
        let mut bytes = [0; SLOW_FRAME_BYTES];
        for (to, from) in bytes.iter_mut().zip(frame) {
            *to = *from;
        }
        Self(bytes)
    }

    /// A frame from `source` whose PDU begins with `parts`, one after another.
    /// What does not fit is left out.
    pub(crate) fn of_parts(source: MacAddr, parts: &[&[u8]]) -> Self {
        let mut bytes = [0; SLOW_FRAME_BYTES];
        let header = [&DESTINATION.octets()[..], &source.octets(), &ETHERTYPE.to_be_bytes()];
        let octets = header.iter().chain(parts).flat_map(|part| part.iter());
        for (to, from) in bytes.iter_mut().zip(octets) {
            *to = *from;
        }
        Self(bytes)
    }

    /// Overwrites one byte; nothing happens beyond the end.
    pub(crate) fn put(&mut self, at: usize, octet: u8) {
        if let Some(byte) = self.0.get_mut(at) {
            *byte = octet;
        }
    }

    /// Overwrites the addresses: to the group, from `source`.
    pub(crate) fn address(&mut self, source: MacAddr) {
        let octets = DESTINATION.octets().into_iter().chain(source.octets());
        for (to, from) in self.0.iter_mut().zip(octets) {
            *to = from;
        }
    }
}

impl fmt::Debug for SlowFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SlowFrame").field(&super::parse(&self.0)).finish()
    }
}

/// A recorded frame of another length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("{0} bytes are not a frame of {SLOW_FRAME_BYTES}")]
pub struct SlowFrameLength(usize);

impl TryFrom<Vec<u8>> for SlowFrame {
    type Error = SlowFrameLength;

    fn try_from(bytes: Vec<u8>) -> Result<Self, SlowFrameLength> {
        bytes.try_into().map(Self).map_err(|bytes: Vec<u8>| SlowFrameLength(bytes.len()))
    }
}

impl From<SlowFrame> for Vec<u8> {
    fn from(frame: SlowFrame) -> Self {
        frame.0.to_vec()
    }
}
