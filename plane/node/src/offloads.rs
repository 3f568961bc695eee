//! Offload status of NICs, host NICs and uplinks: supported, enabled and effective state of each
//! offload, the component that performs it, and the reason.

use suimon_contract::{
    DeviceFeatureStatus, DeviceFeaturesStatus, NicBackend, NicConfig, OffloadConfig,
    OffloadPerformer, OffloadStatus, SwitchConfig, UplinkConfig,
};
use suimon_frame::Offloads;
use suimon_offload::{
    CapabilityStatus, FrameDirection, OffloadCapability, OffloadReason, Performer, PerformerChoice,
    PortKind, effective_offloads, is_supported, performer, performer_at_device,
};
use suimon_ports::{
    DeviceError, DeviceFeature, DeviceFeatures, DeviceStatus, FeatureState, OffloadToggles,
};

/// Features of an uplink's device as reported by the kernel; `Ok(None)` for a TAP, which has no
/// physical device.
pub(crate) type DeviceFeatureResult = Result<Option<DeviceFeatures>, DeviceError>;

/// Returns the offloads of a NIC: first those of frames that the guest sends, then those of frames
/// to the guest.
pub(crate) fn nic_offloads(device: &DeviceStatus, nic: &NicConfig) -> Vec<OffloadStatus> {
    guest_offloads(device, nic.backend, &nic.offload)
}

/// Returns the offloads of the host NIC of an internal switch. This NIC is a TAP of the host, with
/// the same properties as the TAP of a namespace guest.
pub(crate) fn host_nic_offloads(
    device: &DeviceStatus,
    switch: &SwitchConfig,
) -> Vec<OffloadStatus> {
    guest_offloads(device, NicBackend::Tap, &switch.host_offload)
}

/// Returns the offloads of a port with a guest or the host at its other end.
fn guest_offloads(
    device: &DeviceStatus,
    backend: NicBackend,
    offload: &OffloadConfig,
) -> Vec<OffloadStatus> {
    let switches = offload_toggles(offload);
    let mut statuses = Vec::new();
    for (side, supported) in [
        (FrameDirection::Ingress, device.ingress_offloads),
        (FrameDirection::Egress, device.egress_offloads),
    ] {
        for finding in
            effective_offloads(supported, &switches, PortKind::Nic, side).capability_statuses
        {
            let is_supported = other_side_can(finding.capability, supported);
            let (effective, performer, reason) =
                nic_finding(side, &finding, is_supported, device, backend);
            // Drivers are not offered disabled features, so their support is unknown.
            let is_unknown = finding.capability != OffloadCapability::IpChecksum
                && match finding.reason {
                    OffloadReason::SwitchedOff { .. } | OffloadReason::RequiresOther { .. } => {
                        backend == NicBackend::VhostUser
                    }
                    _ => !is_connected(device) && backend != NicBackend::Legacy,
                };
            statuses.push(OffloadStatus {
                name: name(PortKind::Nic, side, finding.capability),
                supported: (is_supported || !is_unknown).then_some(is_supported),
                enabled: switches.is_on(PortKind::Nic.toggle_for(side, finding.capability)),
                effective,
                performer,
                reason,
            });
        }
    }
    statuses
}

fn is_connected(device: &DeviceStatus) -> bool {
    device.link_up || device.virtio_features.is_some()
}

/// Returns whether a supported or unsupported offload is in effect, the component that performs it,
/// and the reason as text.
fn nic_finding(
    side: FrameDirection,
    finding: &CapabilityStatus,
    is_supported: bool,
    device: &DeviceStatus,
    backend: NicBackend,
) -> (bool, OffloadPerformer, String) {
    if finding.reason == OffloadReason::NotNegotiated && backend == NicBackend::Legacy {
        let performer = offload_performer(performer(PortKind::Nic, side, finding));
        return (
            false,
            performer,
            "the stream of a legacy NIC carries no offload metadata".to_owned(),
        );
    }
    if finding.reason == OffloadReason::NotNegotiated && !is_connected(device) {
        return (false, OffloadPerformer::None, "no VM is connected".to_owned());
    }
    // Offloads of frames to the guest change at once. A driver may use a negotiated offload of
    // frames from the guest until its next negotiation.
    let lingers = side == FrameDirection::Ingress
        && backend == NicBackend::VhostUser
        && is_supported
        && !finding.is_on();
    if lingers {
        let reason = format!("{}, but in use until the guest's driver is reset", finding.reason);
        return (true, OffloadPerformer::Egress, reason);
    }
    let performer = offload_performer(performer(PortKind::Nic, side, finding));
    (finding.is_on(), performer, finding.reason.to_string())
}

/// Returns the offloads of an uplink: first those of sent frames, then those of received ones.
/// `device` is `None` while the device is not open.
pub(crate) fn uplink_offloads(
    device: Option<&DeviceStatus>,
    uplink: &UplinkConfig,
    feature_result: &DeviceFeatureResult,
) -> Vec<OffloadStatus> {
    let switches = offload_toggles(&uplink.offload);
    let (ingress, egress) = device.map_or((Offloads::NONE, Offloads::NONE), |device| {
        (device.ingress_offloads, device.egress_offloads)
    });
    let mut statuses = Vec::new();
    for (side, supported) in [(FrameDirection::Egress, egress), (FrameDirection::Ingress, ingress)]
    {
        for mut finding in
            effective_offloads(supported, &switches, PortKind::Uplink, side).capability_statuses
        {
            let capability = finding.capability;
            if capability == OffloadCapability::ReceiveCoalescing {
                finding.reason = uplink_coalescing(&switches);
            }
            let (performer, reason) = match device {
                None => (OffloadPerformer::None, "the uplink is not open".to_owned()),
                Some(_) => performer_and_reason(side, &finding, uplink, feature_result),
            };
            statuses.push(OffloadStatus {
                name: name(PortKind::Uplink, side, capability),
                supported: match feature_result {
                    Ok(Some(features)) => Some(is_supported(side, capability, features)),
                    Ok(None) => device.map(|_| other_side_can(capability, supported)),
                    // IP checksums and coalescing are independent of the device.
                    Err(_) if capability == OffloadCapability::IpChecksum => Some(false),
                    Err(_) if capability == OffloadCapability::ReceiveCoalescing => Some(true),
                    Err(_) => None,
                },
                enabled: switches.is_on(PortKind::Uplink.toggle_for(side, capability)),
                effective: device.is_some() && finding.is_on(),
                performer,
                reason,
            });
        }
    }
    statuses
}

/// Returns the state of receive coalescing at an uplink. The switch coalesces segments in software,
/// so only the uplink's settings matter, not the frames that the device can carry.
pub(crate) fn uplink_coalescing(switches: &OffloadToggles) -> OffloadReason {
    let received =
        effective_offloads(Offloads::TCP, switches, PortKind::Uplink, FrameDirection::Ingress);
    received.reason(OffloadCapability::ReceiveCoalescing).unwrap_or(OffloadReason::NotNegotiated)
}

/// Converts the features of an uplink's device to the API's types.
pub(crate) fn device_features(feature_result: &DeviceFeatureResult) -> DeviceFeaturesStatus {
    let in_words = |(feature, state): (DeviceFeature, FeatureState)| DeviceFeatureStatus {
        name: feature.name().to_owned(),
        state: state.ethtool_state().to_owned(),
    };
    match feature_result {
        Ok(features) => DeviceFeaturesStatus {
            unknown_reason: None,
            features: features.iter().flat_map(DeviceFeatures::iter).map(in_words).collect(),
        },
        Err(error) => {
            DeviceFeaturesStatus { unknown_reason: Some(error.to_string()), features: Vec::new() }
        }
    }
}

/// Returns the component that performs an offload at an open uplink, and the reason as text.
fn performer_and_reason(
    side: FrameDirection,
    finding: &CapabilityStatus,
    uplink: &UplinkConfig,
    feature_result: &DeviceFeatureResult,
) -> (OffloadPerformer, String) {
    let unknown = DeviceFeatures::default();
    let effective = match feature_result {
        Ok(None) => PerformerChoice {
            performer: performer(PortKind::Uplink, side, finding),
            deciding_feature: None,
        },
        Ok(Some(features)) => performer_at_device(side, finding, features),
        Err(_) => performer_at_device(side, finding, &unknown),
    };
    let reason = match (finding.reason, effective.deciding_feature, feature_result) {
        (OffloadReason::NotNegotiated, ..) => {
            "this kernel does not support it on a packet socket".to_owned()
        }
        (OffloadReason::NotInVirtio, ..) => {
            "virtio-net headers have no field for it: the checksum is always complete".to_owned()
        }
        (_, Some(feature), Ok(Some(features))) => {
            format!(
                "{} of {} is {}",
                feature.name(),
                uplink.device,
                features.state(feature).ethtool_state()
            )
        }
        (_, Some(_), Err(error)) => {
            format!("the offload features of {} cannot be read: {error}", uplink.device)
        }
        (reason, ..) => reason.to_string(),
    };
    (offload_performer(effective.performer), reason)
}

const fn offload_performer(doer: Performer) -> OffloadPerformer {
    match doer {
        Performer::Guest => OffloadPerformer::Guest,
        Performer::Nic => OffloadPerformer::Nic,
        Performer::Kernel => OffloadPerformer::Kernel,
        Performer::Software => OffloadPerformer::Software,
        Performer::DeterminedAtEgress => OffloadPerformer::Egress,
        Performer::NotDone => OffloadPerformer::None,
    }
}

/// Returns the API name of an offload: `tx_checksum`, `rx_tcp4_segmentation`, …, with the direction
/// as seen by the guest or host at the port.
fn name(kind: PortKind, side: FrameDirection, capability: OffloadCapability) -> String {
    let name = match capability {
        OffloadCapability::Checksum => "checksum",
        OffloadCapability::IpChecksum => "ip_checksum",
        OffloadCapability::Tcp4Segmentation => "tcp4_segmentation",
        OffloadCapability::Tcp6Segmentation => "tcp6_segmentation",
        OffloadCapability::TcpEcnSegmentation => "tcp_ecn_segmentation",
        OffloadCapability::UdpSegmentation => "udp_segmentation",
        OffloadCapability::ReceiveCoalescing => return "receive_coalescing".to_owned(),
    };
    format!("{}_{name}", if kind.is_receive_direction(side) { "rx" } else { "tx" })
}

fn other_side_can(capacity: OffloadCapability, supported: Offloads) -> bool {
    match capacity {
        OffloadCapability::Checksum => supported.checksum,
        OffloadCapability::IpChecksum => false,
        OffloadCapability::Tcp4Segmentation => supported.tcp4_segmentation,
        OffloadCapability::Tcp6Segmentation => supported.tcp6_segmentation,
        OffloadCapability::TcpEcnSegmentation => supported.tcp_ecn_segmentation,
        OffloadCapability::UdpSegmentation => supported.udp_segmentation,
        OffloadCapability::ReceiveCoalescing => {
            supported.tcp4_segmentation || supported.tcp6_segmentation
        }
    }
}

/// Converts the configured offloads of a port to the switches of its device.
pub(crate) fn offload_toggles(offload: &OffloadConfig) -> OffloadToggles {
    OffloadToggles {
        tx_checksum: offload.tx_checksum,
        rx_checksum: offload.rx_checksum,
        tx_ip_checksum: offload.tx_ip_checksum,
        rx_ip_checksum: offload.rx_ip_checksum,
        segmentation: offload.segmentation,
        receive_coalescing: offload.receive_coalescing,
    }
}

#[cfg(test)]
#[path = "offloads_tests.rs"]
mod tests;
