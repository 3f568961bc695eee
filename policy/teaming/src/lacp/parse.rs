//! Parsing of slow protocol frames.

use core::fmt;

use suimon_frame::MacAddr;

use super::error::PduError;
use super::frame::{DESTINATION, ETHERTYPE, PDU_OFFSET, SlowFrame};
use super::frame_reader::{FrameReader, SUBTYPE_LACP, SUBTYPE_MARKER};
use super::{Lacpdu, Marker};

/// Largest subtype assigned to slow protocols (IEEE 802.3, Table 57A-3).
const SUBTYPE_MAX: u8 = 10;
/// Maximum length of an untagged frame without FCS, in bytes.
const FRAME_BYTES_MAX: usize = 1514;

/// Parsed slow protocol PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowPdu {
    /// Link Aggregation Control PDU.
    Lacp(Lacpdu),
    /// Marker PDU or Marker Response.
    Marker(Marker),
    /// PDU of another slow protocol: OAM is 3, OSSP is 10.
    Other {
        /// Subtype of the slow protocol.
        subtype: u8,
    },
}

/// Parses a complete Ethernet frame without FCS with the tolerance required of a receiver: version,
/// TLV types and reserved fields of a LACPDU are not validated (IEEE 802.1AX-2014, 6.4.12), TLV
/// lengths are. Never panics and reads at most 124 bytes.
///
/// # Errors
///
/// The first defect from the beginning of the frame.
pub fn parse(frame: &[u8]) -> Result<SlowPdu, PduError> {
    let fields = FrameReader(frame);
    if frame.len() > FRAME_BYTES_MAX {
        return Err(PduError::Oversize { bytes: frame.len(), max: FRAME_BYTES_MAX });
    }
    let destination = MacAddr::new(fields.read_array(0, "destination")?);
    fields.read_array::<6>(6, "source")?;
    let ethertype = u16::from_be_bytes(fields.read_array(12, "type")?);
    if destination != DESTINATION {
        return Err(PduError::Destination { found: destination });
    }
    if ethertype != ETHERTYPE {
        return Err(PduError::EtherType { found: ethertype });
    }
    match fields.read_octet(PDU_OFFSET, "subtype")? {
        SUBTYPE_LACP => Lacpdu::read(&fields).map(SlowPdu::Lacp),
        SUBTYPE_MARKER => Marker::read(&fields).map(SlowPdu::Marker),
        subtype @ 1..=SUBTYPE_MAX => Ok(SlowPdu::Other { subtype }),
        found => Err(PduError::Subtype { found }),
    }
}

/// Parses a frame as [`parse`] does, and also rejects deviations from the format that version 1
/// sends: another version, a wrong TLV type, a non-zero reserved octet. For conformance checks of a
/// sender; too strict for a receiver.
///
/// # Errors
///
/// The first defect from the beginning of the frame.
pub fn parse_exact(frame: &[u8]) -> Result<SlowPdu, PduError> {
    let pdu = parse(frame)?;
    match pdu {
        SlowPdu::Lacp(_) => Lacpdu::check_exact(&FrameReader(frame))?,
        SlowPdu::Marker(_) => Marker::check_exact(&FrameReader(frame))?,
        SlowPdu::Other { .. } => {}
    }
    Ok(pdu)
}

impl fmt::Debug for SlowFrame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SlowFrame").field(&parse(self.bytes())).finish()
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
