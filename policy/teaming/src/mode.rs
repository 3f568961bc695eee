//! Identifier, mode and load balancing algorithm of a team.

use core::fmt;

use serde::{Deserialize, Serialize};

/// Identifier of a team, stable for its lifetime on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TeamId(pub u32);

/// Teaming mode, which depends on the configuration of the upstream switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TeamMode {
    /// The upstream switch has the members' ports in one statically configured group.
    Static,
    /// The upstream switch forms the group by LACP (IEEE 802.1AX).
    Lacp,
    /// The upstream switches have no group configured; members may be on different switches.
    SwitchIndependent,
}

/// Load balancing algorithm: frame properties by which a member is selected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Algorithm {
    /// The switch port from which a frame comes: each port is assigned to one member.
    HyperVPort,
    /// IP addresses, protocol and transport ports.
    TransportPorts,
    /// Source and destination IP address.
    IpAddresses,
    /// Source and destination MAC address, and VLAN.
    MacAddresses,
    /// As `TransportPorts`, and flows are moved between members by load when they pause.
    Dynamic,
}

impl fmt::Display for TeamMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Static => "static",
            Self::Lacp => "lacp",
            Self::SwitchIndependent => "switch-independent",
        })
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::HyperVPort => "hyper-v-port",
            Self::TransportPorts => "transport-ports",
            Self::IpAddresses => "ip-addresses",
            Self::MacAddresses => "mac-addresses",
            Self::Dynamic => "dynamic",
        })
    }
}
