//! `suimon offload` shows the actual state of an uplink, a NIC and a host NIC, even after another
//! program has changed the device. Its settings change the frames immediately, and after a restart.

use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use suimon_frame::{Sum, VnetHeader};
use suimon_rig::{Daemon, HostDevice, Namespace, NamespaceGuest, Rig, Veth, run};

use crate::packet_tap::{FrameWithHeader, PacketTap};
use crate::streams::{sample, tcp_stream};

const PORT: u16 = 7007;
const WORLD: &str = "10.77.0.200";
/// Maximum frame length in bytes: Ethernet header and MTU.
const LENGTH_MAX: usize = 14 + 1500;

/// Namespace guest, and a namespace behind an uplink.
struct Site {
    // Declared first, so that the daemon ends before the devices are removed.
    daemon: Daemon,
    guest: NamespaceGuest,
    world: Namespace,
    far: String,
    wire: Veth,
}

impl Site {
    fn new(rig: &Rig) -> Self {
        let world = Namespace::new(rig, "world").unwrap();
        let guest = NamespaceGuest::new(rig, "guest", 1).unwrap();
        let (near, far) = (rig.device("up"), rig.device("far"));
        let wire = Veth::new(&near, &far, &world).unwrap();
        world.address(&far, &format!("{WORLD}/24")).unwrap();
        let host = format!(
            "[[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"up\"\n\
             [[uplink]]\nname = \"up\"\ndevice = \"{near}\"\n{}",
            guest.nic_toml("wan", "")
        );
        let daemon = Daemon::start(rig, &host).unwrap();
        guest.bring_up().unwrap();
        Self { daemon, guest, world, far, wire }
    }

    /// Returns what `suimon offload show` reports about one offload of a port.
    fn show_offload(&self, port: &str, offload: &str) -> Value {
        show_offload(&self.daemon, port, offload)
    }

    /// Sends a stream from the guest. Returns its data frames as received behind the uplink.
    fn sent_frames(&self) -> Vec<FrameWithHeader> {
        let tap = PacketTap::open(&self.world, &self.far);
        let address = SocketAddr::new(WORLD.parse().unwrap(), PORT);
        let (guest, world) = (&self.guest.namespace, &self.world);
        tcp_stream(guest, world, address, &sample(1 << 20), "to the world");
        self.of_stream(&tap)
    }

    /// Sends a stream to the guest. Returns its data frames as the guest receives them.
    fn received(&self) -> Vec<FrameWithHeader> {
        let tap = PacketTap::open(&self.guest.namespace, NamespaceGuest::DEVICE);
        let address = SocketAddr::new(self.guest.address().parse().unwrap(), PORT);
        let (guest, world) = (&self.guest.namespace, &self.world);
        tcp_stream(world, guest, address, &sample(1 << 20), "to the guest");
        self.of_stream(&tap)
    }

    /// Returns the received frames of the stream that carry data.
    fn of_stream(&self, tap: &PacketTap) -> Vec<FrameWithHeader> {
        let received = std::iter::from_fn(|| tap.receive(Duration::from_millis(50)));
        let frames = received.filter(|(_, bytes)| {
            bytes[12..14] == [0x08, 0x00]
                && bytes[23] == 6
                && bytes[36..38] == PORT.to_be_bytes()
                && bytes.len() > 500
        });
        let frames: Vec<_> = frames.collect();
        assert!(frames.len() > 10, "{} frames", frames.len());
        frames
    }
}

/// Returns what `suimon offload show` reports about a port.
fn port_shown(daemon: &Daemon, port: &str) -> Value {
    let ports = daemon.json(&["offload", "show", port]).unwrap();
    let [port] = &ports.as_array().unwrap()[..] else { panic!("{ports}") };
    port.clone()
}

/// Returns what `suimon offload show` reports about one offload of a port.
fn show_offload(daemon: &Daemon, port: &str, offload: &str) -> Value {
    let port = port_shown(daemon, port);
    let mut offloads = port["offloads"].as_array().unwrap().iter();
    offloads
        .find(|offload_status| offload_status["name"] == offload)
        .unwrap_or_else(|| panic!("{port}"))
        .clone()
}

fn is_large((header, bytes): &FrameWithHeader) -> bool {
    header.gso_type != VnetHeader::GSO_NONE && bytes.len() > LENGTH_MAX
}

fn is_partial((header, _): &FrameWithHeader) -> bool {
    header.flags & VnetHeader::NEEDS_CSUM != 0
}

/// Returns true if the frame is valid on a wire: no longer than the MTU permits, with correct
/// checksums.
fn is_plain(frame: &FrameWithHeader) -> bool {
    let (header, bytes) = frame;
    let length = u16::from_be_bytes([bytes[16], bytes[17]]);
    let segment = &bytes[34..14 + usize::from(length)];
    let address =
        |offset: usize| [bytes[offset], bytes[offset + 1], bytes[offset + 2], bytes[offset + 3]];
    let pseudo = Sum::pseudo_ipv4(address(26), address(30), 6, length - 20);
    header.gso_type == VnetHeader::GSO_NONE
        && !is_partial(frame)
        && bytes.len() <= LENGTH_MAX
        && bytes[14] == 0x45
        && Sum::from_bytes(&bytes[14..34]).word() == 0xffff
        && pseudo.concat(Sum::from_bytes(segment)).word() == 0xffff
}

#[test]
fn offloads_changed_with_ethtool_on_the_uplink_are_shown() {
    let rig = Rig::new().unwrap();
    let site = Site::new(&rig);
    let near = site.wire.near();
    let large = || site.show_offload("up", "tx_tcp4_segmentation");
    let before = large();
    assert!(before["by"] == "nic" && before["effective"] == true, "{before}");
    run(&["ethtool", "-K", near, "tx-tcp-segmentation", "off"]).unwrap();
    let after = large();
    assert!(after["by"] == "kernel" && after["supported"] == true, "{after}");
    assert_eq!(after["reason"], format!("tx-tcp-segmentation of {near} is off"));
    assert_eq!(site.show_offload("up", "tx_tcp6_segmentation")["by"], "nic");
    run(&["ethtool", "-K", near, "tx-tcp-segmentation", "on", "tx", "off"]).unwrap();
    assert_eq!(large()["reason"], format!("tx-tcp-segmentation of {near} is off [requested on]"));
    assert_eq!(site.show_offload("up", "tx_checksum")["by"], "kernel");
    // The kernel performs the offloads that the device lacks.
    assert!(site.sent_frames().iter().all(is_plain));

    let device = site.daemon.json(&["uplink", "show", "up"]).unwrap()["device"].clone();
    let mut features = device["features"].as_array().unwrap().iter();
    let rx = features.find(|feature| feature["name"] == "rx-lro").unwrap();
    assert_eq!(rx["state"], "off [fixed]");
    let table = site.daemon.ok(&["offload", "show"]).unwrap();
    for part in ["guest  tx_checksum", "up     tx_checksum", "kernel"] {
        assert!(table.contains(part), "{table}");
    }
}

#[test]
fn offload_keys_of_an_uplink_affect_sent_and_received_frames() {
    let rig = Rig::new().unwrap();
    let mut site = Site::new(&rig);
    let (sent_frames, received) = (site.sent_frames(), site.received());
    assert!(
        sent_frames.iter().any(is_large) && sent_frames.iter().any(is_partial),
        "{}",
        sent_frames.len()
    );
    assert!(received.iter().any(is_large), "{}", received.len());

    let plan = site.daemon.ok(&["offload", "set", "up", "segmentation=off", "--dry-run"]).unwrap();
    let step = "~ uplink/up change live: offload.segmentation true → false";
    assert!(plan.contains(step), "{plan}");
    assert_eq!(site.show_offload("up", "tx_tcp4_segmentation")["enabled"], true, "a dry run");
    site.daemon.ok(&["offload", "set", "up", "segmentation=off", "tx_checksum=off"]).unwrap();
    let check = |site: &Site, condition: &str| {
        assert!(site.sent_frames().iter().all(is_plain), "{condition}");
        assert!(!site.received().iter().any(is_large), "{condition}");
        for (offload, switch) in
            [("tx_tcp4_segmentation", "segmentation"), ("tx_checksum", "tx_checksum")]
        {
            let offload_status = site.show_offload("uplink:up", offload);
            let states =
                ["enabled", "effective", "supported"].map(|field| offload_status[field].as_bool());
            assert_eq!(
                states,
                [Some(false), Some(false), Some(true)],
                "{condition}: {offload_status}"
            );
            assert_eq!(offload_status["by"], "software", "{condition}");
            assert_eq!(
                offload_status["reason"],
                format!("switched off by {switch}"),
                "{condition}"
            );
        }
        let config = site.daemon.ok(&["export"]).unwrap();
        assert!(config.contains("[uplink.offload]\ntx_checksum = false"), "{condition}: {config}");
    };
    check(&site, "at once");
    site.daemon.restart(&rig).unwrap();
    site.daemon.wait_up("uplink", "up").unwrap();
    site.daemon.wait_up("nic", "guest").unwrap();
    assert!(site.guest.namespace.reaches(WORLD));
    check(&site, "after a restart");

    site.daemon.ok(&["offload", "set", "up", "segmentation=default", "tx_checksum=on"]).unwrap();
    assert!(site.sent_frames().iter().any(is_large));
    assert!(site.received().iter().any(is_large));
    // Coalesced segments are large frames, so the setting affects them too.
    site.daemon.ok(&["offload", "set", "up", "receive_coalescing=off"]).unwrap();
    assert!(!site.received().iter().any(is_large));
    assert!(site.sent_frames().iter().any(is_large));
    site.daemon.ok(&["offload", "set", "up", "receive_coalescing=default"]).unwrap();
    assert!(site.received().iter().any(is_large));
    for namespace in [&site.world, &site.guest.namespace] {
        assert_eq!(namespace.checksum_errors().unwrap(), 0);
    }
}

#[test]
fn checksums_that_an_uplink_is_not_believed_reach_the_guest_whole() {
    let rig = Rig::new().unwrap();
    let site = Site::new(&rig);
    let completed = || {
        let status = site.daemon.json(&["nic", "show", "guest"]).unwrap();
        status["counters"]["software_checksummed"].as_u64().unwrap()
    };
    assert!(site.received().iter().any(is_partial));
    assert_eq!(completed(), 0);
    site.daemon.ok(&["offload", "set", "up", "rx_checksum=off"]).unwrap();
    assert!(site.received().iter().all(is_plain));
    // The frames that open and close the connection are not large and need no segmentation.
    assert!(completed() > 0, "completing a checksum is the switch's work and counts as such");
    assert!(site.sent_frames().iter().any(is_large), "the other direction is as before");
}

#[test]
fn the_host_nic_of_an_internal_switch_is_shown_and_switched() {
    let rig = Rig::new().unwrap();
    let guest = NamespaceGuest::new(&rig, "guest", 1).unwrap();
    let host_nic = HostDevice::new(&rig);
    let device = host_nic.name();
    let host = format!(
        "[[switch]]\nname = \"inside\"\nkind = \"internal\"\nhost_device = \"{device}\"\n\
         [[switch]]\nname = \"apart\"\nkind = \"private\"\n{}",
        guest.nic_toml("inside", "")
    );
    let mut daemon = Daemon::start(&rig, &host).unwrap();
    guest.bring_up().unwrap();
    run(&["ip", "link", "set", device, "up"]).unwrap();
    let ports = daemon.json(&["offload", "show"]).unwrap();
    let name = |port: &Value| format!("{}:{}", port["kind"], port["name"]).replace('"', "");
    let names: Vec<_> = ports.as_array().unwrap().iter().map(name).collect();
    assert_eq!(names, ["nic:guest", "switch:inside"], "a private switch has no port of its own");
    // Both are TAP devices of the same kernel.
    daemon.wait_up("nic", "guest").unwrap();
    daemon.wait_up("switch", "inside").unwrap();
    let [a, b] = ["guest", "inside"].map(|port| port_shown(&daemon, port)["offloads"].clone());
    assert_eq!(a, b);
    let table = daemon.ok(&["offload", "show"]).unwrap();
    let cells = ["inside", "tx_tcp4_segmentation", "yes", "yes", "yes", "egress", "port", "on"];
    assert!(table.lines().any(|line| line.split_whitespace().eq(cells)), "{table}");

    let set = |daemon: &Daemon, extra: &[&str]| {
        let arguments = [&["offload", "set", "switch:inside"], extra].concat();
        daemon.ok(&arguments).unwrap()
    };
    let plan = set(&daemon, &["segmentation=off", "--dry-run"]);
    let step = "~ switch/inside change live: host_offload.segmentation true → false";
    assert!(plan.contains(step), "{plan}");
    set(&daemon, &["segmentation=off"]);
    // Returns true if the host's kernel may pass large frames to the device.
    let takes_large = || {
        let features = run(&["ethtool", "-k", device]).unwrap();
        features.contains("\n\ttx-tcp-segmentation: on")
    };
    let check = |daemon: &Daemon, condition: &str| {
        for (offload, performer) in
            [("tx_tcp4_segmentation", "guest"), ("rx_tcp4_segmentation", "software")]
        {
            let offload_status = show_offload(daemon, "inside", offload);
            let states = ["enabled", "effective"].map(|field| offload_status[field].as_bool());
            assert_eq!(states, [Some(false), Some(false)], "{condition}: {offload_status}");
            assert_eq!(offload_status["by"], performer, "{condition}");
            assert_eq!(offload_status["reason"], "switched off by segmentation", "{condition}");
        }
        assert!(!takes_large(), "{condition}");
        let config = daemon.ok(&["export"]).unwrap();
        assert!(
            config.contains("[switch.host_offload]\nsegmentation = false"),
            "{condition}: {config}"
        );
    };
    check(&daemon, "at once");
    daemon.restart(&rig).unwrap();
    daemon.wait_up("switch", "inside").unwrap();
    check(&daemon, "after a restart");
    set(&daemon, &["segmentation=default"]);
    assert_eq!(show_offload(&daemon, "inside", "tx_tcp4_segmentation")["effective"], true);
    assert!(takes_large());
}

#[test]
fn unknown_names_and_keys_are_reported_with_the_valid_ones() {
    let rig = Rig::new().unwrap();
    let site = Site::new(&rig);
    for (arguments, code, part) in [
        (
            &["offload", "show", "wan"][..],
            4,
            "no NIC, uplink or host NIC `wan` exists; the host has guest, up",
        ),
        (&["offload", "set", "wan", "segmentation=off"], 4, "the host has guest, up"),
        (&["offload", "set", "up", "tso=off"], 2, "the keys are tx_checksum, rx_checksum"),
        (&["offload", "set", "up", "segmentation=0"], 2, "must be on, off or default, not `0`"),
    ] {
        let output = site.daemon.cli(arguments).unwrap();
        assert_eq!(output.code, code, "{arguments:?}: {output:?}");
        assert!(output.stderr.contains(part), "{arguments:?}: {output:?}");
    }
    site.daemon.ok(&["offload", "set", "nic:guest", "segmentation=off"]).unwrap();
    assert_eq!(site.show_offload("guest", "rx_tcp4_segmentation")["by"], "software");
    assert_eq!(site.show_offload("guest", "rx_tcp4_segmentation")["supported"], true);
}
