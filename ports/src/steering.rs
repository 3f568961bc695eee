//! Steering of a NIC's frames to a receive queue of an uplink's device.

use suimon_frame::{MacAddr, VlanId};
use suimon_quantity::PortId;

/// Rule that steers frames of a NIC to a receive queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SteeringRule {
    /// Port of the destination NIC.
    pub port: PortId,
    /// Destination MAC address of the frames.
    pub mac: MacAddr,
    /// VLAN tag of the frames; `None` matches any tag and untagged frames.
    pub vlan: Option<VlanId>,
    /// Receive queue, counted from 0.
    pub queue: u16,
}

/// Result of applying steering rules to a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SteeringState {
    /// Rules in effect. Rules of devices that cannot match VLANs have no VLAN.
    pub rules: Vec<SteeringRule>,
    /// True if all other frames are kept off the queues used by rules.
    pub is_exclusive: bool,
    /// First reason why a rule is not in effect; `None` if all are.
    pub refusal: Option<String>,
}
