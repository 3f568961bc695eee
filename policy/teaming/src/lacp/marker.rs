//! Format of the Marker PDU (IEEE 802.1AX-2014, 6.5.3.3, Figures 6-27 and 6-28).

use suimon_frame::MacAddr;

use super::SlowFrame;
use super::error::PduError;
use super::frame::{PDU_OFFSET, SLOW_FRAME_BYTES};
use super::frame_reader::{FrameReader, SUBTYPE_MARKER};

/// Type of a Marker PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkerKind {
    /// Marker: requests a response after all frames received before it.
    Information,
    /// Marker Response PDU (IEEE 802.1AX-2014, 6.5).
    Response,
}

/// Contents of a Marker PDU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Type of the PDU: Marker or response.
    pub kind: MarkerKind,
    /// Port number of the requester.
    pub requester_port: u16,
    /// System address of the requester.
    pub requester_system: MacAddr,
    /// Transaction identifier chosen by the requester.
    pub transaction: u32,
}

const INFORMATION: u8 = 1;
const RESPONSE: u8 = 2;
const LENGTH: u8 = 16;
const VERSION_AT: usize = PDU_OFFSET + 1;
const TLV_AT: usize = PDU_OFFSET + 2;
const PAD_AT: usize = TLV_AT + 14;
const TERMINATOR_AT: usize = TLV_AT + LENGTH as usize;

impl Marker {
    /// Returns an Ethernet frame with the source address `source` that carries this PDU. Pad and
    /// reserved octets are zero.
    pub fn to_frame(&self, source: MacAddr) -> SlowFrame {
        let kind = match self.kind {
            MarkerKind::Information => INFORMATION,
            MarkerKind::Response => RESPONSE,
        };
        SlowFrame::from_parts(
            source,
            &[
                &[SUBTYPE_MARKER, super::constants::VERSION, kind, LENGTH],
                &self.requester_port.to_be_bytes(),
                &self.requester_system.octets(),
                &self.transaction.to_be_bytes(),
            ],
        )
    }

    /// Parses a Marker PDU. Version, pad, terminator and reserved octets are not validated; the TLV
    /// type determines the kind of the PDU.
    ///
    /// # Errors
    ///
    /// The first defect from the beginning of the frame.
    pub(crate) fn read(fields: &FrameReader<'_>) -> Result<Self, PduError> {
        const TYPE: &str = "marker TLV type";
        fields.read_octet(VERSION_AT, "version")?;
        let kind = match fields.read_octet(TLV_AT, TYPE)? {
            INFORMATION => MarkerKind::Information,
            RESPONSE => MarkerKind::Response,
            found => {
                let expected = INFORMATION;
                return Err(PduError::TlvType { field: TYPE, offset: TLV_AT, found, expected });
            }
        };
        fields.check_tlv_length(TLV_AT + 1, "marker information length", LENGTH)?;
        let port = fields.read_array(TLV_AT + 2, "requester port")?;
        let system = fields.read_array(TLV_AT + 4, "requester system")?;
        let transaction = fields.read_array(TLV_AT + 10, "requester transaction")?;
        fields.check_extends_to(SLOW_FRAME_BYTES, PAD_AT, "pad and reserved octets")?;
        Ok(Self {
            kind,
            requester_port: u16::from_be_bytes(port),
            requester_system: MacAddr::new(system),
            transaction: u32::from_be_bytes(transaction),
        })
    }

    /// Validates the fields that [`Marker::read`] ignores: they must be as version 1 sends them.
    ///
    /// # Errors
    ///
    /// The first deviation.
    pub(crate) fn check_exact(fields: &FrameReader<'_>) -> Result<(), PduError> {
        let version = fields.read_octet(VERSION_AT, "version")?;
        if version != super::constants::VERSION {
            return Err(PduError::Version { found: version });
        }
        fields.check_zero(PAD_AT, TERMINATOR_AT, "pad")?;
        fields.check_tlv_type(TERMINATOR_AT, "terminator TLV type", 0)?;
        fields.check_tlv_length(TERMINATOR_AT + 1, "terminator length", 0)?;
        fields.check_zero(TERMINATOR_AT + 2, SLOW_FRAME_BYTES, "reserved octets")
    }

    /// Returns the response to the Marker PDU in `frame`: a copy with the source address `source`
    /// and the TLV type of a response (6.5.4.2, Figure 6-30).
    pub(crate) fn response(frame: &[u8], source: MacAddr) -> SlowFrame {
        let mut response = SlowFrame::from_frame_bytes(frame);
        response.set_addresses(source);
        response.put(TLV_AT, RESPONSE);
        response
    }
}
