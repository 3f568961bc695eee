//! What is configured.

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use thiserror::Error;

use super::key::ADMIN_KEY_MAX;
use crate::MEMBERS_MAX;
use crate::MemberId;

/// Who speaks first (IEEE 802.1AX-2014, 6.4.1 c).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Activity {
    /// Speaks always.
    Active,
    /// Speaks only to a Partner that is active.
    Passive,
}

/// How often the Partner is to send, and how soon it is given up (6.4.1 d).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Timer {
    /// Every 30 s; given up after 90 s.
    Slow,
    /// Every second; given up after 3 s.
    Fast,
}

/// The aggregation of one team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LacpSpec {
    /// The System's address. Teams that share one also share the port numbers.
    pub system: MacAddr,
    /// The System's priority; the lower number's port priorities count.
    pub system_priority: u16,
    /// From 1 to 2047: teams of one System have different keys.
    pub admin_key: u16,
    /// Who speaks first.
    pub activity: Activity,
    /// How often the Partner is to send.
    pub timer: Timer,
    /// Whether one member is used alone if no Partner aggregates: it has no
    /// LACP, does not set the Aggregation bit, or the link is half duplex.
    pub individual_allowed: bool,
    /// Members in use at a time, from 1 to 32; the others stand by.
    pub max_active: u8,
    /// Whether members of different speeds may aggregate.
    pub mixed_speeds: bool,
}

/// A member's port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortSpec {
    /// Its number, not 0; unique in the System (6.3.4).
    pub port: u16,
    /// Its priority; the lower number is used first.
    pub priority: u16,
    /// The source address of its frames.
    pub mac: MacAddr,
}

/// What is known of a link that is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Megabits per second; 0 if unknown.
    pub speed_mbps: u32,
    /// Whether both ends may send at a time.
    pub full_duplex: bool,
}

/// Why a configuration is refused. Nothing was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum SpecError {
    /// No address of a station.
    #[error("{what} {mac} is a group or zero; give the address of a station")]
    NotAStation {
        /// `system` or `member address`.
        what: &'static str,
        /// The address.
        mac: MacAddr,
    },
    /// The administrative key is out of range.
    #[error("admin_key {0} is not from 1 to {ADMIN_KEY_MAX}")]
    AdminKey(u16),
    /// The limit of active members is out of range.
    #[error("max_active {0} is not from 1 to {MEMBERS_MAX}")]
    MaxActive(u8),
    /// Port 0 stands for "unknown" in LACPDUs.
    #[error("member {0} has port number 0; give one from 1 to 65535")]
    PortZero(MemberId),
    /// Two members have one port number.
    #[error("member {member} has the port number {port} of member {other}; give each its own")]
    DuplicatePort {
        /// The member.
        member: MemberId,
        /// The number.
        port: u16,
        /// Who has it already.
        other: MemberId,
    },
    /// The member is there already.
    #[error("member {0} is in the team already")]
    DuplicateMember(MemberId),
    /// There is no room.
    #[error("a team has at most {MEMBERS_MAX} members; remove one")]
    TooManyMembers,
    /// Nobody knows the member.
    #[error("member {0} is not in the team; add it first")]
    UnknownMember(MemberId),
}

impl LacpSpec {
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        if !self.system.is_station() {
            return Err(SpecError::NotAStation { what: "system", mac: self.system });
        }
        if self.admin_key == 0 || self.admin_key > ADMIN_KEY_MAX {
            return Err(SpecError::AdminKey(self.admin_key));
        }
        if self.max_active == 0 || usize::from(self.max_active) > MEMBERS_MAX {
            return Err(SpecError::MaxActive(self.max_active));
        }
        Ok(())
    }
}

impl PortSpec {
    pub(crate) fn check(&self, member: MemberId) -> Result<(), SpecError> {
        if self.port == 0 {
            return Err(SpecError::PortZero(member));
        }
        if !self.mac.is_station() {
            return Err(SpecError::NotAStation { what: "member address", mac: self.mac });
        }
        Ok(())
    }
}
