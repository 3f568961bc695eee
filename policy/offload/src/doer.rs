//! Who does the work that a capability is about, and why it is them.

use crate::DeviceFeature as Feature;
use crate::{Capability, DeviceFeatures, Finding, PortKind, Side};

/// Who does it, whenever a frame asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doer {
    /// The guest, or whoever else sends or receives at the ends.
    Guest,
    /// The uplink's device.
    Nic,
    /// The host's kernel.
    Kernel,
    /// We.
    Software,
    /// Whoever does it for the port that the frame leaves by.
    Egress,
    /// It is not done.
    Nobody,
}

/// Who does it at an uplink's device, and the feature that decides so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Who.
    pub doer: Doer,
    /// What the decision hangs on; `None` if not on the device.
    pub by: Option<Feature>,
}

/// Who does it for a port whose other side is no network device with features of
/// its own: a guest's NIC, or an uplink that is a TAP, behind which is this host's
/// kernel.
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

/// Who does it for an uplink whose frames pass the kernel to and from `device`. The
/// kernel takes every form of frame and does what the device leaves to it; `device`
/// says what that is.
pub fn assign(side: Side, finding: &Finding, device: &DeviceFeatures) -> Assignment {
    let nobody_asked = |doer| Assignment { doer, by: None };
    match (finding.capability, side, finding.is_on()) {
        (Capability::IpChecksum | Capability::ReceiveCoalescing, ..) | (_, Side::Egress, false) => {
            nobody_asked(doer(PortKind::Uplink, side, finding))
        }
        (_, Side::Egress, true) => sending(finding.capability, device),
        // What the device says of a checksum is not passed on: the receiver looks.
        (Capability::Checksum, Side::Ingress, false) => nobody_asked(Doer::Guest),
        (Capability::Checksum, Side::Ingress, true) => Assignment {
            doer: if is_active(device, Feature::RxChecksum) { Doer::Nic } else { Doer::Guest },
            by: Some(Feature::RxChecksum),
        },
        (_, Side::Ingress, false) => nobody_asked(Doer::Software),
        (capability, Side::Ingress, true) => joining(capability, device),
    }
}

/// Whether `device` could do it, on or off.
pub fn is_supported(side: Side, capability: Capability, device: &DeviceFeatures) -> bool {
    let any = |features: &[Feature]| features.iter().any(|f| device.state(*f).is_supported());
    match (capability, side) {
        (Capability::IpChecksum, _) => false,
        // It is ours.
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

/// The feature that says whether the device completes the checksums of both IP
/// versions: one for all protocols, or one for each version. Of two, the one that is
/// not active.
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

/// Who may have joined what comes in large, the device's own first.
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
