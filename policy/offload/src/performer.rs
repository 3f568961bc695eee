//! Component that performs the work of an offload capability.

use crate::DeviceFeature as Feature;
use crate::{CapabilityStatus, DeviceFeatures, FrameDirection, OffloadCapability, PortKind};

/// Component that does the work of an offload (checksums, segmentation, coalescing) when a frame
/// requires it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Performer {
    /// Guest, or the remote end of the connection.
    Guest,
    /// Network device of the uplink.
    Nic,
    /// Kernel of the host, on the path between daemon and device.
    Kernel,
    /// Software of the data plane.
    Software,
    /// Determined at the port by which the frame leaves: see the performer there.
    DeterminedAtEgress,
    /// No component: the work is not done.
    NotDone,
}

/// Component that does the work of an offload at an uplink's device, and the device feature that
/// decides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PerformerChoice {
    /// Component that performs the work.
    pub performer: Performer,
    /// Device feature that decides; `None` if the device has no influence.
    pub deciding_feature: Option<Feature>,
}

/// Returns the component that does the work at a port without device features: a guest's NIC, or an
/// uplink that is a TAP device connected to this host's kernel.
pub fn performer(kind: PortKind, side: FrameDirection, finding: &CapabilityStatus) -> Performer {
    let other_side = match kind {
        PortKind::Nic => Performer::Guest,
        PortKind::Uplink => Performer::Kernel,
    };
    match (finding.capability, side, finding.is_on()) {
        (OffloadCapability::IpChecksum, ..) => Performer::Guest,
        (OffloadCapability::ReceiveCoalescing, _, true) => Performer::Software,
        (OffloadCapability::ReceiveCoalescing, _, false) => Performer::NotDone,
        (_, FrameDirection::Ingress, true) => Performer::DeterminedAtEgress,
        (_, FrameDirection::Ingress, false) | (_, FrameDirection::Egress, true) => other_side,
        (_, FrameDirection::Egress, false) => Performer::Software,
    }
}

/// Returns the component that does the work at an uplink whose frames pass the kernel to and from
/// `device`. The kernel accepts every frame form and does the work that `device` does not support.
pub fn performer_at_device(
    side: FrameDirection,
    finding: &CapabilityStatus,
    device: &DeviceFeatures,
) -> PerformerChoice {
    let without_feature = |performer| PerformerChoice { performer, deciding_feature: None };
    match (finding.capability, side, finding.is_on()) {
        (OffloadCapability::IpChecksum | OffloadCapability::ReceiveCoalescing, ..)
        | (_, FrameDirection::Egress, false) => {
            without_feature(performer(PortKind::Uplink, side, finding))
        }
        (_, FrameDirection::Egress, true) => transmit_performer(finding.capability, device),
        // The data plane ignores the device's checksum verification: the receiver verifies.
        (OffloadCapability::Checksum, FrameDirection::Ingress, false) => {
            without_feature(Performer::Guest)
        }
        (OffloadCapability::Checksum, FrameDirection::Ingress, true) => PerformerChoice {
            performer: if is_active(device, Feature::RxChecksum) {
                Performer::Nic
            } else {
                Performer::Guest
            },
            deciding_feature: Some(Feature::RxChecksum),
        },
        (_, FrameDirection::Ingress, false) => without_feature(Performer::Software),
        (capability, FrameDirection::Ingress, true) => coalescing_performer(capability, device),
    }
}

/// Returns true if `device` supports the work of `capability` in this direction, whether it is
/// switched on or off.
pub fn is_supported(
    side: FrameDirection,
    capability: OffloadCapability,
    device: &DeviceFeatures,
) -> bool {
    let any_supported =
        |features: &[Feature]| features.iter().any(|f| device.state(*f).is_supported());
    match (capability, side) {
        (OffloadCapability::IpChecksum, _) => false,
        // Receive coalescing is performed by the data plane.
        (OffloadCapability::ReceiveCoalescing, _) => true,
        (OffloadCapability::Checksum, FrameDirection::Egress) => {
            any_supported(&[Feature::TxChecksum])
                || (any_supported(&[Feature::TxChecksumIpv4])
                    && any_supported(&[Feature::TxChecksumIpv6]))
        }
        (OffloadCapability::Checksum, FrameDirection::Ingress) => {
            any_supported(&[Feature::RxChecksum])
        }
        (_, FrameDirection::Ingress) => any_supported(coalescing_features(capability)),
        (_, FrameDirection::Egress) => {
            segmentation_feature(capability).is_some_and(|feature| any_supported(&[feature]))
        }
    }
}

fn is_active(device: &DeviceFeatures, feature: Feature) -> bool {
    device.state(feature).is_active
}

fn transmit_performer(capability: OffloadCapability, device: &DeviceFeatures) -> PerformerChoice {
    let by = match capability {
        OffloadCapability::Checksum => checksum_feature(device),
        other => segmentation_feature(other),
    };
    let is_nic = by.is_some_and(|feature| is_active(device, feature));
    PerformerChoice {
        performer: if is_nic { Performer::Nic } else { Performer::Kernel },
        deciding_feature: by,
    }
}

/// Returns the device feature that decides whether the device completes checksums of both IP
/// versions: the one for all protocols or, of the two for one IP version each, the one that is not
/// active. Always `Some`, so that [`transmit_performer`] needs no conversion.
fn checksum_feature(device: &DeviceFeatures) -> Option<Feature> {
    let per_version = [Feature::TxChecksumIpv4, Feature::TxChecksumIpv6];
    let has_generic = device.state(Feature::TxChecksum).is_supported();
    if has_generic || !per_version.iter().any(|f| device.state(*f).is_supported()) {
        return Some(Feature::TxChecksum);
    }
    let lacking = per_version.into_iter().find(|feature| !is_active(device, *feature));
    Some(lacking.unwrap_or(Feature::TxChecksumIpv4))
}

const fn segmentation_feature(capability: OffloadCapability) -> Option<Feature> {
    match capability {
        OffloadCapability::Tcp4Segmentation => Some(Feature::TxTcp4Segmentation),
        OffloadCapability::Tcp6Segmentation => Some(Feature::TxTcp6Segmentation),
        OffloadCapability::TcpEcnSegmentation => Some(Feature::TxTcpEcnSegmentation),
        OffloadCapability::UdpSegmentation => Some(Feature::TxUdpSegmentation),
        OffloadCapability::Checksum
        | OffloadCapability::IpChecksum
        | OffloadCapability::ReceiveCoalescing => None,
    }
}

/// Returns the features that can cause large received frames of this capability: first those of the
/// device, then those of the kernel.
const fn coalescing_features(capability: OffloadCapability) -> &'static [Feature] {
    match capability {
        OffloadCapability::UdpSegmentation => &[Feature::RxUdpGro],
        _ => &[Feature::RxGroHw, Feature::RxLro, Feature::RxGro],
    }
}

fn coalescing_performer(capability: OffloadCapability, device: &DeviceFeatures) -> PerformerChoice {
    let joiners = coalescing_features(capability);
    let by = joiners.iter().copied().find(|feature| is_active(device, *feature));
    let performer = match by {
        None => Performer::NotDone,
        Some(Feature::RxGroHw | Feature::RxLro) => Performer::Nic,
        Some(_) => Performer::Kernel,
    };
    PerformerChoice { performer, deciding_feature: by.or(joiners.last().copied()) }
}

#[cfg(test)]
mod tests;
