//! Determines the offloads in effect on a port.

use serde::{Deserialize, Serialize};
use suimon_frame::Offloads;

use crate::{CapabilityStatus, OffloadCapability, OffloadReason, OffloadToggle, OffloadToggles};

/// Direction of frames at a port, seen from the switch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FrameDirection {
    /// Frames that enter the switch: sent by the guest, or received by the uplink's device.
    Ingress,
    /// Frames that leave the switch: to the guest, or through the uplink's device.
    Egress,
}

/// Kind of a port, which determines the meaning of `tx` and `rx` in its offload switches. The
/// switches are named from the view of the port's user: the guest uses its NIC, the data plane uses
/// the uplink's device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortKind {
    /// NIC of a guest: its `tx` frames enter the switch.
    Nic,
    /// Uplink: its `tx` frames leave the switch.
    Uplink,
}

impl PortKind {
    /// Returns true if frames in this direction are received by the port's user: the guest at a
    /// NIC, the data plane at an uplink.
    pub const fn is_receive_direction(self, side: FrameDirection) -> bool {
        matches!(
            (self, side),
            (Self::Nic, FrameDirection::Egress) | (Self::Uplink, FrameDirection::Ingress)
        )
    }

    /// Returns the operator's switch that controls a capability in this direction.
    pub const fn toggle_for(
        self,
        side: FrameDirection,
        capability: OffloadCapability,
    ) -> OffloadToggle {
        match (capability, self.is_receive_direction(side)) {
            (OffloadCapability::Checksum, false) => OffloadToggle::TxChecksum,
            (OffloadCapability::Checksum, true) => OffloadToggle::RxChecksum,
            (OffloadCapability::IpChecksum, false) => OffloadToggle::TxIpChecksum,
            (OffloadCapability::IpChecksum, true) => OffloadToggle::RxIpChecksum,
            (OffloadCapability::ReceiveCoalescing, _) => OffloadToggle::ReceiveCoalescing,
            _ => OffloadToggle::Segmentation,
        }
    }
}

/// Offloads in effect for one direction of a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectiveOffloads {
    /// Frame forms (partial checksum, large frames) that may pass in this direction.
    pub offloads: Offloads,
    /// Frame forms that may pass in this direction if the frame came from an uplink. No link
    /// carries a large frame, so a large one from an uplink was coalesced on reception. Without
    /// receive coalescing at the uplink or the guest's NIC, the guest gets the segments.
    pub offloads_from_uplink: Offloads,
    /// Status of each capability that this direction has, in the order of [`OffloadCapability`].
    #[serde(rename = "findings")]
    pub capability_statuses: Vec<CapabilityStatus>,
}

impl EffectiveOffloads {
    /// Returns the reason for which `capability` is in use or not; `None` if this direction does
    /// not have the capability.
    pub fn reason(&self, capability: OffloadCapability) -> Option<OffloadReason> {
        self.capability_statuses
            .iter()
            .find(|finding| finding.capability == capability)
            .map(|finding| finding.reason)
    }
}

/// Returns the offloads in effect for one direction of a port: `supported` by the guest or device
/// at the port, switched on by the operator, and consistent with each other.
pub fn effective_offloads(
    supported: Offloads,
    switches: &OffloadToggles,
    kind: PortKind,
    side: FrameDirection,
) -> EffectiveOffloads {
    let verdict = |capability, is_supported| {
        evaluate(is_supported, switches, kind.toggle_for(side, capability))
    };
    let checksum = verdict(OffloadCapability::Checksum, supported.checksum);
    let segmentation = |capability, is_supported| {
        verdict(capability, is_supported).or_needs(checksum, OffloadCapability::Checksum)
    };
    let tcp4 = segmentation(OffloadCapability::Tcp4Segmentation, supported.tcp4_segmentation);
    let tcp6 = segmentation(OffloadCapability::Tcp6Segmentation, supported.tcp6_segmentation);
    // ECN is a variant of TCP/IPv4 and TCP/IPv6 segmentation, not a separate offload.
    let any_tcp = if tcp4 == OffloadReason::On { tcp4 } else { tcp6 };
    let ecn = segmentation(OffloadCapability::TcpEcnSegmentation, supported.tcp_ecn_segmentation)
        .or_needs(any_tcp, OffloadCapability::Tcp4Segmentation);
    let udp = segmentation(OffloadCapability::UdpSegmentation, supported.udp_segmentation);

    let offloads = Offloads {
        checksum: checksum == OffloadReason::On,
        tcp4_segmentation: tcp4 == OffloadReason::On,
        tcp6_segmentation: tcp6 == OffloadReason::On,
        tcp_ecn_segmentation: ecn == OffloadReason::On,
        udp_segmentation: udp == OffloadReason::On,
    };
    let ip_checksum = ip_checksum(switches, kind.toggle_for(side, OffloadCapability::IpChecksum));
    let mut findings = vec![
        CapabilityStatus { capability: OffloadCapability::Checksum, reason: checksum },
        CapabilityStatus { capability: OffloadCapability::IpChecksum, reason: ip_checksum },
        CapabilityStatus { capability: OffloadCapability::Tcp4Segmentation, reason: tcp4 },
        CapabilityStatus { capability: OffloadCapability::Tcp6Segmentation, reason: tcp6 },
        CapabilityStatus { capability: OffloadCapability::TcpEcnSegmentation, reason: ecn },
        CapabilityStatus { capability: OffloadCapability::UdpSegmentation, reason: udp },
    ];
    let mut offloads_from_uplink = offloads;
    if kind.is_receive_direction(side) {
        let coalescing = verdict(OffloadCapability::ReceiveCoalescing, true)
            .or_needs(any_tcp, OffloadCapability::Tcp4Segmentation);
        findings.push(CapabilityStatus {
            capability: OffloadCapability::ReceiveCoalescing,
            reason: coalescing,
        });
        if coalescing != OffloadReason::On {
            offloads_from_uplink = offloads.without_segmentation();
        }
    }
    EffectiveOffloads { offloads, offloads_from_uplink, capability_statuses: findings }
}

/// Determines whether one capability is in use, without its dependencies. The operator's setting
/// has precedence: a disabled capability is not reported as unsupported.
fn evaluate(is_supported: bool, switches: &OffloadToggles, switch: OffloadToggle) -> OffloadReason {
    match (switches.is_on(switch), is_supported) {
        (false, _) => OffloadReason::SwitchedOff { toggle: switch },
        (true, false) => OffloadReason::NotNegotiated,
        (true, true) => OffloadReason::On,
    }
}

fn ip_checksum(switches: &OffloadToggles, switch: OffloadToggle) -> OffloadReason {
    if switches.is_on(switch) {
        OffloadReason::NotInVirtio
    } else {
        OffloadReason::SwitchedOff { toggle: switch }
    }
}

impl OffloadReason {
    /// Returns this reason, or [`OffloadReason::RequiresOther`] if it is `On` and the required
    /// capability `other`, whose reason is `reason`, is not in use. If `other` is switched off,
    /// this capability was not offered to the guest and does not count as unsupported.
    fn or_needs(self, reason: Self, other: OffloadCapability) -> Self {
        match (self, reason) {
            (Self::On, Self::On) => self,
            (Self::On, _) | (Self::NotNegotiated, Self::SwitchedOff { .. }) => {
                Self::RequiresOther { required: other }
            }
            _ => self,
        }
    }
}

#[cfg(test)]
mod tests;
