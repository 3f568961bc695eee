//! VLAN isolation: frames with stacks of VLAN tags (double tagging) through the switch, Open
//! vSwitch and the bridge of Linux, whose ports are configured alike.

mod model;
mod recorder;

use std::fmt::Write as _;
use std::time::Duration;

use model::{Destination, Observation, Port, Stack, Tag, all_stacks, documented, random_stacks};
use recorder::{Marker, Probe, Recorder, mac};
use suimon_rig::ovs::{self, OvsWoken};
use suimon_rig::{Daemon, Namespace, NamespaceGuest, Rig, Veth};

use crate::kernel_path::wait_kernel_path_used;

// Indices of the ports in `ports`. The uplink is the last.
const A: usize = 0;
const N: usize = 1;
const D: usize = 2;
const V: usize = 3;
const UPLINK: usize = 4;

/// Deadline of a command. The machine may be loaded.
const LIMIT: Duration = Duration::from_secs(60);
/// Page with the table of differences between the switches, which the test compares.
const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explanation/switching.md");

fn ports() -> Vec<Port> {
    vec![
        Port::access("a", 0),
        Port::access("n", 30),
        Port::trunk("d", 20..=29, 30),
        Port::trunk("v", 20..=29, 0),
        Port::uplink("w"),
    ]
}

fn vlan(vlan: u16) -> Stack {
    vec![Tag::new(0x8100, vlan)]
}

fn markers() -> Vec<Marker> {
    let marker = |sender, stack, receiver| Marker { sender, stack, receiver };
    vec![
        marker(A, vec![], UPLINK),
        marker(N, vec![], UPLINK),
        marker(D, vec![], UPLINK),
        marker(V, vlan(20), UPLINK),
        marker(UPLINK, vec![], A),
        marker(UPLINK, vlan(30), N),
        marker(UPLINK, vlan(30), D),
        marker(UPLINK, vlan(20), V),
    ]
}

/// Returns broadcast frames from each port with each stack of tags.
fn broadcasts(ports: &[Port], stacks: &[Stack]) -> Vec<Probe> {
    let probes_from = |sender| {
        let probe =
            move |stack: &Stack| Probe { sender, to: Destination::All, stack: stack.clone() };
        stacks.iter().map(probe)
    };
    (0..ports.len()).flat_map(probes_from).collect()
}

/// Returns frames from each port to the address of each other port with each stack of tags.
fn unicasts(ports: &[Port], stacks: &[Stack]) -> Vec<Probe> {
    let mut probes = Vec::new();
    for sender in 0..ports.len() {
        for target in (0..ports.len()).filter(|target| *target != sender).map(Destination::Port) {
            probes.extend(stacks.iter().map(|stack| Probe {
                sender,
                to: target,
                stack: stack.clone(),
            }));
        }
    }
    probes
}

/// Daemon with the switch under test. Its uplink leads to a namespace.
struct Host {
    // Declared first, so that the daemon ends before the devices are removed.
    daemon: Daemon,
    guests: Vec<NamespaceGuest>,
    outside: Namespace,
    far: String,
    _wire: Veth,
}

impl Host {
    /// Starts the switch; `keys` are further lines of each `[[nic]]`.
    fn start(rig: &Rig, ports: &[Port], keys: &str) -> Self {
        let outside_namespace = Namespace::new(rig, "outside").unwrap();
        let (near, far) = (rig.device("up"), rig.device("far"));
        let wire = Veth::new(&near, &far, &outside_namespace).unwrap();
        let mut host = format!(
            "[host]\nfloating_workers = 1\n\
             [[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"up\"\n\
             [[uplink]]\nname = \"up\"\ndevice = \"{near}\"\n"
        );
        let mut guests = Vec::new();
        for (index, port) in ports.iter().enumerate() {
            let Some(port_keys) = &port.keys else { continue };
            let guest = NamespaceGuest::new(rig, port.name, index as u8 + 1).unwrap();
            let keys = format!("mac = \"{}\"\n{port_keys}{keys}", mac(index));
            host.push_str(&guest.nic_toml("wan", &keys));
            guests.push(guest);
        }
        let daemon = Daemon::start(rig, &host).unwrap();
        for guest in &guests {
            daemon.wait_up("nic", &guest.nic).unwrap();
            guest.bring_up().unwrap();
        }
        daemon.wait_up("uplink", "up").unwrap();
        Self { daemon, guests, outside: outside_namespace, far, _wire: wire }
    }

    fn recorder(&self) -> Recorder {
        let guests = self.guests.iter().map(|guest| (&guest.namespace, NamespaceGuest::DEVICE));
        let ends: Vec<_> = guests.chain([(&self.outside, self.far.as_str())]).collect();
        Recorder::open(&ends)
    }

    /// Returns true if frames from a NIC were dropped for a reason.
    fn has_dropped(&self, nic: &str, reason: &str) -> bool {
        let status = self.daemon.json(&["nic", "show", nic]).unwrap();
        let dropped = status["counters"]["rx_dropped"].as_array().unwrap();
        dropped.iter().any(|drop_counter| {
            drop_counter["reason"] == reason && drop_counter["frames"].as_u64() > Some(0)
        })
    }
}

/// Asserts that no switch behind a port can read a VLAN that the sender may not use from a frame,
/// neither in the first tag nor in one after a priority tag.
fn assert_isolated(ports: &[Port], probe: &Probe, observation: &Observation) {
    for (receiver, stack) in
        observation.iter().filter(|(receiver, _)| !ports[**receiver].is_access())
    {
        let vlan_tag = stack.iter().find(|tag| tag.vlan() > 0);
        assert!(
            vlan_tag.is_none_or(|tag| ports[probe.sender].carries(tag.vlan())),
            "{probe:?} is {stack:?} at port {receiver}"
        );
    }
}

/// Asserts that ports receive exactly the frames that the documentation states.
fn assert_documented(ports: &[Port], probes: &[Probe], observations: &[Observation]) {
    for (probe, observation) in probes.iter().zip(observations) {
        assert_isolated(ports, probe, observation);
    }
    for (probe, observation) in probes.iter().zip(observations) {
        let expected = documented(ports, probe.sender, probe.to, &probe.stack);
        assert_eq!(*observation, expected, "receivers of {probe:?}");
    }
}

#[test]
fn no_stack_of_tags_leaves_the_vlans_of_its_sender() {
    let rig = Rig::new().unwrap();
    let ports = ports();
    let host = Host::start(&rig, &ports, "");
    let mut recorder = host.recorder();
    recorder.wait_ready(&markers());
    let mut probes = broadcasts(&ports, &all_stacks(3));
    probes.extend(broadcasts(&ports, &random_stacks(600)));
    probes.extend(unicasts(&ports, &all_stacks(2)));
    let observations = recorder.record(&probes, &markers());
    assert_documented(&ports, &probes, &observations);
    for (nic, reason) in [("a", "tagged_on_access"), ("d", "nested_tag"), ("v", "nested_tag")] {
        assert!(host.has_dropped(nic, reason), "{nic}: {reason}");
    }
}

#[test]
fn the_kernel_path_carries_no_tags() {
    let rig = Rig::new().unwrap();
    let mut ports = ports();
    // A second port in the VLAN of `n`: the path between the two is open.
    ports[A] = Port::access("m", 30);
    let mut markers = markers();
    for marker in &mut markers {
        if marker.receiver == A {
            marker.stack = vlan(30);
        }
    }
    let host = Host::start(&rig, &ports, "kernel_path = true\n");
    let mut recorder = host.recorder();
    recorder.wait_ready(&markers);
    wait_kernel_path_used(&host.daemon, &host.guests[A], &host.guests[N]);
    let mut probes = unicasts(&ports, &all_stacks(2));
    probes.extend(unicasts(&ports, &random_stacks(200)));
    probes.extend(broadcasts(&ports, &all_stacks(2)));
    let observations = recorder.record(&probes, &markers);
    assert_documented(&ports, &probes, &observations);
    // Untagged frames are still forwarded.
    wait_kernel_path_used(&host.daemon, &host.guests[A], &host.guests[N]);
}

/// Records all broadcasts on Open vSwitch, whose frames pass its daemon.
fn through_open_vswitch(rig: &Rig, probes: &[Probe]) -> Vec<Observation> {
    let guests: Vec<Namespace> =
        ports().iter().map(|port| Namespace::new(rig, port.name).unwrap()).collect();
    let mut switch = OvsWoken::start(rig).unwrap();
    for ((guest, port), settings) in guests.iter().zip(ports()).zip([
        &["vlan_mode=access", "tag=0"][..],
        &["vlan_mode=access", "tag=30"],
        &["vlan_mode=native-untagged", "tag=30", "trunks=20,21,22,23,24,25,26,27,28,29"],
        &["vlan_mode=trunk", "trunks=0,20,21,22,23,24,25,26,27,28,29"],
        &["vlan_mode=trunk"],
    ]) {
        switch.connect_with(guest, &rig.device(port.name), settings).unwrap();
        guest.run(&["ip", "link", "set", NamespaceGuest::DEVICE, "up"]).unwrap();
    }
    let ends: Vec<_> = guests.iter().map(|guest| (guest, NamespaceGuest::DEVICE)).collect();
    let mut recorder = Recorder::open(&ends);
    recorder.wait_ready(&markers());
    recorder.record(probes, &markers())
}

/// Records all broadcasts on a bridge of Linux. Its untagged network is VLAN 1. `None` if the
/// kernel has no VLAN filtering (`CONFIG_BRIDGE_VLAN_FILTERING`).
fn through_linux_bridge(rig: &Rig, probes: &[Probe]) -> Option<Vec<Observation>> {
    const BRIDGE: &str = "bridge0";
    let bridge_namespace = Namespace::new(rig, "bridge").unwrap();
    bridge_namespace
        .run(&["ip", "link", "add", BRIDGE, "type", "bridge", "mcast_snooping", "0"])
        .unwrap();
    let filter = ["vlan_filtering", "1", "vlan_default_pvid", "0"];
    let set = [&["ip", "link", "set", BRIDGE, "type", "bridge"], &filter[..]].concat();
    let set = bridge_namespace.run_any(&set, LIMIT).unwrap();
    if !set.is_ok() && set.stderr.contains("not supported") {
        return None;
    }
    assert!(set.is_ok(), "{set:?}");
    bridge_namespace.run(&["ip", "link", "set", BRIDGE, "up"]).unwrap();
    let mut guests = Vec::new();
    for (port, vlans) in ports().iter().zip([
        &["1 pvid untagged"][..],
        &["30 pvid untagged"],
        &["30 pvid untagged", "20-29"],
        &["1 pvid untagged", "20-29"],
        &["1 pvid untagged", "2-4094"],
    ]) {
        let guest = Namespace::new(rig, port.name).unwrap();
        let command = format!(
            "ip link add {0} type veth peer name {1} netns {2}",
            port.name,
            NamespaceGuest::DEVICE,
            guest.name()
        );
        bridge_namespace.run(&command.split(' ').collect::<Vec<_>>()).unwrap();
        bridge_namespace.run(&["ip", "link", "set", port.name, "up", "master", BRIDGE]).unwrap();
        for vlan in vlans {
            let command = format!("bridge vlan add dev {} vid {vlan}", port.name);
            bridge_namespace.run(&command.split(' ').collect::<Vec<_>>()).unwrap();
        }
        guest.run(&["ip", "link", "set", NamespaceGuest::DEVICE, "up"]).unwrap();
        guests.push(guest);
    }
    let ends: Vec<_> = guests.iter().map(|guest| (guest, NamespaceGuest::DEVICE)).collect();
    let mut recorder = Recorder::open(&ends);
    recorder.wait_ready(&markers());
    Some(recorder.record(probes, &markers()))
}

/// Kind of port, sender, receiver, and types and VLANs of the tags.
type Row = (&'static str, usize, usize, &'static [(u16, u16)]);

/// Rows of the table in the documentation.
const ROWS: [Row; 14] = [
    ("access, untagged network", A, UPLINK, &[(0x8100, 0)]),
    ("access, untagged network", A, UPLINK, &[(0x8100, 20)]),
    ("access, untagged network", A, UPLINK, &[(0x8100, 0), (0x8100, 20)]),
    ("access, untagged network", A, UPLINK, &[(0x88a8, 20)]),
    ("access, untagged network", A, UPLINK, &[(0x9100, 20)]),
    ("access, VLAN 30", N, D, &[(0x8100, 0), (0x8100, 20)]),
    ("access, VLAN 30", N, D, &[(0x88a8, 20)]),
    ("trunk 20-29", V, UPLINK, &[(0x8100, 20), (0x8100, 50)]),
    ("trunk 20-29", V, UPLINK, &[(0x88a8, 20)]),
    ("trunk 20-29", V, UPLINK, &[(0x88a8, 50)]),
    ("trunk 20-29", V, UPLINK, &[(0x9100, 50)]),
    ("trunk, native VLAN 30", D, UPLINK, &[(0x88a8, 50)]),
    ("uplink", UPLINK, N, &[(0x8100, 30), (0x8100, 50)]),
    ("uplink", UPLINK, D, &[(0x8100, 30), (0x8100, 20)]),
];

fn stack_of(tags: &[(u16, u16)]) -> Stack {
    tags.iter().map(|(kind, vlan)| Tag::new(*kind, *vlan)).collect()
}

fn cell(stack: Option<&Stack>) -> String {
    match stack.map(Vec::as_slice) {
        None => "–".to_owned(),
        Some([]) => "untagged".to_owned(),
        Some(stack) => {
            let tags = stack.iter().map(|tag| format!("`{:04x} {}`", tag.kind, tag.vlan()));
            tags.collect::<Vec<_>>().join(" ")
        }
    }
}

/// Returns the rows of the table in the documentation, with a column for each switch.
fn table(probes: &[Probe], switches: &[&[Observation]]) -> Vec<String> {
    let row = |&(port, sender, receiver, tags): &Row| {
        let stack = stack_of(tags);
        let is_row = |probe: &Probe| probe.sender == sender && probe.stack == stack;
        let index = probes.iter().position(is_row).unwrap();
        let receivers = ["access", "access, VLAN 30", "trunk, native VLAN 30", "trunk", "uplink"];
        let mut row = format!("| {port} | {} | {} |", cell(Some(&stack)), receivers[receiver]);
        for observations in switches {
            write!(row, " {} |", cell(observations[index].get(&receiver))).unwrap();
        }
        row
    };
    ROWS.iter().map(row).collect()
}

/// Returns true if all switches should forward the frame alike to the receiver: the stack begins
/// with an 802.1Q tag with a VLAN, or has no tag besides a priority tag; and no inner tag becomes
/// the first one when another is removed.
fn is_common(ports: &[Port], probe: &Probe, receiver: usize) -> bool {
    match &probe.stack[..] {
        [] => true,
        [first] => first.kind == 0x8100,
        [first, ..] => {
            let is_removed = ports[receiver].untagged == first.vlan();
            first.kind == 0x8100 && first.vlan() > 0 && !is_removed
        }
    }
}

#[test]
fn open_vswitch_and_the_linux_bridge_agree_where_802_1q_defines_it() {
    assert!(ovs::is_installed(), "Open vSwitch is not installed; `make setup` installs it");
    let rig = Rig::new().unwrap();
    let ports = ports();
    let probes = broadcasts(&ports, &all_stacks(2));
    let expected: Vec<Observation> = probes
        .iter()
        .map(|probe| documented(&ports, probe.sender, probe.to, &probe.stack))
        .collect();
    let suimon_observations = {
        let host = Host::start(&rig, &ports, "");
        let mut recorder = host.recorder();
        recorder.wait_ready(&markers());
        recorder.record(&probes, &markers())
    };
    assert_eq!(suimon_observations, expected);
    let open_vswitch = through_open_vswitch(&rig, &probes);
    let bridge = through_linux_bridge(&rig, &probes);
    let mut others = vec![&open_vswitch[..]];
    others.extend(bridge.as_deref());
    for (index, probe) in probes.iter().enumerate() {
        for receiver in (0..ports.len()).filter(|receiver| is_common(&ports, probe, *receiver)) {
            let observations = others
                .iter()
                .map(|observations| observations[index].get(&receiver))
                .collect::<Vec<_>>();
            let suimon_stack = suimon_observations[index].get(&receiver);
            assert!(
                observations.contains(&suimon_stack),
                "{probe:?} at {receiver}: {suimon_stack:?}, others {observations:?}"
            );
        }
    }
    let page = std::fs::read_to_string(PAGE).unwrap();
    others.insert(0, &suimon_observations);
    let rows = table(&probes, &others);
    let is_missing = |row: &&String| !page.lines().any(|line| line.starts_with(row.as_str()));
    let missing: Vec<&String> = rows.iter().filter(is_missing).collect();
    let table_text = rows.join("\n");
    assert!(missing.is_empty(), "{PAGE} lacks {missing:#?}; the table should be\n{table_text}");
}
