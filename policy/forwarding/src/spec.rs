//! What the tables are built from.

use core::time::Duration;

use suimon_frame::{MacAddr, VlanId};
use suimon_quantity::{PortId, SwitchId};

use crate::VlanSet;

/// Ageing of learned addresses unless configured (IEEE 802.1Q-2022, table 8-6).
pub const AGEING_DEFAULT: Duration = Duration::from_secs(300);
/// The shortest ageing a switch takes.
pub const AGEING_MIN: Duration = Duration::from_secs(1);
/// The longest ageing a switch takes (IEEE 802.1Q-2022, table 8-6).
pub const AGEING_MAX: Duration = Duration::from_secs(1_000_000);
/// Addresses one port may have learned unless configured.
pub const LEARNED_MAX_DEFAULT: u32 = 1024;
/// The smallest MTU of a port: what IPv4 demands (RFC 791).
pub const MTU_MIN: u16 = 68;
/// The largest MTU of a port.
pub const MTU_MAX: u16 = 9216;

/// A switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchSpec {
    /// Which switch.
    pub id: SwitchId,
    /// A learned address is forgotten between 1 and 1.25 times this long after
    /// its last frame. From [`AGEING_MIN`] to [`AGEING_MAX`].
    pub ageing: Duration,
}

impl SwitchSpec {
    /// A switch with the default ageing.
    pub const fn new(id: SwitchId) -> Self {
        Self { id, ageing: AGEING_DEFAULT }
    }
}

/// What a port is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRole {
    /// A guest's NIC.
    Nic,
    /// The host's own NIC on an internal or external switch.
    HostNic,
    /// The way out of an external switch.
    Uplink,
}

/// Which VLANs a port carries, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VlanMode {
    /// One VLAN, without tags on the wire. `None` is the switch's untagged VLAN.
    /// A frame that arrives with a VLAN's tag is dropped, even with its own.
    Access(Option<VlanId>),
    /// Several VLANs, told apart by tags.
    Trunk {
        /// The VLANs it carries. The untagged VLAN, if the set holds it, travels
        /// without a tag; it is left out if there is a `native` VLAN, because
        /// an untagged frame has only one meaning.
        allowed: VlanSet,
        /// The numbered VLAN that travels without a tag, if any; always carried.
        /// It is also accepted with its tag.
        native: Option<VlanId>,
    },
}

/// A port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortSpec {
    /// Which port.
    pub id: PortId,
    /// The switch it is on.
    pub switch: SwitchId,
    /// What it is for.
    pub role: PortRole,
    /// The VLANs it carries.
    pub vlan: VlanMode,
    /// The address it has on all its VLANs. It is known without being learned,
    /// and nobody else can take it. Uplinks have none.
    pub mac: Option<MacAddr>,
    /// The port of the same switch by which `mac` is reached in place of this one: an uplink
    /// whose adapter has given the guest a virtual function. Frames from `mac` are taken from
    /// both, those to it leave by that one. Means nothing without `mac`.
    pub reached_by: Option<PortId>,
    /// Whether it may send from addresses other than `mac`. Means nothing
    /// without `mac`: then every address is allowed and learned.
    pub spoofing_allowed: bool,
    /// Address that no other NIC may send from on the VLANs of this port. NICs only. Unlike `mac` it
    /// is not fixed to the port but learned, also on an uplink after the guest has moved to another
    /// host.
    pub bound: Option<MacAddr>,
    /// True if the first source address of the port is to be bound to it. The switching plane reports
    /// first sightings on the port; the control plane publishes tables with `bound`.
    pub binds_source: bool,
    /// Isolated ports reach only ports that are not isolated.
    pub isolated: bool,
    /// The largest IP packet it is given, in bytes, [`MTU_MIN`] to [`MTU_MAX`].
    pub mtu: u16,
    /// Addresses that may be learned on it at a time; 0 learns none.
    pub learned_max: u32,
}

impl PortSpec {
    /// A port on the untagged VLAN (an uplink: on every VLAN), with MTU 1500,
    /// without a configured address, and not isolated.
    pub fn new(id: PortId, switch: SwitchId, role: PortRole) -> Self {
        Self {
            id,
            switch,
            role,
            vlan: match role {
                PortRole::Uplink => VlanMode::Trunk { allowed: VlanSet::all(), native: None },
                PortRole::Nic | PortRole::HostNic => VlanMode::Access(None),
            },
            mac: None,
            reached_by: None,
            spoofing_allowed: false,
            bound: None,
            binds_source: false,
            isolated: false,
            mtu: 1500,
            learned_max: LEARNED_MAX_DEFAULT,
        }
    }
}
