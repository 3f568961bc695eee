//! Desired state of teams: groups of uplinks that a switch uses as one.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Name, VmqConfig};

/// Largest number of uplinks in a team, equal to that of Hyper-V.
pub const TEAM_MEMBERS_MAX: usize = 32;

/// Configuration of the physical switch at the other end of a team.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TeamMode {
    /// The members' ports form a static link aggregation group.
    Static,
    /// The members' ports form a link aggregation group negotiated by LACP (IEEE 802.1AX).
    Lacp,
    /// The physical switch needs no configuration; members may be connected to different switches.
    SwitchIndependent,
}

/// Selection of the member that transmits a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TeamAlgorithm {
    /// By source NIC: each NIC is assigned to one member.
    HyperVPort,
    /// By IP addresses, protocol and ports.
    TransportPorts,
    /// By source and destination IP address.
    IpAddresses,
    /// By MAC addresses and VLAN.
    MacAddresses,
    /// Flows as in `transport-ports`, moved between members by load during pauses of the flow.
    #[default]
    Dynamic,
}

/// Interval of the LACPDUs requested from the partner, and timeout of its information (IEEE
/// 802.1AX-2014, 6.4.1 d).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LacpTimer {
    /// Every 30 s; timeout 90 s.
    #[default]
    Slow,
    /// Every second; timeout 3 s.
    Fast,
}

/// `[[team]]`: a group of uplinks used as one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TeamConfig {
    /// Name of the team, unique among teams and uplinks. A switch may name a team or an uplink as
    /// its `uplink`.
    pub name: Name,
    /// Member uplinks; an uplink belongs to at most one team. Of members that are equally suitable,
    /// for example as primary, the team selects the one listed first.
    pub members: Vec<Name>,
    /// Configuration of the physical switch: `static` (static link aggregation group), `lacp` (link
    /// aggregation group negotiated by LACP) or `switch-independent` (none required). After a
    /// change to `lacp`, the team forwards no frames until its links have negotiated.
    pub mode: TeamMode,
    /// Selection of the member that transmits a frame: `hyper-v-port` (by source NIC),
    /// `transport-ports` (by IP addresses, protocol and ports), `ip-addresses`, `mac-addresses`
    /// (with the VLAN), or `dynamic` (as `transport-ports`, with flows moved between members by
    /// load).
    #[serde(default)]
    pub algorithm: TeamAlgorithm,
    /// Mode `lacp`: interval at which the partner is requested to send LACPDUs, 30 s (`slow`) or 1
    /// s (`fast`); `slow` if absent. The state of the partner expires after three intervals.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacp_timer: Option<LacpTimer>,
    /// Mode `lacp`: true if LACPDUs are sent even to a passive partner; true if absent. At least
    /// one end must be active.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacp_active: Option<bool>,
    /// Mode `lacp`: system priority of this host; 32 768 if absent. The end with the lower value
    /// selects the links in use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacp_system_priority: Option<u16>,
    /// Smallest number of usable members with which the team is up, at most the number of members
    /// without the standby.
    #[serde(default = "default_min_links")]
    pub min_links: u16,
    /// Mode `switch-independent`: member that is used only while another one is unusable; none if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby: Option<Name>,
    /// Mode `switch-independent`: preferred member for receiving broadcasts, multicasts, and frames
    /// to NICs to which the algorithm assigns no member; selected by the team if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<Name>,
    /// Assignment of the queues of the members to workers.
    #[serde(default, skip_serializing_if = "VmqConfig::is_default")]
    pub vmq: VmqConfig,
}

/// Values of the `lacp_…` keys of a team in LACP mode, defaults included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LacpSettings {
    /// Interval requested from the partner.
    pub timer: LacpTimer,
    /// True if LACPDUs are sent even to a passive partner.
    pub active: bool,
    /// Priority of this System; the lower value takes precedence.
    pub system_priority: u16,
}

impl LacpSettings {
    /// Default system priority: the middle of the range, so that either end can be given
    /// precedence.
    pub const SYSTEM_PRIORITY_DEFAULT: u16 = 0x8000;
}

impl TeamConfig {
    /// Returns the LACP settings; `None` in other modes.
    pub fn lacp(&self) -> Option<LacpSettings> {
        match self.mode {
            TeamMode::Lacp => Some(LacpSettings {
                timer: self.lacp_timer.unwrap_or_default(),
                active: self.lacp_active.unwrap_or(true),
                system_priority: self
                    .lacp_system_priority
                    .unwrap_or(LacpSettings::SYSTEM_PRIORITY_DEFAULT),
            }),
            TeamMode::Static | TeamMode::SwitchIndependent => None,
        }
    }
}

const fn default_min_links() -> u16 {
    1
}
