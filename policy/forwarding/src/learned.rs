//! What is told of learned addresses, by identifiers that outlive tables.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_frame::{MacAddr, VlanId};
use suimon_quantity::{PortId, SwitchId, Time};

/// An address was seen: news from one processor's replica for the others'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learned {
    /// The switch.
    pub switch: SwitchId,
    /// The VLAN; `None` is the untagged VLAN.
    pub vlan: Option<VlanId>,
    /// The address.
    pub mac: MacAddr,
    /// The port it was seen on.
    pub port: PortId,
    /// When.
    pub seen: Time,
    /// Port of the previous sighting if the address has moved, as known to the replica that reports
    /// this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<PortId>,
    /// True if that replica had not learned the address on any port.
    #[serde(default)]
    pub is_first: bool,
}

/// A learned address, for people to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// The switch.
    pub switch: SwitchId,
    /// The VLAN; `None` is the untagged VLAN.
    pub vlan: Option<VlanId>,
    /// The address.
    pub mac: MacAddr,
    /// The port it was learned on.
    pub port: PortId,
    /// How long ago it was noted. Frames do not renew the note until it is a
    /// quarter of the switch's ageing old.
    pub age: Duration,
}
