use suimon_contract::HostConfig;
use suimon_frame::{MacAddr, VlanId};
use suimon_ports::{KernelPathCounters, KernelPathTable};
use suimon_quantity::PortId;
use suimon_switch::{AddressView, CaptureBufferLimits};

use crate::PortKey;
use crate::testing::{Harness, host, name, wait_until};

const LAN: &str = "[[switch]]\nname = \"lan\"\nkind = \"private\"\n";

/// Returns the configuration of a NIC with `kernel_path` and further keys.
fn nic(name: &str, extra: &str) -> String {
    format!(
        "[[nic]]\nname = \"{name}\"\nswitch = \"lan\"\nbackend = \"tap\"\nnetns = \"{name}\"\n\
         kernel_path = true\n{extra}\n"
    )
}

fn lan(nics: &[(&str, &str)]) -> HostConfig {
    let nics: Vec<String> = nics.iter().map(|(name, extra)| nic(name, extra)).collect();
    host(&format!("{LAN}{}", nics.concat()))
}

fn port(harness: &Harness, nic: &str) -> PortId {
    let devices = harness.devices.open_devices();
    let of_nic =
        |spec: &suimon_ports::PortDeviceSpec| format!("{spec:?}").contains(&format!("\"{nic}\""));
    devices.iter().find(|(_, spec)| of_nic(spec)).unwrap().0
}

fn mac(last: u8) -> MacAddr {
    MacAddr::new([2, 0, 0, 0, 0, last])
}

fn address_view(last: u8, vlan: Option<u16>, port: PortId, fixed: bool) -> AddressView {
    let vlan = vlan.and_then(VlanId::new);
    AddressView { mac: mac(last), vlan, port, is_static: fixed, age: None }
}

/// Returns the group of each NIC in the kernel's table; `None` if the table does not contain the
/// NIC.
fn groups(harness: &Harness, nics: &[&str]) -> Vec<Option<u32>> {
    let table = harness.devices.kernel_paths();
    nics.iter().map(|nic| table.ports.get(&port(harness, nic)).map(|port| port.group)).collect()
}

#[test]
fn nics_of_equal_switch_vlan_and_mtu_reach_each_other() {
    let harness = Harness::new();
    let excluded = nic("alone", "").replace("kernel_path = true", "");
    let mut config = lan(&[
        ("a", "mac_spoofing = true"),
        ("b", "mac = \"02:00:00:00:00:0b\""),
        ("c", "mtu = 9000"),
        ("d", "mtu = 9000\nmac = \"02:00:00:00:00:0d\"\nmac_spoofing = true"),
        ("e", "vlan = 5"),
        ("f", "trunk = [5]"),
    ]);
    config.nics.extend(host(&format!("{LAN}{excluded}")).nics);
    harness.apply_ok(&config);
    let ports = ["a", "b", "c", "e", "alone"].map(|nic| port(&harness, nic));
    harness.plane.set_addresses(vec![
        address_view(0x0b, None, ports[1], true),
        address_view(1, None, ports[0], false),
        address_view(2, None, ports[2], false),
        address_view(1, Some(5), ports[0], false),
        address_view(3, Some(5), ports[3], false),
        address_view(4, None, ports[4], false),
    ]);
    wait_until("the kernel path contains three addresses", || {
        harness.devices.kernel_paths().addresses.len() == 3
    });
    let group_numbers = groups(&harness, &["a", "b", "c", "d", "e", "f", "alone"]);
    assert_eq!(group_numbers, [Some(1), Some(1), Some(2), Some(2), None, None, None]);
    let table = harness.devices.kernel_paths();
    let addresses: Vec<_> =
        table.addresses.iter().map(|(key, entry)| (*key, entry.port, entry.is_static)).collect();
    let [a, b, c, ..] = ports;
    let expected = [((1, mac(1)), a, false), ((1, mac(0x0b)), b, true), ((2, mac(2)), c, false)];
    assert_eq!(addresses, expected);
    // The switch refreshes addresses that the kernel path has seen.
    let learned = [(1, mac(1)), (1, mac(0x0b)), (2, mac(2)), (3, mac(1)), (0, mac(1))];
    learned.into_iter().for_each(|(group, mac)| harness.devices.learn(group, mac));
    wait_until("the switch refreshes the addresses", || !harness.plane.refreshed().is_empty());
    let learned =
        harness.plane.refreshed().into_iter().map(|entry| (entry.mac, entry.vlan, entry.port));
    assert_eq!(learned.collect::<Vec<_>>(), [(mac(1), None, a), (mac(2), None, c)]);
    let learns = |nic| table.ports[&port(&harness, nic)].is_learning;
    assert_eq!(["a", "b", "d"].map(learns), [true, false, true]);
}

#[test]
fn keys_that_need_the_switch_end_the_kernel_path_before_the_change() {
    let harness = Harness::new();
    let open = [("a", ""), ("b", ""), ("c", "")];
    for (key, reason) in [
        ("bandwidth_max_bps = 8000", "bandwidth_max_bps"),
        ("isolated = true", "isolated"),
        ("trunk = [7]", "trunk"),
        ("[nic.offload]\nsegmentation = false", "offload"),
        ("[nic.offload]\nrx_checksum = false", "offload"),
    ] {
        harness.apply_ok(&lan(&open));
        wait_until("all NICs are in one group of the kernel path", || {
            groups(&harness, &["a", "b", "c"]) == [Some(1); 3]
        });
        let status = harness.node.nic("a").unwrap().kernel_path.unwrap();
        assert!(status.open && status.reason.is_none());
        harness.apply_ok(&lan(&[("a", key), ("b", ""), ("c", "")]));
        assert_eq!(groups(&harness, &["a", "b", "c"]), [None, Some(1), Some(1)], "{key}");
        let status = harness.node.nic("a").unwrap().kernel_path.unwrap();
        assert!(!status.open && status.reason.unwrap().contains(reason), "{key}");
    }
    harness.apply_ok(&lan(&[("a", ""), ("b", "mtu = 1400")]));
    assert_eq!(harness.devices.kernel_paths(), KernelPathTable::default());
    harness.assert_consistent(&[]);
}

#[test]
fn a_capture_sees_everything() {
    let harness = Harness::new();
    harness.apply_ok(&lan(&[("a", ""), ("b", ""), ("c", "")]));
    wait_until("all NICs are in one group of the kernel path", || {
        groups(&harness, &["a", "b", "c"]) == [Some(1); 3]
    });
    let options = CaptureBufferLimits::default();
    let capture = harness.node.capture(&PortKey::Nic(name("a")), options).unwrap();
    assert_eq!(groups(&harness, &["a", "b", "c"]), [None, Some(1), Some(1)]);
    let reason = harness.node.nic("a").unwrap().kernel_path.unwrap().reason.unwrap();
    assert!(reason.contains("captured"), "{reason}");
    drop(capture);
    wait_until("all NICs are in one group of the kernel path", || {
        groups(&harness, &["a", "b", "c"]) == [Some(1); 3]
    });
}

#[test]
fn frames_on_the_kernel_path_are_counted_in_total_and_separately() {
    let harness = Harness::new();
    harness.apply_ok(&lan(&[("a", "")]));
    let (sent_frames, sent_bytes) = (5, 500);
    let (received_frames, received_bytes) = (7, 700);
    let counters = KernelPathCounters { sent_frames, sent_bytes, received_frames, received_bytes };
    harness.devices.set_kernel_path_counters(counters);
    let status = harness.node.nic("a").unwrap();
    let (counters, path) = (&status.counters, status.kernel_path.unwrap());
    let expected = (sent_frames, sent_bytes, received_frames, received_bytes);
    assert_eq!(
        (counters.rx_frames, counters.rx_bytes, counters.tx_frames, counters.tx_bytes),
        expected
    );
    assert_eq!((path.rx_frames, path.rx_bytes, path.tx_frames, path.tx_bytes), expected);
    assert_eq!(harness.node.top().nics[0].rx_bytes, sent_bytes);
}
