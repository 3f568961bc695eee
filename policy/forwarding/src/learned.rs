//! Learned addresses, described by identifiers that stay valid when the tables change.

use core::time::Duration;

use serde::{Deserialize, Serialize};
use suimon_frame::{MacAddr, VlanId};
use suimon_quantity::{PortId, SwitchId, Time};

/// Sighting of an address, announced by one worker's replica to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AddressSighting {
    /// Switch that the port belongs to.
    pub switch: SwitchId,
    /// VLAN of the frame; `None` is the untagged VLAN.
    pub vlan: Option<VlanId>,
    /// MAC address that was seen.
    pub mac: MacAddr,
    /// Port on which the address was seen.
    pub port: PortId,
    /// Time at which the address was seen.
    #[serde(rename = "seen")]
    pub seen_at: Time,
    /// Port of the previous sighting if the address has moved, as known to the announcing replica;
    /// `None` if it has not moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub moved_from: Option<PortId>,
    /// True if the announcing replica had not learned the address on any port before.
    #[serde(default)]
    pub is_first: bool,
}

/// Learned address, for display.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct LearnedAddress {
    /// Switch that the port belongs to.
    pub switch: SwitchId,
    /// VLAN of the address; `None` is the untagged VLAN.
    pub vlan: Option<VlanId>,
    /// MAC address that was learned.
    pub mac: MacAddr,
    /// Port on which it was learned.
    pub port: PortId,
    /// Time since the last renewal of the entry. Frames renew an entry only when it is at least a
    /// quarter of the switch's ageing old.
    pub age: Duration,
}
