//! Commands of a VM's driver on the control queue (virtio 1.3, section 5.1.6.5). The front-end
//! serves this queue; QEMU passes only the number of queue pairs to the back-end. After each
//! command, the guest's frames must be correct, and the switch must follow its own configuration.

use crate::streams;
use std::io::Write;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use serde_json::json;
use suimon_rig::{Daemon, Guest, GuestNic, GuestSpec, NamespaceGuest, Rig, wait_until};

use crate::streams::{receive, sample};

const VM_MAC: &str = "52:54:00:aa:00:01";
const OTHER_MAC: &str = "52:54:00:aa:00:77";
const PORT: u16 = 7007;
const NIC_DISCONNECTED: u16 = 3005;
const STREAM_BYTES: u64 = 2_000_000;
/// Deadline of every condition and command. The machine may be loaded.
const LIMIT: Duration = Duration::from_secs(300);
/// Maximum frame length in bytes: Ethernet header and MTU.
const LENGTH_MAX: f64 = 14.0 + 1500.0;
/// Bits of virtio features (virtio 1.3, section 5.1.3).
const CTRL_VQ: usize = 17;
const CTRL_RX: usize = 18;
const CTRL_VLAN: usize = 19;
const MQ: usize = 22;
const CTRL_MAC_ADDR: usize = 23;
const CTRL_GUEST_OFFLOADS: usize = 2;

/// VM with two queue pairs, and two namespace guests, on one switch.
struct Site {
    vm: Guest,
    daemon: Daemon,
    lights: [NamespaceGuest; 2],
    bytes: Vec<u8>,
}

impl Site {
    fn boot(rig: &Rig) -> Self {
        let lights = [("a", 1), ("b", 2)]
            .map(|(nic, number)| NamespaceGuest::new(rig, nic, number).unwrap());
        let socket = rig.path("vm.sock");
        let host = format!(
            "[[switch]]\nname = \"lan\"\nkind = \"private\"\n{}{}\
             [[nic]]\nname = \"vm\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
             socket = \"{socket}\"\nqueues = 2\nmac = \"{VM_MAC}\"\n",
            lights[0].nic_toml("lan", ""),
            lights[1].nic_toml("lan", ""),
        );
        let daemon = Daemon::start(rig, &host).unwrap();
        for light in &lights {
            light.bring_up().unwrap();
        }
        let nics = vec![GuestNic { queues: 2, ..GuestNic::new(&socket, VM_MAC) }];
        let spec = GuestSpec { name: "vm".to_owned(), nics, cpus: 2, ..GuestSpec::default() };
        let mut vm = Guest::start(rig, &spec).unwrap();
        vm.address("eth0", "10.77.0.9/24").unwrap();
        daemon.wait_up("nic", "vm").unwrap();
        let mut site = Self { vm, daemon, lights, bytes: sample(STREAM_BYTES) };
        // The streams from the VM are compared with the original, so this copy is verified too.
        site.download("first");
        site.vm.run("mv /tmp/got /tmp/sent").unwrap();
        site
    }

    /// Transfers the sample data from the first namespace guest to the VM.
    fn download(&mut self, label: &str) {
        let listener = self.listener();
        let address = self.lights[0].address();
        self.vm.begin(&format!("nc -w 90 {address} {PORT} < /dev/null > /tmp/got")).unwrap();
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_write_timeout(Some(streams::PATIENCE)).unwrap();
        stream.write_all(&self.bytes).unwrap_or_else(|error| panic!("{label}: {error}"));
        drop(stream);
        assert!(self.vm.finish(LIMIT).unwrap().is_ok(), "{label}");
    }

    /// Transfers the sample data in both directions, and asserts that bytes and checksums are
    /// correct.
    fn exchange(&mut self, label: &str) {
        self.download(label);
        let output = self.vm.run_any("cmp /tmp/got /tmp/sent", LIMIT).unwrap();
        assert!(output.is_ok(), "{label}: {}", output.stdout);
        let listener = self.listener();
        let address = self.lights[0].address();
        self.vm.begin(&format!("nc -w 90 {address} {PORT} < /tmp/sent")).unwrap();
        let received = receive(&listener);
        assert!(self.vm.finish(LIMIT).unwrap().is_ok(), "{label}");
        assert!(received == self.bytes, "{label}: the received bytes differ");
        for light in &self.lights {
            assert_eq!(light.namespace.checksum_errors().unwrap(), 0, "{label}");
        }
        let snmp = self.vm.run("grep ^Tcp: /proc/net/snmp | tail -n 1").unwrap();
        assert!(snmp.trim().ends_with(" 0"), "{label}: checksum errors in the VM: {snmp}");
    }

    fn listener(&self) -> TcpListener {
        let address = SocketAddr::new(self.lights[0].address().parse().unwrap(), PORT);
        self.lights[0].namespace.inside(|| TcpListener::bind(address).unwrap()).unwrap()
    }

    /// Returns the mean length in bytes of a stream's frames as the VM receives them.
    fn received_length(&mut self, label: &str) -> f64 {
        let before = self.received();
        self.download(label);
        let after = self.received();
        (after[0] - before[0]) / (after[1] - before[1])
    }

    /// Returns the numbers of bytes and frames that the VM has received.
    fn received(&mut self) -> [f64; 2] {
        ["bytes", "packets"].map(|unit| {
            let path = format!("/sys/class/net/eth0/statistics/rx_{unit}");
            self.vm.run(&format!("cat {path}")).unwrap().trim().parse().unwrap()
        })
    }

    /// Returns true if the VM's driver has negotiated a feature.
    fn has_feature(&mut self, bit: usize) -> bool {
        let features = self.vm.run("cat /sys/class/net/eth0/device/features").unwrap();
        features.trim().as_bytes()[bit] == b'1'
    }

    fn counter(&self, counter: &str) -> u64 {
        let status = self.daemon.json(&["nic", "show", "vm"]).unwrap();
        status["counters"][counter].as_u64().unwrap_or_else(|| panic!("{counter}: {status}"))
    }

    /// Waits until the switch serves `pairs` queue pairs of the VM.
    fn wait_queue_pairs(&self, pairs: u16) {
        wait_until(&format!("{pairs} queue pairs"), LIMIT, || {
            Ok(self.daemon.json(&["nic", "show", "vm"])?["queue_pairs"] == pairs)
        })
        .unwrap();
    }
}

fn the_number_of_queue_pairs_follows_the_guest_and_frames_stay_right() {
    let rig = Rig::new().unwrap();
    let mut site = Site::boot(&rig);
    assert!(site.has_feature(CTRL_VQ) && site.has_feature(MQ));
    for pairs in [2, 1, 2, 1] {
        site.vm.run(&format!("ethtool -L eth0 combined {pairs}")).unwrap();
        site.wait_queue_pairs(pairs);
        site.exchange(&format!("{pairs} queue pairs"));
    }
    // The front-end kept its connection all the time.
    let events = site.daemon.json(&["event", "list"]).unwrap();
    let disconnection =
        events.as_array().unwrap().iter().find(|event| event["id"] == NIC_DISCONNECTED);
    assert!(disconnection.is_none(), "{disconnection:?}");
}

/// `CTRL_RX`, `CTRL_VLAN`: the front-end implements the filters. The switch sends a guest only its
/// own frames, regardless of the filters.
fn a_guest_in_promiscuous_mode_receives_only_its_own_frames() {
    const PINGS: u64 = 20;
    let rig = Rig::new().unwrap();
    let mut site = Site::boot(&rig);
    assert!(site.has_feature(CTRL_RX) && site.has_feature(CTRL_VLAN));
    site.vm.run("ethtool -L eth0 combined 2").unwrap();
    site.wait_queue_pairs(2);
    assert!(site.lights[0].namespace.reaches(&site.lights[1].address()));
    for (mode, field, value) in
        [("promisc", "promiscuous", json!(true)), ("allmulti", "multicast", json!("all"))]
    {
        site.vm.run(&format!("ifconfig eth0 {mode}")).unwrap();
        let filter = site.vm.receive_filter().unwrap();
        assert_eq!(filter[field], value, "the front-end got no command: {filter}");
        site.exchange(mode);
        // The VM must not receive frames between other guests.
        let before = site.counter("tx_bytes");
        let (count, other) = (PINGS.to_string(), site.lights[1].address());
        let arguments = ["ping", "-n", "-c", &count, "-i", "0.02", "-s", "1400", &other];
        site.lights[0].namespace.run(&arguments).unwrap();
        let received_bytes = site.counter("tx_bytes") - before;
        assert!(
            received_bytes < PINGS * 1400,
            "{mode}: the VM received {received_bytes} bytes of other guests"
        );
    }
    site.vm.run("ifconfig eth0 -promisc -allmulti").unwrap();
    site.exchange("no mode");
    // A VLAN that the NIC may not use, and one that it may use.
    site.daemon.ok(&["nic", "set", "a", "--vlan", "10"]).unwrap();
    site.daemon.ok(&["nic", "set", "vm", "--vlan", "20", "--trunk", "10"]).unwrap();
    site.vm.run("ip addr flush dev eth0").unwrap();
    for (vlan, is_reached) in [(30, false), (10, true)] {
        let name = format!("eth0.{vlan}");
        let add = format!("ip link add link eth0 name {name} type vlan id {vlan}");
        site.vm.run(&add).unwrap();
        site.vm.address(&name, "10.77.0.9/24").unwrap();
        let filter = site.vm.receive_filter().unwrap();
        let vlans = filter["vlan-table"].as_array().unwrap();
        assert!(vlans.contains(&json!(vlan)), "the front-end got no command: {filter}");
        let address = site.lights[0].address();
        if is_reached {
            assert!(site.vm.reaches(&address).unwrap(), "VLAN {vlan}");
            site.exchange(&name);
        } else {
            assert!(site.vm.cannot_reach(&address).unwrap(), "VLAN {vlan}");
        }
        site.vm.run(&format!("ip link del {name}")).unwrap();
    }
}

/// `CTRL_MAC_ADDR`: the switch learns a new address from the guest's frames, and forwards them only
/// if its configuration permits the address.
fn an_address_that_a_guest_gives_itself_is_learned_only_if_it_may_have_it() {
    let rig = Rig::new().unwrap();
    let mut site = Site::boot(&rig);
    assert!(site.has_feature(CTRL_MAC_ADDR));
    let address = site.lights[0].address();
    let change = |site: &mut Site, mac: &str| {
        site.vm.run(&format!("ip link set eth0 address {mac}")).unwrap();
        let output = site.vm.run("cat /sys/class/net/eth0/address").unwrap();
        assert_eq!(output.trim(), mac);
        let filter = site.vm.receive_filter().unwrap();
        assert_eq!(filter["main-mac"], mac, "the front-end got no command: {filter}");
    };
    let port_of = |site: &Site, mac: &str| {
        let addresses = site.daemon.json(&["switch", "addresses", "lan"]).unwrap();
        let entry = addresses.as_array().unwrap().iter().find(|entry| entry["mac"] == mac).cloned();
        entry.map(|entry| entry["port"].as_str().unwrap().to_owned())
    };
    change(&mut site, OTHER_MAC);
    assert!(
        site.vm.cannot_reach(&address).unwrap(),
        "the guest uses an address that it may not have"
    );
    // A missing reply alone does not show that the switch has processed the requests.
    let mut counters = serde_json::Value::Null;
    wait_until("frames dropped because of their source", LIMIT, || {
        counters = site.daemon.json(&["nic", "show", "vm"])?["counters"].take();
        let mut dropped = counters["rx_dropped"].as_array().into_iter().flatten();
        let spoofed = dropped.find(|drops| drops["reason"] == "spoofed_source");
        Ok(spoofed.is_some_and(|drops| drops["frames"].as_u64() > Some(0)))
    })
    .unwrap_or_else(|error| panic!("{error:#}: {counters}"));
    assert_eq!(port_of(&site, OTHER_MAC), None);
    site.daemon.ok(&["nic", "set", "vm", "--mac-spoofing=true"]).unwrap();
    assert!(site.vm.reaches(&address).unwrap());
    assert_eq!(port_of(&site, OTHER_MAC).as_deref(), Some("vm"));
    site.exchange("its second address");
    site.daemon.ok(&["nic", "set", "vm", "--mac-spoofing=false"]).unwrap();
    change(&mut site, VM_MAC);
    assert!(site.vm.reaches(&address).unwrap());
    site.exchange("its first address again");
}

/// `CTRL_GUEST_OFFLOADS`: the front-end does not pass the command on. Frames are correct
/// nevertheless; offloads can be disabled at the NIC, live.
fn offloads_that_a_guest_disables_can_be_disabled_at_its_nic() {
    let rig = Rig::new().unwrap();
    let mut site = Site::boot(&rig);
    assert!(site.has_feature(CTRL_GUEST_OFFLOADS));
    let is_used = |site: &Site, offload: &str| {
        let ports = site.daemon.json(&["offload", "show", "vm"]).unwrap();
        let mut offloads = ports[0]["offloads"].as_array().unwrap().iter();
        offloads.find(|entry| entry["name"] == offload).unwrap()["effective"].as_bool().unwrap()
    };
    assert!(site.received_length("before") > LENGTH_MAX);
    for options in ["rx-gro-hw off", "rx-gro-hw off rx off gro off", "rx on gro on"] {
        site.vm.run(&format!("ethtool -K eth0 {options}")).unwrap();
        let features = site.vm.run("ethtool -k eth0").unwrap();
        assert!(features.contains("rx-gro-hw: off\n"), "{options}: {features}");
        site.exchange(options);
        assert!(
            site.received_length(options) > LENGTH_MAX,
            "{options}: the command reached the switch"
        );
        assert!(
            is_used(&site, "rx_tcp4_segmentation"),
            "{options}: the command reached the switch"
        );
    }
    site.daemon.ok(&["offload", "set", "vm", "segmentation=off"]).unwrap();
    assert!(!is_used(&site, "rx_tcp4_segmentation"));
    assert!(site.received_length("without large frames") <= LENGTH_MAX);
    site.exchange("without large frames");
    let before = site.counter("software_checksummed");
    site.daemon.ok(&["offload", "set", "vm", "rx_checksum=off"]).unwrap();
    site.exchange("without partial checksums");
    assert!(site.counter("software_checksummed") > before);
    site.daemon.ok(&["offload", "set", "vm", "segmentation=on", "rx_checksum=on"]).unwrap();
    assert!(site.received_length("as at first") > LENGTH_MAX);
}

mod full {
    #[test]
    fn offloads_that_a_guest_disables_can_be_disabled_at_its_nic() {
        super::offloads_that_a_guest_disables_can_be_disabled_at_its_nic();
    }

    #[test]
    fn the_number_of_queue_pairs_follows_the_guest_and_frames_stay_right() {
        super::the_number_of_queue_pairs_follows_the_guest_and_frames_stay_right();
    }

    #[test]
    fn an_address_that_a_guest_gives_itself_is_learned_only_if_it_may_have_it() {
        super::an_address_that_a_guest_gives_itself_is_learned_only_if_it_may_have_it();
    }

    #[test]
    fn a_guest_in_promiscuous_mode_receives_only_its_own_frames() {
        super::a_guest_in_promiscuous_mode_receives_only_its_own_frames();
    }
}
