//! Format of the LACPDU (IEEE 802.1AX-2014, 6.4.2.3, Figure 6-7).

use suimon_frame::MacAddr;

use super::error::PduError;
use super::frame::{PDU_OFFSET, SLOW_FRAME_BYTES};
use super::frame_reader::{FrameReader, SUBTYPE_LACP};
use super::{PortInfo, SlowFrame};

/// Contents of a LACPDU, without reserved fields.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lacpdu {
    /// Protocol version of the sender.
    pub version: u8,
    /// Sender's end of the link.
    pub actor: PortInfo,
    /// Receiver's end of the link, as recorded by the sender.
    pub partner: PortInfo,
    /// Maximum collector delay of the sender, in tens of microseconds.
    pub collector_max_delay: u16,
}

const ACTOR: u8 = 1;
const PARTNER: u8 = 2;
const COLLECTOR: u8 = 3;
const TERMINATOR: u8 = 0;
const INFO_LENGTH: u8 = 20;
const COLLECTOR_LENGTH: u8 = 16;

const VERSION_AT: usize = PDU_OFFSET + 1;
const ACTOR_AT: usize = PDU_OFFSET + 2;
const PARTNER_AT: usize = ACTOR_AT + INFO_LENGTH as usize;
const COLLECTOR_AT: usize = PARTNER_AT + INFO_LENGTH as usize;
const TERMINATOR_AT: usize = COLLECTOR_AT + COLLECTOR_LENGTH as usize;
const ACTOR_RESERVED_AT: usize = ACTOR_AT + 2 + PortInfo::BYTES;
const PARTNER_RESERVED_AT: usize = PARTNER_AT + 2 + PortInfo::BYTES;
const COLLECTOR_RESERVED_AT: usize = COLLECTOR_AT + 4;
const ACTOR_RESERVED: &str = "actor reserved octets";
const PARTNER_RESERVED: &str = "partner reserved octets";
const COLLECTOR_RESERVED: &str = "collector reserved octets";

impl Lacpdu {
    /// Returns an Ethernet frame with the source address `source` that carries this LACPDU.
    /// Reserved fields are zero.
    pub fn to_frame(&self, source: MacAddr) -> SlowFrame {
        let delay = self.collector_max_delay.to_be_bytes();
        SlowFrame::from_parts(
            source,
            &[
                &[SUBTYPE_LACP, self.version, ACTOR, INFO_LENGTH],
                &self.actor.to_octets(),
                &[0; 3],
                &[PARTNER, INFO_LENGTH],
                &self.partner.to_octets(),
                &[0; 3],
                &[COLLECTOR, COLLECTOR_LENGTH],
                &delay,
                &[0; 12],
                &[TERMINATOR, 0],
            ],
        )
    }

    /// Parses a LACPDU as 6.4.12 specifies: version, TLV types and reserved fields are not
    /// validated, lengths are. From version 2 on, the octets after the Collector TLV are not
    /// validated, because that version has further TLVs there.
    ///
    /// # Errors
    ///
    /// [`PduError::Truncated`] or [`PduError::TlvLength`] for the first defect.
    pub(crate) fn read(fields: &FrameReader<'_>) -> Result<Self, PduError> {
        let version = fields.read_octet(VERSION_AT, "version")?;
        fields.read_octet(ACTOR_AT, "actor TLV type")?;
        fields.check_tlv_length(ACTOR_AT + 1, "actor information length", INFO_LENGTH)?;
        let actor = PortInfo::from_octets(fields.read_array(ACTOR_AT + 2, "actor information")?);
        fields.check_extends_to(PARTNER_AT, ACTOR_RESERVED_AT, ACTOR_RESERVED)?;
        fields.read_octet(PARTNER_AT, "partner TLV type")?;
        fields.check_tlv_length(PARTNER_AT + 1, "partner information length", INFO_LENGTH)?;
        let partner =
            PortInfo::from_octets(fields.read_array(PARTNER_AT + 2, "partner information")?);
        fields.check_extends_to(COLLECTOR_AT, PARTNER_RESERVED_AT, PARTNER_RESERVED)?;
        fields.read_octet(COLLECTOR_AT, "collector TLV type")?;
        fields.check_tlv_length(
            COLLECTOR_AT + 1,
            "collector information length",
            COLLECTOR_LENGTH,
        )?;
        let delay = fields.read_array(COLLECTOR_AT + 2, "collector max delay")?;
        fields.check_extends_to(TERMINATOR_AT, COLLECTOR_RESERVED_AT, COLLECTOR_RESERVED)?;
        if version < 2 {
            fields.read_octet(TERMINATOR_AT, "terminator TLV type")?;
            fields.check_tlv_length(TERMINATOR_AT + 1, "terminator length", 0)?;
        } else {
            fields.read_array::<2>(TERMINATOR_AT, "TLV after the collector's")?;
        }
        fields.check_extends_to(SLOW_FRAME_BYTES, TERMINATOR_AT + 2, "reserved octets")?;
        Ok(Self { version, actor, partner, collector_max_delay: u16::from_be_bytes(delay) })
    }

    /// Validates the fields that [`Lacpdu::read`] ignores: they must be as version 1 sends them.
    ///
    /// # Errors
    ///
    /// The first deviation.
    pub(crate) fn check_exact(fields: &FrameReader<'_>) -> Result<(), PduError> {
        let version = fields.read_octet(VERSION_AT, "version")?;
        if version != super::constants::VERSION {
            return Err(PduError::Version { found: version });
        }
        fields.check_tlv_type(ACTOR_AT, "actor TLV type", ACTOR)?;
        fields.check_zero(ACTOR_RESERVED_AT, PARTNER_AT, ACTOR_RESERVED)?;
        fields.check_tlv_type(PARTNER_AT, "partner TLV type", PARTNER)?;
        fields.check_zero(PARTNER_RESERVED_AT, COLLECTOR_AT, PARTNER_RESERVED)?;
        fields.check_tlv_type(COLLECTOR_AT, "collector TLV type", COLLECTOR)?;
        fields.check_zero(COLLECTOR_RESERVED_AT, TERMINATOR_AT, COLLECTOR_RESERVED)?;
        fields.check_tlv_type(TERMINATOR_AT, "terminator TLV type", TERMINATOR)?;
        fields.check_zero(TERMINATOR_AT + 2, SLOW_FRAME_BYTES, "reserved octets")
    }
}
