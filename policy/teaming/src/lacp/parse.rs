//! From a frame's bytes to a PDU.

use suimon_frame::MacAddr;

use super::error::PduError;
use super::frame::{DESTINATION, ETHERTYPE, PDU_AT};
use super::{Lacpdu, Marker};

pub(crate) const SUBTYPE_LACP: u8 = 1;
pub(crate) const SUBTYPE_MARKER: u8 = 2;
/// Subtypes from 1 to here belong to slow protocols, if not to ours.
const SUBTYPE_MAX: u8 = 10;
/// An untagged frame without FCS.
const FRAME_BYTES_MAX: usize = 1514;

/// A slow protocol's PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlowPdu {
    /// A LACPDU.
    Lacp(Lacpdu),
    /// A Marker PDU.
    Marker(Marker),
    /// Another slow protocol: OAM is 3, OSSP is 10.
    Other {
        /// Its subtype.
        subtype: u8,
    },
}

/// Reads a whole Ethernet frame without FCS, as a receiver has to: version, TLV
/// types and reserved fields of a LACPDU are not looked at (IEEE 802.1AX-2014,
/// 6.4.12), lengths of its TLVs are. Never panics, looks at 124 bytes at most.
///
/// # Errors
/// The first thing that is wrong, from the front of the frame.
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

/// As [`parse`], and refuses what is not exactly as version 1 sends it: another
/// version, a wrong TLV type, a reserved octet that is not zero. A receiver may
/// not be as strict; whoever judges a sender is.
///
/// # Errors
/// The first thing that is wrong.
pub fn parse_exact(frame: &[u8]) -> Result<SlowPdu, PduError> {
    let pdu = parse(frame)?;
    match pdu {
        SlowPdu::Lacp(_) => Lacpdu::check_exact(&Fields(frame))?,
        SlowPdu::Marker(_) => Marker::check_exact(&Fields(frame))?,
        SlowPdu::Other { .. } => {}
    }
    Ok(pdu)
}

/// A frame whose fields are read by name.
pub(crate) struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn cut_off(&self, offset: usize, field: &'static str) -> PduError {
        PduError::Truncated { field, offset, bytes: self.0.len() }
    }

    /// The `N` octets of `field`.
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

    /// Whether the frame goes on until `end`; `field` is what lies before it.
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

    /// Whether all octets from `start` to `end` are zero.
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
