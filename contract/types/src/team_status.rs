//! Observed state of teams: state, reason and traffic of each member.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use utoipa::ToSchema;

use crate::{Condition, LacpMemberStatus, Name, PortCounters, TeamConfig};

/// Observed state of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TeamStatus {
    /// Desired state of the team.
    pub config: TeamConfig,
    /// Switch that uses the team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Name>,
    /// Health, with the reason if it is not `up`. `down` with fewer usable members than
    /// `min_links`.
    pub condition: Condition,
    /// Counters of the team as one port of the switch.
    pub counters: PortCounters,
    /// Largest IP packet in bytes currently in effect: the smallest MTU of the members.
    pub mtu: u16,
    /// Sum of the active members' speeds in Mbit/s, without those of unknown speed.
    pub speed_mbps: u64,
    /// Partner of the aggregation group in use; absent without LACP or partner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacp_partner: Option<LacpPartnerStatus>,
    /// Members in the order of the configuration.
    pub members: Vec<TeamMemberStatus>,
}

/// Partner System of a team in LACP mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LacpPartnerStatus {
    /// MAC address of the System.
    #[schema(value_type = String)]
    pub system: MacAddr,
    /// Priority of the System. The end with the lower value selects the links in use.
    pub system_priority: u16,
    /// Aggregation key of the partner's ports.
    pub key: u16,
}

/// State of a member of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TeamMemberState {
    /// In use: the member transmits frames.
    Active,
    /// Usable but not in use: standby, or the team is down.
    #[serde(rename = "waiting")]
    Inactive,
    /// Not usable, for example because its link is down.
    Failed,
}

impl fmt::Display for TeamMemberState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::Inactive => "waiting",
            Self::Failed => "failed",
        })
    }
}

/// Observed state of a team's member.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TeamMemberStatus {
    /// Name of the member uplink.
    pub uplink: Name,
    /// Current state of the member.
    pub state: TeamMemberState,
    /// Reason for the member's state.
    pub reason: String,
    /// True if the link is up.
    pub link_up: bool,
    /// Speed in Mbit/s; absent if the device does not report it. The slowest known speed of the
    /// team is then assumed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbps: Option<u32>,
    /// True if the member is the receiving (primary) one, in modes with one receiving member.
    #[serde(rename = "primary")]
    pub is_primary: bool,
    /// True if the member is the standby.
    #[serde(rename = "standby")]
    pub is_standby: bool,
    /// Received bits in the last second.
    pub rx_bps: u64,
    /// Transmitted bits in the last second.
    pub tx_bps: u64,
    /// Share of the team's received bytes in the last second, in parts per million.
    pub rx_share_ppm: u32,
    /// Share of the team's transmitted bytes in the last second, in parts per million.
    pub tx_share_ppm: u32,
    /// Share of the team's flows that are assigned to the member by hash or load, in parts per
    /// million.
    pub flows_share_ppm: u32,
    /// Number of NICs assigned to the member; 0 for algorithms that do not assign NICs.
    pub nics: u32,
    /// Counters since the device was opened.
    pub counters: PortCounters,
    /// LACP on the member's link; absent in other modes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacp: Option<LacpMemberStatus>,
}

#[cfg(test)]
#[path = "team_status_tests.rs"]
mod tests;
