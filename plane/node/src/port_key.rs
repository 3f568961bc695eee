//! What a port belongs to, by its name in the configuration.

use core::fmt;

use suimon_contract::{Kind, Name};

/// A port as the user knows it. Its `Display` is the subject of events and
/// errors: `nic/web`, `uplink/wan`, `team/both`, `switch/lab` for the host NIC of a
/// switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortKey {
    /// A NIC.
    Nic(Name),
    /// An uplink that a switch uses, itself or in a team.
    Uplink(Name),
    /// The host NIC of an internal switch, by the switch's name.
    HostNic(Name),
    /// A team that a switch uses. It has no device of its own, but those of its members.
    Team(Name),
}

impl PortKey {
    /// The name of the NIC, uplink, team or switch.
    pub fn name(&self) -> &Name {
        match self {
            Self::Nic(name) | Self::Uplink(name) | Self::HostNic(name) | Self::Team(name) => name,
        }
    }

    /// The kind of resource it belongs to: `nic`, `uplink`, `team` or `switch`.
    pub fn kind(&self) -> &'static str {
        self.resource_kind().word()
    }

    pub(crate) const fn resource_kind(&self) -> Kind {
        match self {
            Self::Nic(_) => Kind::Nic,
            Self::Uplink(_) => Kind::Uplink,
            Self::HostNic(_) => Kind::Switch,
            Self::Team(_) => Kind::Team,
        }
    }

    /// The key at fault when a device complains about `field`: a host NIC's
    /// device is named by its switch's `host_device`.
    pub(crate) fn config_field(&self, field: &'static str) -> &'static str {
        match (self, field) {
            (Self::HostNic(_), "device") => "host_device",
            _ => field,
        }
    }
}

impl fmt::Display for PortKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind(), self.name())
    }
}
