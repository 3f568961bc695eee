//! Desired state of teams: several uplinks that a switch uses as one.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{Name, VmqConfig};

/// Most uplinks of one team, as many as Hyper-V's.
pub const TEAM_MEMBERS_MAX: usize = 32;

/// What the switch on the other side of a team knows of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TeamMode {
    /// It has the members' ports in one group, by configuration.
    Static,
    /// It has them in one group, by agreement (IEEE 802.1AX).
    Lacp,
    /// Nothing: the members may be on different switches.
    SwitchIndependent,
}

/// By what a team chooses the member that a frame leaves by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TeamAlgorithm {
    /// The NIC it came from: each NIC lives on one member.
    HyperVPort,
    /// IP addresses, protocol and ports.
    TransportPorts,
    /// IP addresses.
    IpAddresses,
    /// MAC addresses and VLAN.
    MacAddresses,
    /// Flows as for `transport-ports`, moved between members by load when they pause.
    #[default]
    Dynamic,
}

/// How often the switch on the other side is to send LACPDUs, and how soon it is given
/// up (IEEE 802.1AX-2014, 6.4.1 d).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum LacpTimer {
    /// Every 30 s; given up after 90 s.
    #[default]
    Slow,
    /// Every second; given up after 3 s.
    Fast,
}

/// `[[team]]`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TeamConfig {
    /// Unique among teams and uplinks; a switch names either as its `uplink`.
    pub name: Name,
    /// Names of uplinks, 1 to 32, each once and in no other team. Where nothing else
    /// decides, the earlier is preferred.
    pub members: Vec<Name>,
    /// What the switch on the other side knows of the team.
    pub mode: TeamMode,
    /// By what the team chooses the member that a frame leaves by.
    #[serde(default)]
    pub algorithm: TeamAlgorithm,
    /// lacp: how often the switch on the other side is to send LACPDUs, every 30 s
    /// (`slow`) or every second (`fast`); it is given up after three that did not come.
    /// `slow` if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacp_timer: Option<LacpTimer>,
    /// lacp: whether we send LACPDUs to a switch that does not; true if absent. Of two
    /// ends one must.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacp_active: Option<bool>,
    /// lacp: our priority, 0 to 65 535; 32 768 if absent. The end with the lower number
    /// decides which links are used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacp_system_priority: Option<u16>,
    /// With fewer usable members the team is down; 1 to the number of members, without
    /// the standby.
    #[serde(default = "default_min_links")]
    pub min_links: u16,
    /// switch-independent: the member that is used only while another cannot be; none if
    /// absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standby: Option<Name>,
    /// switch-independent: the member that receives, if it can be used; the team chooses
    /// one if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub primary: Option<Name>,
    /// Which processors work off its queues.
    #[serde(default, skip_serializing_if = "VmqConfig::is_default")]
    pub vmq: VmqConfig,
}

/// The `lacp_…` keys of a team in LACP mode, with what is not written filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LacpSettings {
    /// How often the other side is to send.
    pub timer: LacpTimer,
    /// Whether we send to a side that does not.
    pub active: bool,
    /// Our priority; the lower number decides.
    pub system_priority: u16,
}

impl LacpSettings {
    /// The middle of the range, so that either end can be put before the other.
    pub const SYSTEM_PRIORITY_DEFAULT: u16 = 0x8000;
}

impl TeamConfig {
    /// How the team speaks LACP; `None` in other modes, which do not.
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
