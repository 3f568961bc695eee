//! Configuration of switches and ports from which [`Tables`](crate::Tables) are built.

use core::time::Duration;

use suimon_frame::{MacAddr, VlanId};
use suimon_quantity::{PortId, SwitchId};

use crate::VlanSet;

/// Default ageing of learned addresses (IEEE 802.1Q-2022, table 8-6).
pub const AGEING_DEFAULT: Duration = Duration::from_secs(300);
/// Shortest permitted ageing of a switch.
pub const AGEING_MIN: Duration = Duration::from_secs(1);
/// Longest permitted ageing of a switch (IEEE 802.1Q-2022, table 8-6).
pub const AGEING_MAX: Duration = Duration::from_secs(1_000_000);
/// Default maximum of addresses learned on a port.
pub const LEARNED_ADDRESSES_MAX_DEFAULT: u32 = 1024;
/// Smallest MTU of a port in bytes, as IPv4 requires (RFC 791).
pub const MTU_MIN: u16 = 68;
/// Largest MTU of a port in bytes.
pub const MTU_MAX: u16 = 9216;

/// Configuration of one switch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SwitchSpec {
    /// Identifier of the switch.
    pub id: SwitchId,
    /// Ageing, from [`AGEING_MIN`] to [`AGEING_MAX`]. A learned address expires between 1 and 1.25
    /// times this duration after its last frame.
    pub ageing: Duration,
}

impl SwitchSpec {
    /// Creates the configuration of a switch with the default ageing.
    pub const fn new(id: SwitchId) -> Self {
        Self { id, ageing: AGEING_DEFAULT }
    }
}

/// Role of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortRole {
    /// NIC of a guest, a VM or a network namespace.
    Nic,
    /// NIC of the host on an internal or external switch.
    HostNic,
    /// Uplink of an external switch.
    Uplink,
}

/// VLANs of a port, and their tagging.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VlanMode {
    /// One VLAN, untagged on the link. `None` is the switch's untagged VLAN. A frame received with
    /// a VLAN tag is dropped, even with the tag of this VLAN.
    Access(Option<VlanId>),
    /// Several VLANs, distinguished by tags.
    Trunk {
        /// VLANs that the port carries. The untagged VLAN is sent without a tag. It is excluded if
        /// `native` is set, because an untagged frame can belong to one VLAN only.
        allowed: VlanSet,
        /// Numbered VLAN that is sent without a tag, if any; always carried. Also accepted with its
        /// tag.
        native: Option<VlanId>,
    },
}

/// Configuration of one port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardingPortSpec {
    /// Identifier of the port.
    pub id: PortId,
    /// Switch that the port belongs to.
    pub switch: SwitchId,
    /// Role of the port.
    pub role: PortRole,
    /// VLANs that the port carries.
    pub vlan: VlanMode,
    /// Configured address of the port on all its VLANs. Known without learning, and no other port
    /// can take it over. Uplinks have none.
    pub mac: Option<MacAddr>,
    /// Uplink of the same switch by which `mac` is reached instead of this port, because a virtual
    /// function of its adapter is assigned to the guest. Frames from `mac` are accepted on both
    /// ports; frames to it leave by the uplink. Ignored without `mac`.
    pub reached_by_uplink: Option<PortId>,
    /// True if source addresses other than `mac` are permitted. Ignored without `mac`: then every
    /// address is permitted and learned.
    pub spoofing_allowed: bool,
    /// Address that no other NIC may send from on the VLANs of this port. NICs only. Unlike `mac`,
    /// it is not fixed to the port but learned, also on an uplink after the guest has moved to
    /// another host.
    pub bound_address: Option<MacAddr>,
    /// True if the first source address of the port is to be bound to it. The switching plane
    /// reports first sightings on the port; the control plane publishes tables with
    /// `bound_address`.
    pub binds_source: bool,
    /// True for isolated ports, which reach only ports that are not isolated.
    pub isolated: bool,
    /// MTU: largest IP packet sent to the port, in bytes, [`MTU_MIN`] to [`MTU_MAX`].
    pub mtu: u16,
    /// Maximum number of addresses learned on the port; 0 disables learning.
    pub learned_addresses_max: u32,
}

impl ForwardingPortSpec {
    /// Creates a port on the untagged VLAN (an uplink: on every VLAN), with MTU 1500, without a
    /// configured address, and not isolated.
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
            reached_by_uplink: None,
            spoofing_allowed: false,
            bound_address: None,
            binds_source: false,
            isolated: false,
            mtu: 1500,
            learned_addresses_max: LEARNED_ADDRESSES_MAX_DEFAULT,
        }
    }
}
