//! Which receive queue of an uplink's device the frames of a NIC arrive on.

use suimon_frame::{MacAddr, VlanId};
use suimon_quantity::PortId;

/// Frames of a NIC that have a receive queue of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeringRule {
    /// The NIC's port.
    pub port: PortId,
    /// Their destination.
    pub mac: MacAddr,
    /// The VLAN whose tag they carry; whatever tag they carry, or none, if `None`.
    pub vlan: Option<VlanId>,
    /// The receive queue, counted from 0.
    pub queue: u16,
}

/// What a device makes of rules.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SteeringState {
    /// Those in effect, as they are: without a VLAN where the device does not look at it.
    pub rules: Vec<SteeringRule>,
    /// Whether all other frames stay off the queues of rules.
    pub is_exclusive: bool,
    /// Why one is not in effect, if one is not: the first reason that was met.
    pub refusal: Option<String>,
}
