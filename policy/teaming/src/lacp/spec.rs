//! Configuration of LACP.

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use thiserror::Error;

use super::constants::ADMIN_KEY_MAX;
use crate::MEMBERS_MAX;
use crate::MemberId;

/// LACP activity: whether an end starts the exchange of LACPDUs (IEEE 802.1AX-2014, 6.4.1 c).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// Sends LACPDUs regardless of the Partner.
    Active,
    /// Sends LACPDUs only if the Partner is active.
    Passive,
}

/// Transmission interval requested of the Partner and resulting timeout (6.4.1 d).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Timer {
    /// LACPDUs every 30 s, timeout after 90 s.
    Slow,
    /// LACPDUs every second, timeout after 3 s.
    Fast,
}

/// LACP configuration of one team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LacpSpec {
    /// System address. Teams with the same System address also share the range of port numbers.
    pub system: MacAddr,
    /// System priority; lower numbers have precedence. The port priorities of the System with
    /// precedence decide which links are used.
    pub system_priority: u16,
    /// Administrative key, 1 to 2047. Teams of one System have different keys.
    pub admin_key: u16,
    /// LACP activity of the local end.
    pub activity: Activity,
    /// Transmission interval requested of the Partner.
    pub timer: Timer,
    /// True if a single member is used when no Partner aggregates: the Partner does not speak LACP
    /// or does not set the Aggregation bit, or the link is half duplex.
    pub individual_allowed: bool,
    /// Maximum number of members in use, 1 to 32; the others are standby.
    pub max_active: u8,
    /// True if members of different speeds may aggregate.
    #[serde(rename = "mixed_speeds")]
    pub mixed_speeds_allowed: bool,
}

/// LACP configuration of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LacpPortSpec {
    /// Port number, not 0; unique in the System (6.3.4).
    pub port: u16,
    /// Port priority; members with lower numbers are used first.
    pub priority: u16,
    /// Source address of transmitted LACPDUs.
    pub mac: MacAddr,
}

/// Properties of a link that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Speed in Mbit/s; 0 if unknown.
    pub speed_mbps: u32,
    /// True if the link is full duplex.
    pub full_duplex: bool,
}

/// Reason for which an LACP configuration is rejected. The previous configuration stays in effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LacpSpecError {
    /// The address is a group address or zero.
    #[error("{field} {mac} is a group address or zero; set a unicast address")]
    NotAStationAddress {
        /// Name of the field: `system` or `member set_addresses`.
        field: &'static str,
        /// Rejected address.
        mac: MacAddr,
    },
    /// The administrative key is out of range.
    #[error("admin_key {0} is outside of 1 to {ADMIN_KEY_MAX}")]
    AdminKey(u16),
    /// The limit of active members is out of range.
    #[error("max_active {0} is outside of 1 to {MEMBERS_MAX}")]
    MaxActive(u8),
    /// The port number is 0, which means "unknown" in LACPDUs.
    #[error("member {0} has port number 0; set one from 1 to 65535")]
    PortZero(MemberId),
    /// Two members have the same port number.
    #[error("members {member} and {other} both have port number {port}; set different ones")]
    DuplicatePort {
        /// Member that is being configured with the number.
        member: MemberId,
        /// Port number of both members.
        port: u16,
        /// Member that already has the number.
        other: MemberId,
    },
    /// The member is already in the team.
    #[error("member {0} is already in the team")]
    DuplicateMember(MemberId),
    /// The team has [`MEMBERS_MAX`] members already.
    #[error("a team has at most {MEMBERS_MAX} members; remove one")]
    TooManyMembers,
    /// The member is not in the team.
    #[error("member {0} is not in the team; add it first")]
    UnknownMember(MemberId),
}

impl LacpSpec {
    pub(crate) fn check(&self) -> Result<(), LacpSpecError> {
        if !self.system.is_station() {
            return Err(LacpSpecError::NotAStationAddress { field: "system", mac: self.system });
        }
        if self.admin_key == 0 || self.admin_key > ADMIN_KEY_MAX {
            return Err(LacpSpecError::AdminKey(self.admin_key));
        }
        if self.max_active == 0 || usize::from(self.max_active) > MEMBERS_MAX {
            return Err(LacpSpecError::MaxActive(self.max_active));
        }
        Ok(())
    }
}

impl LacpPortSpec {
    pub(crate) fn check(&self, member: MemberId) -> Result<(), LacpSpecError> {
        if self.port == 0 {
            return Err(LacpSpecError::PortZero(member));
        }
        if !self.mac.is_station() {
            return Err(LacpSpecError::NotAStationAddress {
                field: "member address",
                mac: self.mac,
            });
        }
        Ok(())
    }
}
