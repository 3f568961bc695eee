//! Identity of a port in the configuration.

use core::fmt;

use suimon_contract::{Name, ResourceKind};

/// Port as the configuration names it. `Display` writes the subject of events and errors:
/// `nic/web`, `uplink/wan`, `team/both`, `switch/lab` for the host NIC of a switch.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PortKey {
    /// NIC, by name.
    Nic(Name),
    /// Uplink that a switch uses, directly or in a team.
    Uplink(Name),
    /// Host NIC of an internal switch, by the switch's name.
    HostNic(Name),
    /// Team that a switch uses. A team has no device of its own; its members have.
    Team(Name),
}

impl PortKey {
    /// Returns the name of the NIC, uplink, team or switch.
    pub fn name(&self) -> &Name {
        match self {
            Self::Nic(name) | Self::Uplink(name) | Self::HostNic(name) | Self::Team(name) => name,
        }
    }

    /// Returns the kind of resource: `nic`, `uplink`, `team` or `switch`.
    pub fn kind(&self) -> &'static str {
        self.resource_kind().noun()
    }

    pub(crate) const fn resource_kind(&self) -> ResourceKind {
        match self {
            Self::Nic(_) => ResourceKind::Nic,
            Self::Uplink(_) => ResourceKind::Uplink,
            Self::HostNic(_) => ResourceKind::Switch,
            Self::Team(_) => ResourceKind::Team,
        }
    }

    /// Returns the configuration key for a device error about `field`. The device of a host NIC is
    /// configured by `host_device` of its switch.
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
