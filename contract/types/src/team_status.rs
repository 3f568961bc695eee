//! Observed state of teams: what each member does, why, and what it carries.

use core::fmt;

use serde::{Deserialize, Serialize};
use suimon_frame::MacAddr;
use utoipa::ToSchema;

use crate::{Condition, LacpMemberStatus, Name, PortCounters, TeamConfig};

/// A team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TeamStatus {
    /// As desired.
    pub config: TeamConfig,
    /// The switch that uses it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switch: Option<Name>,
    /// Whether it is as desired, and has as many usable members as it needs.
    pub condition: Condition,
    /// Counters of the team as one port of the switch.
    pub counters: PortCounters,
    /// Largest IP packet now: the smallest of its members'.
    pub mtu: u16,
    /// Megabits per second of the members that are active; those of unknown speed count
    /// nothing.
    pub speed_mbps: u64,
    /// The other end of the group of links in use, in LACP mode and if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacp_partner: Option<LacpPartnerStatus>,
    /// Members, in the order in which they are configured.
    pub members: Vec<TeamMemberStatus>,
}

/// The System that the links of a team in LACP mode lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LacpPartnerStatus {
    /// Its address.
    #[schema(value_type = String)]
    pub system: MacAddr,
    /// Its priority; the lower number decides which links are used.
    pub system_priority: u16,
    /// Its key: what it aggregates has the same.
    pub key: u16,
}

/// What a member does in its team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum TeamMemberState {
    /// Frames leave by it.
    Active,
    /// It could carry frames and waits: it is the standby, or the team is down.
    Waiting,
    /// It cannot carry frames.
    Failed,
}

impl fmt::Display for TeamMemberState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Active => "active",
            Self::Waiting => "waiting",
            Self::Failed => "failed",
        })
    }
}

/// A member of a team.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TeamMemberStatus {
    /// The uplink.
    pub uplink: Name,
    /// What it does.
    pub state: TeamMemberState,
    /// Why.
    pub reason: String,
    /// Whether its link carries frames.
    pub link_up: bool,
    /// Megabits per second; absent if the device does not say, then it counts as the
    /// slowest of the team that does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speed_mbps: Option<u32>,
    /// Whether it receives where one member does.
    pub primary: bool,
    /// Whether it is the standby.
    pub standby: bool,
    /// Bits per second that came in by it in the last second.
    pub rx_bps: u64,
    /// Bits per second that went out by it in the last second.
    pub tx_bps: u64,
    /// Its share of what came in by the team in the last second, in parts per million.
    pub rx_share_ppm: u32,
    /// Its share of what went out by the team in the last second, in parts per million.
    pub tx_share_ppm: u32,
    /// Its share of the flows that are chosen for by hash or load, in parts per million.
    pub flows_share_ppm: u32,
    /// NICs that live on it; 0 where they do not live on one member.
    pub nics: u32,
    /// Counters since its device was opened.
    pub counters: PortCounters,
    /// LACP on its link, in LACP mode.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacp: Option<LacpMemberStatus>,
}

#[cfg(test)]
#[path = "team_status_tests.rs"]
mod tests;
