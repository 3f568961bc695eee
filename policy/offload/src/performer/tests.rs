use proptest::prelude::*;

use super::*;
use crate::{FeatureState, OffloadReason, OffloadToggle, OffloadToggles, effective_offloads};
use suimon_frame::Offloads;

const ALL: Offloads = Offloads { udp_segmentation: true, ..Offloads::TCP };

/// Returns a device that supports all features, of which those in `active` are active.
fn device(active: &[Feature]) -> DeviceFeatures {
    let mut device = DeviceFeatures::default();
    for feature in Feature::ALL {
        let is_active = active.contains(&feature);
        *device.state_mut(feature) =
            FeatureState { can_change: true, is_wanted: is_active, is_active, is_fixed: false };
    }
    device
}

fn enabled(capability: OffloadCapability) -> CapabilityStatus {
    CapabilityStatus { capability, reason: OffloadReason::On }
}

fn disabled(capability: OffloadCapability) -> CapabilityStatus {
    CapabilityStatus {
        capability,
        reason: OffloadReason::SwitchedOff { toggle: OffloadToggle::Segmentation },
    }
}

#[test]
fn sent_frames_are_processed_by_the_device_if_active_else_by_the_kernel() {
    for (capability, feature) in [
        (OffloadCapability::Checksum, Feature::TxChecksum),
        (OffloadCapability::Tcp4Segmentation, Feature::TxTcp4Segmentation),
        (OffloadCapability::Tcp6Segmentation, Feature::TxTcp6Segmentation),
        (OffloadCapability::TcpEcnSegmentation, Feature::TxTcpEcnSegmentation),
        (OffloadCapability::UdpSegmentation, Feature::TxUdpSegmentation),
    ] {
        let other_features: Vec<_> = Feature::ALL.into_iter().filter(|f| *f != feature).collect();
        for (active, performer) in
            [(&[feature][..], Performer::Nic), (&other_features[..], Performer::Kernel)]
        {
            let actual =
                performer_at_device(FrameDirection::Egress, &enabled(capability), &device(active));
            assert_eq!(actual, PerformerChoice { performer, deciding_feature: Some(feature) });
        }
        let actual = performer_at_device(
            FrameDirection::Egress,
            &disabled(capability),
            &device(&Feature::ALL),
        );
        assert_eq!(
            actual,
            PerformerChoice { performer: Performer::Software, deciding_feature: None }
        );
    }
}

#[test]
fn checksums_are_the_devices_only_for_both_ip_versions() {
    let without_generic = |active: &[Feature]| {
        let mut device = device(active);
        *device.state_mut(Feature::TxChecksum) = FeatureState::default();
        device
    };
    let both = [Feature::TxChecksumIpv4, Feature::TxChecksumIpv6];
    for (active, performer, feature) in [
        (&both[..], Performer::Nic, Feature::TxChecksumIpv4),
        (&both[..1], Performer::Kernel, Feature::TxChecksumIpv6),
        (&both[1..], Performer::Kernel, Feature::TxChecksumIpv4),
    ] {
        let device = without_generic(active);
        let actual = performer_at_device(
            FrameDirection::Egress,
            &enabled(OffloadCapability::Checksum),
            &device,
        );
        assert_eq!(actual, PerformerChoice { performer, deciding_feature: Some(feature) });
        assert!(is_supported(FrameDirection::Egress, OffloadCapability::Checksum, &device));
    }
    let none = DeviceFeatures::default();
    assert!(!is_supported(FrameDirection::Egress, OffloadCapability::Checksum, &none));
    let actual =
        performer_at_device(FrameDirection::Egress, &enabled(OffloadCapability::Checksum), &none);
    assert_eq!(
        actual,
        PerformerChoice {
            performer: Performer::Kernel,
            deciding_feature: Some(Feature::TxChecksum)
        }
    );
}

#[test]
fn received_frames_are_verified_and_coalesced_by_the_active_performer() {
    let received = |capability, active: &[Feature]| {
        let actual =
            performer_at_device(FrameDirection::Ingress, &enabled(capability), &device(active));
        (actual.performer, actual.deciding_feature.map(Feature::name))
    };
    let tcp = OffloadCapability::Tcp4Segmentation;
    assert_eq!(received(OffloadCapability::Checksum, &[]), (Performer::Guest, Some("rx-checksum")));
    let checking = received(OffloadCapability::Checksum, &[Feature::RxChecksum]);
    assert_eq!(checking, (Performer::Nic, Some("rx-checksum")));
    assert_eq!(received(tcp, &[Feature::RxGro]), (Performer::Kernel, Some("rx-gro")));
    let both = received(tcp, &[Feature::RxGro, Feature::RxLro]);
    assert_eq!(both, (Performer::Nic, Some("rx-lro")));
    assert_eq!(received(tcp, &[]), (Performer::NotDone, Some("rx-gro")));
    let udp = received(OffloadCapability::UdpSegmentation, &[Feature::RxGro]);
    assert_eq!(udp, (Performer::NotDone, Some("rx-udp-gro-forwarding")));
    let cut = performer_at_device(FrameDirection::Ingress, &disabled(tcp), &device(&Feature::ALL));
    assert_eq!(cut.performer, Performer::Software);
}

proptest! {
    /// If an offload is disabled at a port, its work is done before the frame enters the switch or
    /// by software, never left to that port.
    #[test]
    fn disabled_offloads_have_no_later_performer(
        bits in any::<[bool; 6]>(),
        is_nic in any::<bool>(),
        active in prop::collection::vec(0..Feature::ALL.len(), 0..12),
    ) {
        let [tx, rx, tx_ip, rx_ip, segmentation, receive_coalescing] = bits;
        let switches = OffloadToggles {
            tx_checksum: tx,
            rx_checksum: rx,
            tx_ip_checksum: tx_ip,
            rx_ip_checksum: rx_ip,
            segmentation,
            receive_coalescing,
        };
        let kind = if is_nic { PortKind::Nic } else { PortKind::Uplink };
        let active: Vec<_> = active.into_iter().map(|index| Feature::ALL[index]).collect();
        for finding in effective_offloads(ALL, &switches, kind, FrameDirection::Egress).capability_statuses {
            let doers = [
                performer(kind, FrameDirection::Egress, &finding),
                performer_at_device(FrameDirection::Egress, &finding, &device(&active)).performer,
            ];
            let is_work = !matches!(
                finding.capability,
                OffloadCapability::IpChecksum | OffloadCapability::ReceiveCoalescing
            );
            for performer in doers {
                prop_assert_eq!(is_work && !finding.is_on(), performer == Performer::Software
                    && finding.capability != OffloadCapability::ReceiveCoalescing);
            }
        }
    }
}
