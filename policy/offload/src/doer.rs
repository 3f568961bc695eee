//! Component that performs the work of an offload capability.

use crate::DeviceFeature as Feature;
use crate::{Capability, DeviceFeatures, Finding, PortKind, Side};

/// Component that performs the work when a frame requires it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doer {
    /// Guest, or the remote end of the connection.
    Guest,
    /// Network device of the uplink.
    Nic,
    /// Kernel of the host.
    Kernel,
    /// Software of the data plane.
    Software,
    /// Component responsible at the port by which the frame leaves.
    Egress,
    /// No component: the work is not done.
    Nobody,
}

/// Component that performs the work at an uplink's device, and the deciding feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Component that performs the work.
    pub doer: Doer,
    /// Feature that decides; `None` if the device does not matter.
    pub by: Option<Feature>,
}

/// Returns the component for a port without a network device with features of its own: a guest's
/// NIC, or an uplink that is a TAP device, connected to this host's kernel.
pub fn doer(kind: PortKind, side: Side, finding: &Finding) -> Doer {
    let other_side = match kind {
        PortKind::Nic => Doer::Guest,
        PortKind::Uplink => Doer::Kernel,
    };
    match (finding.capability, side, finding.is_on()) {
        (Capability::IpChecksum, ..) => Doer::Guest,
        (Capability::ReceiveCoalescing, _, true) => Doer::Software,
        (Capability::ReceiveCoalescing, _, false) => Doer::Nobody,
        (_, Side::Ingress, true) => Doer::Egress,
        (_, Side::Ingress, false) | (_, Side::Egress, true) => other_side,
        (_, Side::Egress, false) => Doer::Software,
    }
}

/// Returns the component for an uplink whose frames pass the kernel to and from `device`. The
/// kernel accepts every form of frame and performs the work that `device` does not support.
pub fn assign(side: Side, finding: &Finding, device: &DeviceFeatures) -> Assignment {
    let nobody_asked = |doer| Assignment { doer, by: None };
    match (finding.capability, side, finding.is_on()) {
        (Capability::IpChecksum | Capability::ReceiveCoalescing, ..) | (_, Side::Egress, false) => {
            nobody_asked(doer(PortKind::Uplink, side, finding))
        }
        (_, Side::Egress, true) => sending(finding.capability, device),
        // The device's checksum verification is not passed on: the receiver verifies.
        (Capability::Checksum, Side::Ingress, false) => nobody_asked(Doer::Guest),
        (Capability::Checksum, Side::Ingress, true) => Assignment {
            doer: if is_active(device, Feature::RxChecksum) { Doer::Nic } else { Doer::Guest },
            by: Some(Feature::RxChecksum),
        },
        (_, Side::Ingress, false) => nobody_asked(Doer::Software),
        (capability, Side::Ingress, true) => joining(capability, device),
    }
}

/// Returns true if `device` supports the work, switched on or off.
pub fn is_supported(side: Side, capability: Capability, device: &DeviceFeatures) -> bool {
    let any = |features: &[Feature]| features.iter().any(|f| device.state(*f).is_supported());
    match (capability, side) {
        (Capability::IpChecksum, _) => false,
        // Receive coalescing is performed by the data plane.
        (Capability::ReceiveCoalescing, _) => true,
        (Capability::Checksum, Side::Egress) => {
            any(&[Feature::TxChecksum])
                || (any(&[Feature::TxChecksumIpv4]) && any(&[Feature::TxChecksumIpv6]))
        }
        (Capability::Checksum, Side::Ingress) => any(&[Feature::RxChecksum]),
        (_, Side::Ingress) => any(joiners(capability)),
        (_, Side::Egress) => segmenter(capability).is_some_and(|feature| any(&[feature])),
    }
}

fn is_active(device: &DeviceFeatures, feature: Feature) -> bool {
    device.state(feature).is_active
}

fn sending(capability: Capability, device: &DeviceFeatures) -> Assignment {
    let by = match capability {
        Capability::Checksum => checksummer(device),
        other => segmenter(other),
    };
    let is_nic = by.is_some_and(|feature| is_active(device, feature));
    Assignment { doer: if is_nic { Doer::Nic } else { Doer::Kernel }, by }
}

/// Returns the feature that decides whether the device completes checksums of both IP versions: one
/// for all protocols, or one per version. Of two, the inactive one.
fn checksummer(device: &DeviceFeatures) -> Option<Feature> {
    let per_version = [Feature::TxChecksumIpv4, Feature::TxChecksumIpv6];
    let has_generic = device.state(Feature::TxChecksum).is_supported();
    if has_generic || !per_version.iter().any(|f| device.state(*f).is_supported()) {
        return Some(Feature::TxChecksum);
    }
    let lacking = per_version.into_iter().find(|feature| !is_active(device, *feature));
    Some(lacking.unwrap_or(Feature::TxChecksumIpv4))
}

const fn segmenter(capability: Capability) -> Option<Feature> {
    match capability {
        Capability::Tcp4Segmentation => Some(Feature::TxTcp4),
        Capability::Tcp6Segmentation => Some(Feature::TxTcp6),
        Capability::TcpEcnSegmentation => Some(Feature::TxTcpEcn),
        Capability::UdpSegmentation => Some(Feature::TxUdp),
        Capability::Checksum | Capability::IpChecksum | Capability::ReceiveCoalescing => None,
    }
}

/// Returns the features that can have coalesced a large received frame, those of the device first.
const fn joiners(capability: Capability) -> &'static [Feature] {
    match capability {
        Capability::UdpSegmentation => &[Feature::RxUdpGro],
        _ => &[Feature::RxGroHw, Feature::RxLro, Feature::RxGro],
    }
}

fn joining(capability: Capability, device: &DeviceFeatures) -> Assignment {
    let joiners = joiners(capability);
    let by = joiners.iter().copied().find(|feature| is_active(device, *feature));
    let doer = match by {
        None => Doer::Nobody,
        Some(Feature::RxGroHw | Feature::RxLro) => Doer::Nic,
        Some(_) => Doer::Kernel,
    };
    Assignment { doer, by: by.or(joiners.last().copied()) }
}

#[cfg(test)]
mod tests;
