//! Parsing of slow protocol frames.

use suimon_frame::MacAddr;

use super::error::PduError;
use super::frame::{DESTINATION, ETHERTYPE, PDU_AT};
use super::{Lacpdu, Marker};

pub(crate) const SUBTYPE_LACP: u8 = 1;
pub(crate) const SUBTYPE_MARKER: u8 = 2;
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
    let fields = Fields(frame);
    if frame.len() > FRAME_BYTES_MAX {
        return Err(PduError::Oversize { bytes: frame.len(), max: FRAME_BYTES_MAX });
    }
    let destination = MacAddr::new(fields.array(0, "destination")?);
    fields.array::<6>(6, "source")?;
    let ethertype = u16::from_be_bytes(fields.array(12, "type")?);
    if destination != DESTINATION {
        return Err(PduError::Destination { found: destination });
    }
    if ethertype != ETHERTYPE {
        return Err(PduError::EtherType { found: ethertype });
    }
    match fields.octet(PDU_AT, "subtype")? {
        SUBTYPE_LACP => Lacpdu::read(&fields).map(SlowPdu::Lacp),
        SUBTYPE_MARKER => Marker::read(&fields).map(SlowPdu::Marker),
        subtype @ 1..=SUBTYPE_MAX => Ok(SlowPdu::Other { subtype }),
        found => Err(PduError::Subtype { found }),
    }
}

/// Parses as [`parse`] does and also rejects deviations from the format that version 1 sends:
/// another version, a wrong TLV type, a non-zero reserved octet. For conformance checks of a
/// sender; too strict for a receiver.
///
/// # Errors
///
/// The first defect.
pub fn parse_exact(frame: &[u8]) -> Result<SlowPdu, PduError> {
    let pdu = parse(frame)?;
    match pdu {
        SlowPdu::Lacp(_) => Lacpdu::check_exact(&Fields(frame))?,
        SlowPdu::Marker(_) => Marker::check_exact(&Fields(frame))?,
        SlowPdu::Other { .. } => {}
    }
    Ok(pdu)
}

/// Frame with access to fields by offset and name.
pub(crate) struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn cut_off(&self, offset: usize, field: &'static str) -> PduError {
        PduError::Truncated { field, offset, bytes: self.0.len() }
    }

    /// Returns the `N` octets of `field`.
    pub(crate) fn array<const N: usize>(
        &self,
        offset: usize,
        field: &'static str,
    ) -> Result<[u8; N], PduError> {
        let octets = self.0.get(offset..).and_then(|rest| rest.first_chunk());
        octets.copied().ok_or_else(|| self.cut_off(offset, field))
    }

    pub(crate) fn octet(&self, offset: usize, field: &'static str) -> Result<u8, PduError> {
        self.array(offset, field).map(|[octet]| octet)
    }

    /// Checks that the frame extends to `end`; `field` names the octets before it.
    pub(crate) fn up_to(
        &self,
        end: usize,
        offset: usize,
        field: &'static str,
    ) -> Result<(), PduError> {
        if self.0.len() < end { Err(self.cut_off(offset, field)) } else { Ok(()) }
    }

    pub(crate) fn length(
        &self,
        offset: usize,
        field: &'static str,
        expected: u8,
    ) -> Result<(), PduError> {
        let found = self.octet(offset, field)?;
        if found == expected {
            return Ok(());
        }
        Err(PduError::TlvLength { field, offset, found, expected })
    }

    pub(crate) fn tlv_type(
        &self,
        offset: usize,
        field: &'static str,
        expected: u8,
    ) -> Result<(), PduError> {
        let found = self.octet(offset, field)?;
        if found == expected {
            return Ok(());
        }
        Err(PduError::TlvType { field, offset, found, expected })
    }

    /// Checks that all octets from `start` to `end` are zero.
    pub(crate) fn zero(
        &self,
        start: usize,
        end: usize,
        field: &'static str,
    ) -> Result<(), PduError> {
        let octets = self.0.get(start..end).ok_or_else(|| self.cut_off(start, field))?;
        match octets.iter().position(|octet| *octet != 0) {
            Some(at) => Err(PduError::Reserved { field, offset: start + at }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "parse_tests.rs"]
mod tests;
