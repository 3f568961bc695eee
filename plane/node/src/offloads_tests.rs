use suimon_contract::{NicConfig, OffloadConfig};
use suimon_ports::DeviceErrorKind;

use super::*;
use crate::testing::{Harness, host};

fn uplink(offload: &str) -> UplinkConfig {
    let text =
        format!("[[uplink]]\nname = \"wan\"\ndevice = \"eth0\"\n[uplink.offload]\n{offload}");
    let mut config = suimon_contract::parse_toml(&text, None).unwrap();
    config.uplinks.remove(0)
}

fn nic(backend: &str, offload: OffloadConfig) -> NicConfig {
    let nic = serde_json::json!({ "name": "web", "switch": "lan", "backend": backend });
    NicConfig { offload, ..serde_json::from_value(nic).unwrap() }
}

fn open() -> DeviceStatus {
    let (ingress, egress) = (Offloads::TCP, Offloads::TCP);
    DeviceStatus {
        link_up: true,
        ingress_offloads: ingress,
        egress_offloads: egress,
        ..DeviceStatus::default()
    }
}

fn features(active: &[DeviceFeature]) -> DeviceFeatures {
    let mut features = DeviceFeatures::default();
    for feature in DeviceFeature::ALL {
        let (is_requested, is_active) = (active.contains(&feature), active.contains(&feature));
        *features.state_mut(feature) =
            FeatureState { can_change: true, is_wanted: is_requested, is_active, is_fixed: false };
    }
    features
}

/// Returns one line per offload: name, supported, enabled, effective, performing component and
/// reason.
fn lines(offloads: &[OffloadStatus]) -> Vec<String> {
    let mark = |yes: bool| if yes { '+' } else { '-' };
    let line = |offload: &OffloadStatus| {
        let supported = offload.supported.map_or('?', mark);
        let (enabled, effective) = (mark(offload.enabled), mark(offload.effective));
        let OffloadStatus { name, performer, reason, .. } = offload;
        format!("{name} {supported}{enabled}{effective} {performer}: {reason}")
    };
    offloads.iter().map(line).collect()
}

#[test]
fn offloads_of_an_uplink_are_performed_by_device_kernel_or_software() {
    let active =
        [DeviceFeature::TxTcp4Segmentation, DeviceFeature::TxChecksum, DeviceFeature::RxGro];
    let result = Ok(Some(features(&active)));
    let uplink = uplink("receive_coalescing = false");
    assert_eq!(
        lines(&uplink_offloads(Some(&open()), &uplink, &result)),
        [
            "tx_checksum +++ nic: tx-checksum-ip-generic of eth0 is on",
            "tx_ip_checksum -+- guest: virtio-net headers have no field for it: the checksum is \
             always complete",
            "tx_tcp4_segmentation +++ nic: tx-tcp-segmentation of eth0 is on",
            "tx_tcp6_segmentation +++ kernel: tx-tcp6-segmentation of eth0 is off",
            "tx_tcp_ecn_segmentation +++ kernel: tx-tcp-ecn-segmentation of eth0 is off",
            "tx_udp_segmentation ++- software: this kernel does not support it on a packet socket",
            "rx_checksum +++ guest: rx-checksum of eth0 is off",
            "rx_ip_checksum -+- guest: virtio-net headers have no field for it: the checksum is \
             always complete",
            "rx_tcp4_segmentation +++ kernel: rx-gro of eth0 is on",
            "rx_tcp6_segmentation +++ kernel: rx-gro of eth0 is on",
            "rx_tcp_ecn_segmentation +++ kernel: rx-gro of eth0 is on",
            "rx_udp_segmentation ++- software: this kernel does not support it on a packet socket",
            "receive_coalescing +-- nobody: switched off by receive_coalescing",
        ]
    );
}

/// With AF_XDP, the uplink carries no large frames; received segments are coalesced nevertheless.
#[test]
fn segments_are_coalesced_whether_or_not_the_uplink_carries_large_frames() {
    let result = Ok(Some(features(&[])));
    let small = DeviceStatus {
        ingress_offloads: Offloads::NONE,
        egress_offloads: Offloads::NONE,
        ..open()
    };
    let coalescing = |device: &DeviceStatus, offload: &str| {
        let lines = lines(&uplink_offloads(Some(device), &uplink(offload), &result));
        lines.last().unwrap().clone()
    };
    for device in [small, open()] {
        assert_eq!(coalescing(&device, ""), "receive_coalescing +++ software: on");
        let line = coalescing(&device, "receive_coalescing = false");
        assert!(line.starts_with("receive_coalescing +-- nobody: switched off by"), "{line}");
        let needs = coalescing(&device, "segmentation = false");
        assert!(needs.starts_with("receive_coalescing ++- nobody: needs TCP/IPv4"), "{needs}");
    }
}

#[test]
fn disabled_offloads_of_an_uplink_are_performed_by_software() {
    let result = Ok(Some(features(&DeviceFeature::ALL)));
    let offloads = uplink_offloads(Some(&open()), &uplink("tx_checksum = false"), &result);
    let offloads = lines(&offloads);
    assert_eq!(offloads[0], "tx_checksum +-- software: switched off by tx_checksum");
    assert_eq!(
        offloads[2],
        "tx_tcp4_segmentation ++- software: needs checksum, which is not in use"
    );
    assert_eq!(offloads[6], "rx_checksum +++ nic: rx-checksum of eth0 is on");
    let offloads = lines(&uplink_offloads(Some(&open()), &uplink("segmentation = false"), &result));
    assert_eq!(offloads[2], "tx_tcp4_segmentation +-- software: switched off by segmentation");
    assert_eq!(offloads[8], "rx_tcp4_segmentation +-- software: switched off by segmentation");
}

#[test]
fn offloads_of_a_device_that_cannot_be_queried_are_unknown() {
    let detail = "this kernel cannot be asked".to_owned();
    let error = DeviceError { kind: DeviceErrorKind::Unsupported, field: "device", detail };
    let result = Err(error);
    let offloads = lines(&uplink_offloads(Some(&open()), &uplink(""), &result));
    let unknown = "the offload features of eth0 cannot be read: this kernel cannot be asked";
    assert_eq!(offloads[2], format!("tx_tcp4_segmentation ?++ kernel: {unknown}"));
    assert_eq!(offloads[12], "receive_coalescing +++ software: on");
    let status = device_features(&result);
    assert_eq!(status.unknown_reason.as_deref(), Some("this kernel cannot be asked"));
    assert!(status.features.is_empty());
}

#[test]
fn offloads_of_a_tap_uplink_are_performed_by_the_kernel_and_of_a_closed_one_by_none() {
    let offloads =
        lines(&uplink_offloads(Some(&open()), &uplink("rx_checksum = false"), &Ok(None)));
    assert_eq!(offloads[0], "tx_checksum +++ kernel: on");
    assert_eq!(offloads[6], "rx_checksum +-- kernel: switched off by rx_checksum");
    assert_eq!(device_features(&Ok(None)), DeviceFeaturesStatus::default());
    let result = Ok(Some(features(&[DeviceFeature::TxTcp4Segmentation])));
    for offload in uplink_offloads(None, &uplink(""), &result) {
        assert!(!offload.effective && offload.enabled, "{offload:?}");
        let performer_and_reason = (offload.performer, offload.reason.as_str());
        assert_eq!(performer_and_reason, (OffloadPerformer::None, "the uplink is not open"));
    }
}

#[test]
fn features_that_were_not_offered_are_not_reported_as_unsupported() {
    let offload = OffloadConfig { tx_checksum: false, ..OffloadConfig::default() };
    let egress = Offloads { udp_segmentation: false, ..Offloads::TCP };
    let features = Some(1);
    let vm = DeviceStatus {
        link_up: true,
        egress_offloads: egress,
        virtio_features: features,
        ..DeviceStatus::default()
    };
    let offloads = lines(&nic_offloads(&vm, &nic("vhost-user", offload)));
    assert_eq!(offloads[0], "tx_checksum ?-- guest: switched off by tx_checksum");
    assert_eq!(offloads[2], "tx_tcp4_segmentation ?+- guest: needs checksum, which is not in use");
    assert_eq!(offloads[6], "rx_checksum +++ guest: on");
    assert_eq!(offloads[11], "rx_udp_segmentation -+- software: not negotiated by the guest");
    assert_eq!(offloads[12], "receive_coalescing +++ software: on");

    let negotiated = DeviceStatus { ingress_offloads: Offloads::TCP, ..vm };
    let offloads = lines(&nic_offloads(&negotiated, &nic("vhost-user", offload)));
    let lingers = "in use until the guest's driver is reset";
    assert_eq!(
        offloads[0],
        format!("tx_checksum +-+ egress: switched off by tx_checksum, but {lingers}")
    );

    let offloads = lines(&nic_offloads(&open(), &nic("tap", offload)));
    assert_eq!(offloads[0], "tx_checksum +-- guest: switched off by tx_checksum");
    let offloads = lines(&nic_offloads(&DeviceStatus::default(), &nic("vhost-user", offload)));
    assert_eq!(offloads[0], "tx_checksum ?-- guest: switched off by tx_checksum");
    assert_eq!(offloads[6], "rx_checksum ?+- nobody: no VM is connected");
}

const HOST: &str = r#"
[[uplink]]
name = "wan"
device = "eth0"
[[uplink]]
name = "spare"
device = "eth1"
[[switch]]
name = "lan"
kind = "external"
uplink = "wan"
"#;

#[test]
fn the_status_contains_the_features_reported_by_the_kernel() {
    let harness = Harness::new();
    harness.apply_ok(&host(HOST));
    let performers = |uplink: &str| {
        let status = harness.node.uplink(uplink).unwrap();
        (status.offloads[2].performer, status.device_features.features.len())
    };
    let feature_count = DeviceFeature::ALL.len();
    harness.devices.set_features(Ok(features(&[DeviceFeature::TxTcp4Segmentation])));
    assert_eq!(
        (performers("wan"), performers("spare")),
        ((OffloadPerformer::Nic, feature_count), (OffloadPerformer::None, feature_count))
    );
    harness.devices.set_features(Ok(features(&[])));
    assert_eq!(performers("wan"), (OffloadPerformer::Kernel, feature_count));
    let detail = "no".to_owned();
    let error = DeviceError { kind: DeviceErrorKind::Unsupported, field: "device", detail };
    harness.devices.set_features(Err(error));
    assert_eq!(performers("wan"), (OffloadPerformer::Kernel, 0));
}

const INTERNAL: &str = r#"
[[switch]]
name = "lab"
kind = "internal"
[[switch]]
name = "lan"
kind = "private"
"#;

#[test]
fn a_host_nic_is_shown_like_the_nic_of_a_namespace_guest() {
    let harness = Harness::new();
    harness.apply_ok(&host(INTERNAL));
    let defaults = OffloadConfig::default();
    let offloads = harness.node.switch("lab").unwrap().host_nic_offloads;
    assert_eq!(offloads, nic_offloads(&open(), &nic("tap", defaults)));
    let offload_lines = lines(&offloads);
    assert_eq!(offload_lines[0], "tx_checksum +++ egress: on");
    assert_eq!(offload_lines[6], "rx_checksum +++ guest: on");
    assert_eq!(offload_lines[11], "rx_udp_segmentation -+- software: not negotiated by the guest");
    assert_eq!(offload_lines[12], "receive_coalescing +++ software: on");
    assert!(harness.node.switch("lan").unwrap().host_nic_offloads.is_empty());

    let switches = "kind = \"internal\"\nhost_offload.segmentation = false";
    harness.apply_ok(&host(&INTERNAL.replace("kind = \"internal\"", switches)));
    let offload_lines = lines(&harness.node.switch("lab").unwrap().host_nic_offloads);
    assert_eq!(offload_lines[2], "tx_tcp4_segmentation +-- guest: switched off by segmentation");
    assert_eq!(offload_lines[8], "rx_tcp4_segmentation +-- software: switched off by segmentation");
}

#[test]
fn a_host_nic_that_could_not_be_opened_is_shown_too() {
    let harness = Harness::new();
    harness.apply_ok(&host(INTERNAL));
    let (store, devices) = harness.kill();
    devices.set_missing("lab", true);
    let harness = Harness::start(store, devices);
    let lab = harness.node.switch("lab").unwrap();
    assert_eq!(lab.condition.health, suimon_contract::Health::Failed);
    let offload_lines = lines(&lab.host_nic_offloads);
    assert_eq!(
        (offload_lines.len(), &*offload_lines[6]),
        (13, "rx_checksum ?+- nobody: no VM is connected")
    );
}

#[test]
fn the_switches_of_a_host_nic_change_live_in_the_device_and_the_tables() {
    let harness = Harness::new();
    harness.apply_ok(&host(INTERNAL));
    let before = harness.ports();
    let offload_state = || {
        let port = harness.plane.topology().ports.remove(0);
        let (_, spec) = harness.devices.open_devices().remove(0);
        let suimon_ports::PortDeviceSpec::Tap(spec) = spec else { panic!("{spec:?}") };
        (port.receive_coalescing, spec.offload)
    };
    let defaults = suimon_ports::OffloadToggles::default();
    assert_eq!(offload_state(), (true, defaults));
    for (key, coalesces, switches) in [
        ("tx_checksum", true, suimon_ports::OffloadToggles { tx_checksum: false, ..defaults }),
        (
            "receive_coalescing",
            false,
            suimon_ports::OffloadToggles { receive_coalescing: false, ..defaults },
        ),
    ] {
        let switches_off = format!("kind = \"internal\"\nhost_offload.{key} = false");
        harness.apply_ok(&host(&INTERNAL.replace("kind = \"internal\"", &switches_off)));
        assert_eq!(offload_state(), (coalesces, switches), "{key}");
        assert_eq!(harness.ports(), before);
        harness.assert_consistent(&[]);
    }
}

#[test]
fn the_switches_of_an_uplink_change_live_in_the_device_and_the_tables() {
    let harness = Harness::new();
    harness.apply_ok(&host(HOST));
    let before = harness.ports();
    let offload_state = || {
        let port = harness.plane.topology().ports.remove(0);
        let (_, spec) = harness.devices.open_devices().remove(0);
        let suimon_ports::PortDeviceSpec::Uplink(spec) = spec else { panic!("{spec:?}") };
        (port.receive_coalescing, spec.offload)
    };
    let defaults = suimon_ports::OffloadToggles::default();
    assert_eq!(offload_state(), (true, defaults));
    for (offload, coalesces, switches) in [
        (
            "receive_coalescing = false",
            false,
            suimon_ports::OffloadToggles { receive_coalescing: false, ..defaults },
        ),
        // Coalesced frames are large and have a partial checksum.
        (
            "rx_checksum = false",
            false,
            suimon_ports::OffloadToggles { rx_checksum: false, ..defaults },
        ),
        (
            "tx_checksum = false",
            true,
            suimon_ports::OffloadToggles { tx_checksum: false, ..defaults },
        ),
    ] {
        let text = HOST.replacen("eth0\"", &format!("eth0\"\noffload.{offload}"), 1);
        harness.apply_ok(&host(&text));
        assert_eq!(offload_state(), (coalesces, switches), "{offload}");
        assert_eq!(harness.ports(), before);
        harness.assert_consistent(&[]);
    }
}
