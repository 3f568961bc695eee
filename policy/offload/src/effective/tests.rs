use proptest::prelude::*;

use super::*;

const ALL: Offloads = Offloads {
    checksum: true,
    tcp4_segmentation: true,
    tcp6_segmentation: true,
    tcp_ecn_segmentation: true,
    udp_segmentation: true,
};

fn offloads() -> impl Strategy<Value = Offloads> {
    any::<[bool; 5]>().prop_map(|[checksum, tcp4, tcp6, ecn, udp]| Offloads {
        checksum,
        tcp4_segmentation: tcp4,
        tcp6_segmentation: tcp6,
        tcp_ecn_segmentation: ecn,
        udp_segmentation: udp,
    })
}

fn switches() -> impl Strategy<Value = OffloadToggles> {
    any::<[bool; 6]>().prop_map(|[tx, rx, tx_ip, rx_ip, segmentation, coalescing]| OffloadToggles {
        tx_checksum: tx,
        rx_checksum: rx,
        tx_ip_checksum: tx_ip,
        rx_ip_checksum: rx_ip,
        segmentation,
        receive_coalescing: coalescing,
    })
}

fn side() -> impl Strategy<Value = FrameDirection> {
    prop_oneof![Just(FrameDirection::Ingress), Just(FrameDirection::Egress)]
}

fn kind() -> impl Strategy<Value = PortKind> {
    prop_oneof![Just(PortKind::Nic), Just(PortKind::Uplink)]
}

#[test]
fn each_side_is_governed_by_its_own_switch() {
    let switches = OffloadToggles { tx_checksum: false, ..OffloadToggles::default() };
    let ingress = effective_offloads(ALL, &switches, PortKind::Nic, FrameDirection::Ingress);
    assert_eq!(ingress.offloads, Offloads::NONE);
    assert_eq!(
        ingress.reason(OffloadCapability::Checksum),
        Some(OffloadReason::SwitchedOff { toggle: OffloadToggle::TxChecksum })
    );
    assert_eq!(
        ingress.reason(OffloadCapability::Tcp6Segmentation),
        Some(OffloadReason::RequiresOther { required: OffloadCapability::Checksum })
    );
    assert_eq!(
        effective_offloads(ALL, &switches, PortKind::Nic, FrameDirection::Egress).offloads,
        ALL
    );
}

/// A driver to which the checksum offload is not offered cannot negotiate segmentation.
#[test]
fn capabilities_that_were_not_offered_are_not_reported_as_lacking() {
    let switches = OffloadToggles { tx_checksum: false, ..OffloadToggles::default() };
    let actual =
        effective_offloads(Offloads::NONE, &switches, PortKind::Nic, FrameDirection::Ingress);
    let reason = OffloadReason::RequiresOther { required: OffloadCapability::Checksum };
    assert_eq!(actual.reason(OffloadCapability::Tcp4Segmentation), Some(reason));
    let actual =
        effective_offloads(Offloads::NONE, &switches, PortKind::Nic, FrameDirection::Egress);
    assert_eq!(
        actual.reason(OffloadCapability::Tcp4Segmentation),
        Some(OffloadReason::NotNegotiated)
    );
}

#[test]
fn without_receive_coalescing_only_frames_from_an_uplink_are_segmented() {
    let switches = OffloadToggles { receive_coalescing: false, ..OffloadToggles::default() };
    let egress = effective_offloads(ALL, &switches, PortKind::Nic, FrameDirection::Egress);
    assert_eq!(egress.offloads, ALL);
    assert_eq!(egress.offloads_from_uplink, Offloads { checksum: true, ..Offloads::NONE });
    let ingress = effective_offloads(ALL, &switches, PortKind::Nic, FrameDirection::Ingress);
    assert_eq!(ingress.offloads_from_uplink, ALL);
    assert_eq!(ingress.reason(OffloadCapability::ReceiveCoalescing), None);
}

#[test]
fn reasons_read_as_sentences_and_as_json() {
    let switches = OffloadToggles { rx_ip_checksum: false, ..OffloadToggles::default() };
    let egress =
        effective_offloads(Offloads::NONE, &switches, PortKind::Nic, FrameDirection::Egress);
    let lines: Vec<String> = egress.capability_statuses.iter().map(ToString::to_string).collect();
    assert_eq!(
        lines,
        [
            "checksum: not negotiated by the guest",
            "ip checksum: switched off by rx_ip_checksum",
            "TCP/IPv4 segmentation: not negotiated by the guest",
            "TCP/IPv6 segmentation: not negotiated by the guest",
            "TCP segmentation with ECN: not negotiated by the guest",
            "UDP segmentation: not negotiated by the guest",
            "receive coalescing: needs TCP/IPv4 segmentation, which is not in use",
        ]
    );
    let json = serde_json::to_string(&egress).unwrap();
    assert!(json.contains(r#""capability":"ip_checksum","reason":"switched_off""#), "{json}");
    assert_eq!(serde_json::from_str::<EffectiveOffloads>(&json).unwrap(), egress);
    let all_on =
        effective_offloads(ALL, &OffloadToggles::default(), PortKind::Nic, FrameDirection::Ingress);
    assert_eq!(
        all_on.reason(OffloadCapability::IpChecksum).map(|reason| reason.to_string()).as_deref(),
        Some("virtio-net has no offload of the IPv4 header checksum")
    );
}

proptest! {
    /// Frames that a guest sends and frames that an uplink receives both enter the switch: the same
    /// offload switches apply, with `tx` and `rx` exchanged.
    #[test]
    fn uplink_and_nic_exchange_directions(
        supported in offloads(),
        switches in switches(),
        side in side(),
    ) {
        let other = match side {
            FrameDirection::Ingress => FrameDirection::Egress,
            FrameDirection::Egress => FrameDirection::Ingress,
        };
        let uplink = effective_offloads(supported, &switches, PortKind::Uplink, side);
        prop_assert_eq!(&uplink, &effective_offloads(supported, &switches, PortKind::Nic, other));
        let mirrored = effective_offloads(supported, &switches.with_directions_swapped(), PortKind::Nic, side);
        prop_assert_eq!(uplink.offloads, mirrored.offloads);
    }

    #[test]
    fn nothing_is_effective_that_is_not_supported(
        supported in offloads(),
        switches in switches(),
        kind in kind(),
        side in side(),
    ) {
        let result = effective_offloads(supported, &switches, kind, side);
        prop_assert_eq!(result.offloads.intersection(supported), result.offloads);
        prop_assert_eq!(result.offloads.intersection(result.offloads_from_uplink), result.offloads_from_uplink);
    }

    #[test]
    fn segmentation_is_effective_only_with_the_checksum(
        supported in offloads(),
        switches in switches(),
        kind in kind(),
        side in side(),
    ) {
        let Offloads {
            checksum,
            tcp4_segmentation,
            tcp6_segmentation,
            tcp_ecn_segmentation,
            udp_segmentation,
        } = effective_offloads(supported, &switches, kind, side).offloads;
        let any_tcp = tcp4_segmentation || tcp6_segmentation;
        prop_assert!(checksum || !(any_tcp || udp_segmentation));
        prop_assert!(switches.segmentation || !(any_tcp || udp_segmentation));
        prop_assert!(any_tcp || !tcp_ecn_segmentation);
    }

    /// The statuses agree with the offloads and contain each capability once.
    #[test]
    fn findings_agree_with_the_offloads(
        supported in offloads(),
        switches in switches(),
        kind in kind(),
        side in side(),
    ) {
        let result = effective_offloads(supported, &switches, kind, side);
        let is_on = |capability| result.reason(capability) == Some(OffloadReason::On);
        prop_assert_eq!(result.offloads.checksum, is_on(OffloadCapability::Checksum));
        prop_assert_eq!(result.offloads.tcp4_segmentation, is_on(OffloadCapability::Tcp4Segmentation));
        prop_assert_eq!(result.offloads.tcp6_segmentation, is_on(OffloadCapability::Tcp6Segmentation));
        prop_assert_eq!(result.offloads.tcp_ecn_segmentation, is_on(OffloadCapability::TcpEcnSegmentation));
        prop_assert_eq!(result.offloads.udp_segmentation, is_on(OffloadCapability::UdpSegmentation));
        prop_assert!(!is_on(OffloadCapability::IpChecksum));
        prop_assert!(result.capability_statuses.is_sorted_by(|a, b| a.capability < b.capability));
    }
}
