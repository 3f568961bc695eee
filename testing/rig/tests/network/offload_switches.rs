//! TCP works with every combination of the five offload settings, between guests with different
//! combinations on one switch. The settings are changed live on the NIC, and by `ethtool -K` in the
//! guest. Streams in both directions, over IPv4 and IPv6, with MTU 1500 and 9000, are compared byte
//! for byte, and no kernel may count a wrong checksum.

use crate::streams;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use serde_json::{Map, Value, json};
use suimon_rig::{Daemon, Guest, GuestNic, GuestSpec, NamespaceGuest, Rig, private_lan};

use crate::streams::{receive, sample, tcp_stream};

/// Keys of `[nic.offload]`, one per bit of a combination.
const SWITCHES: [&str; 5] =
    ["tx_checksum", "rx_checksum", "tx_ip_checksum", "rx_ip_checksum", "segmentation"];
/// Features of `ethtool -K`, one per bit of a combination. `tso` is off while `sg` or `tx` is.
const FEATURES: [&str; 5] = ["tx", "sg", "tso", "gso", "gro"];
const VM_FEATURES: [&str; 5] = ["tx", "rx", "tso", "gso", "gro"];
const COMBINATIONS: u32 = 32;
/// Combinations of the fast tier: none, all, each setting alone, and all but each.
const FEW: [u32; 12] = [0, 31, 1, 2, 4, 8, 16, 30, 29, 27, 23, 15];
const MTUS: [u16; 2] = [1500, 9000];
/// Configuration without large frames, partial checksums and coalescing.
const PLAIN: &str = "[nic.offload]\nsegmentation = false\nrx_checksum = false\n\
                     tx_checksum = false\nreceive_coalescing = false";
const PORT: u16 = 7007;
/// Deadline of a command in the VM. The machine may be loaded.
const LIMIT: Duration = Duration::from_secs(300);
const NIC_DISCONNECTED: u16 = 3005;

fn is_on(combination: u32, bit: usize) -> bool {
    combination >> bit & 1 == 1
}

/// Sets all five settings, alternating between the CLI and the API.
fn set_switches(daemon: &Daemon, nic: &str, combination: u32) {
    let values = SWITCHES.iter().enumerate().map(|(bit, key)| (*key, is_on(combination, bit)));
    if combination % 2 == 0 {
        let flags: Vec<String> = values
            .map(|(key, is_on)| format!("--offload-{}={is_on}", key.replace('_', "-")))
            .collect();
        let mut arguments = vec!["nic", "set", nic];
        arguments.extend(flags.iter().map(String::as_str));
        daemon.ok(&arguments).unwrap();
    } else {
        let switches: Map<String, Value> =
            values.map(|(key, is_on)| (key.to_owned(), is_on.into())).collect();
        let patch = json!({ "offload": switches }).to_string();
        let answer = daemon.http("PATCH", &format!("/1.0/nics/{nic}"), Some(&patch)).unwrap();
        assert_eq!(answer.status, 202, "{}", answer.text);
        let wait = format!("/1.0/operations/{}/wait?timeout_s=60", answer.json["id"]);
        let operation = daemon.http("GET", &wait, None).unwrap();
        assert_eq!(operation.json["state"], "succeeded", "{}", operation.text);
    }
}

fn ethtool_arguments<'w>(features: &[&'w str], combination: u32) -> Vec<&'w str> {
    let pairs = features.iter().enumerate();
    pairs
        .flat_map(|(bit, feature)| [*feature, if is_on(combination, bit) { "on" } else { "off" }])
        .collect()
}

fn addresses(guest: &NamespaceGuest) -> [SocketAddr; 2] {
    [guest.address(), guest.address_v6()]
        .map(|address| SocketAddr::new(address.parse().unwrap(), PORT))
}

/// Sends streams in both directions over IPv4 and IPv6.
fn exchange(a: &NamespaceGuest, b: &NamespaceGuest, bytes: &[u8], description: &str) {
    for (from, to) in [(a, b), (b, a)] {
        for address in addresses(to) {
            let description = format!("{description}, {} to {} at {address}", from.nic, to.nic);
            tcp_stream(&from.namespace, &to.namespace, address, bytes, &description);
        }
    }
}

/// Starts a switch with four guests of this MTU: two whose settings change, one without offloads
/// and one with all of them.
fn mixed_lan(rig: &Rig, mtu: u16) -> (Daemon, Vec<NamespaceGuest>) {
    let keys = format!("mtu = {mtu}");
    let plain = format!("{keys}\n{PLAIN}");
    let nics = [("a", &*keys), ("b", &*keys), ("plain", &*plain), ("full", &*keys)];
    let (daemon, guests) = private_lan(rig, &nics).unwrap();
    for guest in &guests[1..] {
        assert!(guest.namespace.reaches(&guests[0].address()));
    }
    (daemon, guests)
}

/// Sends streams between two guests with changing combinations, and to guests without and with all
/// offloads. `set` applies a combination to a guest; `check` examines the daemon afterwards.
fn carry_all(
    combinations: &[u32],
    set: impl Fn(&Daemon, &NamespaceGuest, u32),
    check: impl Fn(&Daemon),
) {
    let bytes = sample(200_000);
    for mtu in MTUS {
        let rig = Rig::new().unwrap();
        let (daemon, guests) = mixed_lan(&rig, mtu);
        let [a, b, plain, full] = guests.as_slice() else { panic!() };
        for combination in combinations.iter().copied() {
            let other = peer_combination(combination);
            set(&daemon, a, combination);
            set(&daemon, b, other);
            let description = format!("MTU {mtu}, {combination:05b} and {other:05b}");
            for peer in [b, plain, full] {
                exchange(a, peer, &bytes, &description);
            }
        }
        for guest in &guests {
            assert_eq!(guest.namespace.checksum_errors().unwrap(), 0, "in {}", guest.nic);
        }
        check(&daemon);
    }
}

/// Returns the combination that the other guest has at the same time. It takes each value once.
fn peer_combination(combination: u32) -> u32 {
    (combination * 11 + 5) % COMBINATIONS
}

fn nic_switches_carry_tcp(combinations: &[u32]) {
    let set = |daemon: &Daemon, guest: &NamespaceGuest, combination| {
        set_switches(daemon, &guest.nic, combination);
    };
    carry_all(combinations, set, |daemon| {
        let status = daemon.json(&["nic", "show", "b"]).unwrap();
        for counter in ["software_segmented", "software_checksummed"] {
            assert!(status["counters"][counter].as_u64().unwrap() > 0, "{counter}: {status}");
        }
    });
}

fn ethtool_switches_carry_tcp(combinations: &[u32]) {
    let set = |_: &Daemon, guest: &NamespaceGuest, combination| {
        let arguments = ethtool_arguments(&FEATURES, combination);
        guest.namespace.ethtool(NamespaceGuest::DEVICE, &arguments).unwrap();
    };
    carry_all(combinations, set, |_| {});
}

/// VM that stores the received data, and a namespace guest.
struct Pair {
    light: NamespaceGuest,
    vm: Guest,
}

impl Pair {
    /// Sends streams in both directions between the VM and the namespace guest over IPv4 and IPv6.
    /// The VM opens the connections.
    fn exchange(&mut self, bytes: &[u8], description: &str) {
        for address in addresses(&self.light) {
            let listener =
                self.light.namespace.inside(|| TcpListener::bind(address).unwrap()).unwrap();
            let (target, port) = (address.ip(), address.port());
            let down = format!("nc -w 90 {target} {port} < /dev/null > /tmp/got");
            let check = "cmp /tmp/got /tmp/sent";
            let up = format!("nc -w 90 {target} {port} < /tmp/sent");
            self.vm.begin(&format!("{down} && {check} && {up}")).unwrap();
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_write_timeout(Some(streams::PATIENCE)).unwrap();
            stream
                .write_all(bytes)
                .unwrap_or_else(|error| panic!("{description}, {target}: {error}"));
            drop(stream);
            let received = receive(&listener);
            let output = self.vm.finish(LIMIT).unwrap();
            assert!(output.is_ok(), "{description}, {target}: {}", output.stdout);
            assert!(received == bytes, "{description}, {target}: the received bytes differ");
        }
    }
}

/// Starts the VM and transfers the sample data to it while all settings are on.
fn boot(rig: &Rig, mtu: u16, bytes: &[u8]) -> (Daemon, Pair) {
    let light = NamespaceGuest::new(rig, "light", 1).unwrap();
    let socket = rig.path("vm.sock");
    let host = format!(
        "[[switch]]\nname = \"lan\"\nkind = \"private\"\n{}\
         [[nic]]\nname = \"vm\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
         socket = \"{socket}\"\nmtu = {mtu}\n",
        light.nic_toml("lan", &format!("mtu = {mtu}")),
    );
    let daemon = Daemon::start(rig, &host).unwrap();
    light.bring_up().unwrap();
    let nics = vec![GuestNic::new(&socket, "52:54:00:aa:00:01")];
    let mut vm = Guest::start(
        rig,
        &GuestSpec { name: "vm".to_owned(), nics, cpus: 1, ..GuestSpec::default() },
    )
    .unwrap();
    // Duplicate address detection would take two seconds.
    vm.run("echo 0 > /proc/sys/net/ipv6/conf/eth0/accept_dad").unwrap();
    vm.run(&format!("ip link set eth0 mtu {mtu}")).unwrap();
    for address in ["10.77.0.9/24", "fd77::9/64"] {
        vm.address("eth0", address).unwrap();
    }
    daemon.wait_up("nic", "vm").unwrap();
    assert!(vm.reaches(&light.address()).unwrap());
    let [address, _] = addresses(&light);
    let listener = light.namespace.inside(|| TcpListener::bind(address).unwrap()).unwrap();
    let fetch = format!("nc -w 90 {} {} < /dev/null > /tmp/sent", address.ip(), address.port());
    vm.begin(&fetch).unwrap();
    listener.accept().unwrap().0.write_all(bytes).unwrap();
    assert!(vm.finish(LIMIT).unwrap().is_ok());
    (daemon, Pair { light, vm })
}

fn vm_switches_carry_tcp(combinations: &[u32]) {
    let bytes = sample(100_000);
    for mtu in MTUS {
        let rig = Rig::new().unwrap();
        let (daemon, mut pair) = boot(&rig, mtu, &bytes);
        for combination in combinations.iter().copied() {
            let other = peer_combination(combination);
            let arguments = ethtool_arguments(&VM_FEATURES, combination).join(" ");
            pair.vm.run(&format!("ethtool -K eth0 {arguments}")).unwrap();
            set_switches(&daemon, "vm", other);
            pair.exchange(&bytes, &format!("MTU {mtu}, {combination:05b} and {other:05b}"));
        }
        assert_eq!(pair.light.namespace.checksum_errors().unwrap(), 0);
        let snmp = pair.vm.run("cat /proc/net/snmp").unwrap();
        let tcp: Vec<&str> = snmp.lines().filter(|line| line.starts_with("Tcp: ")).collect();
        assert!(tcp[1].ends_with(" 0"), "checksum errors in the VM: {}", tcp[1]);
        // All changes were live: the VM's front-end kept its connection.
        let events = daemon.json(&["event", "list", "--limit", "1000"]).unwrap();
        let disconnect_event =
            events.as_array().unwrap().iter().find(|event| event["id"] == NIC_DISCONNECTED);
        assert!(disconnect_event.is_none(), "{disconnect_event:?}");
        let status = daemon.json(&["nic", "show", "vm"]).unwrap();
        assert!(status["counters"]["software_segmented"].as_u64().unwrap() > 0, "{status}");
    }
}

#[test]
fn combinations_of_the_nic_s_switches_carry_tcp() {
    nic_switches_carry_tcp(&FEW);
}

#[test]
fn combinations_of_ethtool_s_switches_in_a_light_guest_carry_tcp() {
    ethtool_switches_carry_tcp(&FEW);
}

mod full {
    use super::*;

    fn all_combinations() -> Vec<u32> {
        (0..COMBINATIONS).collect()
    }

    #[test]
    fn all_combinations_of_the_nic_s_switches_carry_tcp() {
        nic_switches_carry_tcp(&all_combinations());
    }

    #[test]
    fn all_combinations_of_ethtool_s_switches_in_a_light_guest_carry_tcp() {
        ethtool_switches_carry_tcp(&all_combinations());
    }

    #[test]
    fn all_combinations_in_a_vm_carry_tcp_beside_those_of_its_nic() {
        vm_switches_carry_tcp(&all_combinations());
    }
}
