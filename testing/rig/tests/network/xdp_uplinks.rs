//! External switches whose uplink uses AF_XDP sockets.

use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Daemon, Namespace, NamespaceGuest, Rig, Veth, iperf, nginx, run, wait_until};

const WORLD: &str = "10.77.0.200";
/// Deadline of every condition and command. The machine may be loaded.
const LIMIT: Duration = Duration::from_secs(120);

/// Switch with a guest and an uplink on one end of a veth pair; the other end is in a namespace.
struct UplinkSite {
    // Declared first, so that the daemon ends before the devices are removed.
    daemon: Daemon,
    guest: NamespaceGuest,
    world: Namespace,
    wire: Veth,
    /// Name of the veth pair's end in the namespace.
    far: String,
}

impl UplinkSite {
    fn new(rig: &Rig, mtu: u16) -> Self {
        let world = Namespace::new(rig, "world").unwrap();
        let guest = NamespaceGuest::new(rig, "guest", 1).unwrap();
        let (near, far) = (rig.device("up"), rig.device("far"));
        let wire = Veth::new(&near, &far, &world).unwrap();
        world.address(&far, &format!("{WORLD}/24")).unwrap();
        world.run(&["ip", "link", "set", &far, "mtu", &mtu.to_string()]).unwrap();
        // On a wire, checksums and tags are part of the frame. A veth pair passes both as metadata,
        // which XDP programs cannot access.
        world.ethtool(&far, &["tx", "off"]).unwrap();
        world.ethtool(&far, &["txvlan", "off"]).unwrap();
        let host = format!(
            "[[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"up\"\n\
             [[uplink]]\nname = \"up\"\ndevice = \"{near}\"\ndriver = \"af_xdp\"\nmtu = {mtu}\n{}",
            guest.nic_toml("wan", &format!("mtu = {mtu}"))
        );
        let daemon = Daemon::start(rig, &host).unwrap();
        guest.bring_up().unwrap();
        Self { daemon, guest, world, wire, far }
    }

    fn uplink(&self) -> Value {
        self.daemon.json(&["uplink", "show", "up"]).unwrap()
    }

    fn has_program(&self) -> bool {
        run(&["ip", "link", "show", self.wire.near()]).unwrap().contains("xdp")
    }

    fn check(&self, rig: &Rig) {
        assert!(self.guest.namespace.reaches(WORLD));
        let _web = nginx::serve(rig, &self.world, 64 << 20).unwrap();
        let url = format!("http://{WORLD}/file");
        let arguments =
            ["curl", "-sS", "--max-time", "300", "-o", "/dev/null", "-w", "%{size_download}", &url];
        let fetched = self.guest.namespace.run_any(&arguments, 3 * LIMIT).unwrap();
        assert_eq!(fetched.stdout, (64u64 << 20).to_string(), "{fetched:?}");
        let _server = iperf::serve(rig, &self.world).unwrap();
        for direction in [&[][..], &["--reverse"][..]] {
            let report = iperf::measure(&self.guest.namespace, WORLD, 2, direction).unwrap();
            assert!(report.bits_per_second > 0.0, "{direction:?}: {report:?}");
        }
        assert_eq!(self.world.checksum_errors().unwrap(), 0);
        assert_eq!(self.guest.namespace.checksum_errors().unwrap(), 0);
        assert!(self.uplink()["counters"]["rx_bytes"].as_u64().unwrap() > 1 << 20);
    }
}

#[test]
fn guests_reach_the_outside_through_af_xdp() {
    let rig = Rig::new().unwrap();
    let fixture = UplinkSite::new(&rig, 1500);
    fixture.check(&rig);
    let mode = &fixture.uplink()["af_xdp"];
    assert_eq!((&mode["hook"], &mode["zero_copy"]), (&"driver".into(), &false.into()), "{mode}");
    assert_eq!((&mode["chunk_bytes"], &mode["multi_buffer"]), (&2048.into(), &false.into()));
    let output = fixture.daemon.ok(&["uplink", "show", "up"]).unwrap();
    assert!(output.contains("driver, copy, chunks of 2048 bytes"), "{output}");
}

#[test]
fn frames_of_9000_bytes_pass_af_xdp_in_several_chunks() {
    let rig = Rig::new().unwrap();
    let fixture = UplinkSite::new(&rig, 9000);
    fixture.check(&rig);
    let arguments = ["ping", "-n", "-q", "-c", "5", "-i", "0.2", "-M", "do", "-s", "8972", WORLD];
    let pinged = fixture.guest.namespace.run_any(&arguments, LIMIT).unwrap();
    assert!(pinged.is_ok(), "{pinged:?}");
    assert_eq!(fixture.uplink()["af_xdp"]["multi_buffer"], true);
}

#[test]
fn a_killed_daemon_leaves_no_program_and_the_next_one_continues() {
    let rig = Rig::new().unwrap();
    let mut fixture = UplinkSite::new(&rig, 1500);
    assert!(fixture.guest.namespace.reaches(WORLD));
    assert!(fixture.has_program());
    fixture.daemon.kill();
    // The kernel removes the program when the last descriptor is closed, shortly after the process
    // has ended.
    wait_until("a device without a program", LIMIT, || Ok(!fixture.has_program())).unwrap();
    fixture.daemon.restart(&rig).unwrap();
    fixture.daemon.wait_up("uplink", "up").unwrap();
    assert!(fixture.has_program());
    assert!(fixture.guest.namespace.reaches(WORLD));
}

#[test]
fn the_driver_changes_and_a_deleted_device_is_opened_again() {
    let rig = Rig::new().unwrap();
    let fixture = UplinkSite::new(&rig, 1500);
    assert!(fixture.guest.namespace.reaches(WORLD));
    for (driver, is_xdp) in [("af_packet", false), ("af_xdp", true)] {
        fixture.daemon.ok(&["uplink", "set", "up", "--driver", driver]).unwrap();
        fixture.daemon.wait_up("uplink", "up").unwrap();
        assert_eq!(
            (fixture.has_program(), fixture.uplink()["af_xdp"].is_object()),
            (is_xdp, is_xdp)
        );
        assert!(fixture.guest.namespace.reaches(WORLD), "{driver}");
    }
    let near = fixture.wire.near();
    run(&["ip", "link", "delete", near]).unwrap();
    wait_until("the uplink to be reported as failed", LIMIT, || {
        Ok(fixture.daemon.json(&["uplink", "show", "up"])?["condition"]["health"] == "failed")
    })
    .unwrap();
    let _again = Veth::new(near, "far0", &fixture.world).unwrap();
    fixture.world.address("far0", &format!("{WORLD}/24")).unwrap();
    fixture.world.ethtool("far0", &["tx", "off"]).unwrap();
    fixture.daemon.wait_up("uplink", "up").unwrap();
    // The new device has another MAC address.
    fixture
        .guest
        .namespace
        .run(&["ip", "neighbour", "flush", "dev", NamespaceGuest::DEVICE])
        .unwrap();
    assert!(fixture.guest.namespace.reaches(WORLD));
}

/// Addresses of the host on the uplink's device, and addresses of the namespace that contact them.
const HOST: [&str; 2] = ["198.51.100.9", "2001:db8:51::9"];
const ASKING: [&str; 2] = ["198.51.100.10", "2001:db8:51::10"];

#[test]
fn the_host_is_reached_at_its_own_addresses_while_guests_communicate() {
    let rig = Rig::new().unwrap();
    let fixture = UplinkSite::new(&rig, 1500);
    let (near, far) = (fixture.wire.near(), fixture.far.as_str());
    for (host_address, other) in HOST.iter().zip(ASKING) {
        run(&["ip", "address", "add", host_address, "dev", near, "nodad"])
            .or_else(|_| run(&["ip", "address", "add", host_address, "dev", near]))
            .unwrap();
        run(&["ip", "route", "add", other, "dev", near]).unwrap();
        fixture.world.address(far, other).unwrap();
        fixture.world.run(&["ip", "route", "add", host_address, "dev", far, "src", other]).unwrap();
    }
    assert!(HOST.iter().all(|host_address| fixture.world.cannot_reach(host_address).unwrap()));
    assert!(fixture.guest.namespace.reaches(WORLD));
    let set = |value: &str| {
        fixture.daemon.ok(&["uplink", "set", "up", "--host-addresses", value]).unwrap();
    };
    let _server = iperf::serve(&rig, &fixture.world).unwrap();
    let guest = &fixture.guest.namespace;
    let mut stream = iperf::Client::begin(&rig, guest, WORLD, 1, &[]).unwrap();
    set(&HOST.join(","));
    for host_address in HOST {
        assert!(fixture.world.reaches(host_address), "{host_address}");
    }
    // The program was replaced during the stream.
    stream.wait_flow("the stream with the new program").unwrap();
    let report = stream.end().unwrap();
    println!("{} bit/s, {} segments sent again", report.bits_per_second, report.retransmits);
    let output = fixture.daemon.ok(&["uplink", "show", "up"]).unwrap();
    assert!(output.contains(HOST[0]) && output.contains(HOST[1]), "{output}");
    assert_eq!(fixture.uplink()["config"]["host_addresses"], serde_json::json!(HOST));
    let output = fixture.daemon.cli(&["uplink", "set", "up", "--driver", "af_packet"]).unwrap();
    assert!(!output.is_ok() && output.stderr.contains("host_addresses"), "{output:?}");
    fixture.daemon.ok(&["uplink", "set", "up", "--unset", "host_addresses"]).unwrap();
    assert!(fixture.world.cannot_reach(HOST[0]).unwrap());
    assert!(fixture.guest.namespace.reaches(WORLD));
}

#[test]
fn a_device_with_more_queues_is_rejected_with_a_remedy() {
    let rig = Rig::new().unwrap();
    let mut fixture = UplinkSite::new(&rig, 1500);
    let device = rig.device("q");
    let queues = ["numtxqueues", "2", "numrxqueues", "2"];
    run(&[&["ip", "link", "add", &device][..], &queues, &["type", "veth"]].concat()).unwrap();
    let host = format!(
        "[[switch]]\nname = \"s\"\nkind = \"external\"\nuplink = \"more\"\n\
         [[uplink]]\nname = \"more\"\ndevice = \"{device}\"\ndriver = \"af_xdp\"\n"
    );
    let output = fixture.daemon.apply(&host, &[]).unwrap();
    assert!(!output.is_ok() && output.stderr.contains("queues = 2"), "{output:?}");
    run(&["ip", "link", "delete", &device]).unwrap();
}

/// No device here supports flow rules: the kernel's error is reported, and the switch classifies
/// frames in software.
#[test]
fn the_classifier_is_reported_and_is_the_switch_without_flow_rules() {
    let rig = Rig::new().unwrap();
    let mut fixture = UplinkSite::new(&rig, 1500);
    let steering = |fixture: &UplinkSite| fixture.uplink()["steering"].clone();
    let steering_status = steering(&fixture);
    assert_eq!(
        (&steering_status["mode"], &steering_status["queues"]),
        (&"software".into(), &1.into()),
        "{steering_status}"
    );
    assert!(
        steering_status["reason"].as_str().unwrap().contains("has one receive queue"),
        "{steering_status}"
    );
    let (device, world) = (rig.device("q"), fixture.world.name());
    let queues = ["numtxqueues", "3", "numrxqueues", "3"];
    let peer = ["type", "veth", "peer", "name", "far3", "netns", world];
    run(&[&["ip", "link", "add", &device][..], &queues, &peer].concat()).unwrap();
    fixture.world.ethtool("far3", &["tx", "off"]).unwrap();
    fixture.world.run(&["ip", "link", "set", "far3", "up"]).unwrap();
    fixture.world.address("far3", "10.77.1.200/24").unwrap();
    fixture.guest.namespace.address(NamespaceGuest::DEVICE, "10.77.1.7/24").unwrap();
    let nic = fixture.guest.nic_toml("wan", "mac = \"52:54:00:77:00:01\"\nvlan = 7");
    let host = |nic: &str| {
        format!(
            "[[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"up\"\n\
             [[uplink]]\nname = \"up\"\ndevice = \"{device}\"\ndriver = \"af_xdp\"\n\
             queues = 3\n{nic}"
        )
    };
    for nic in [nic.clone(), nic.replace("vlan = 7", "")] {
        let applied = fixture.daemon.apply(&host(&nic), &[]).unwrap();
        assert!(applied.is_ok(), "{applied:?}");
        let steering_status = steering(&fixture);
        assert_eq!(
            (&steering_status["mode"], &steering_status["queues"]),
            (&"software".into(), &3.into()),
            "{steering_status}"
        );
        let reason = "does not support flow rules by destination address (Operation not supported";
        assert!(steering_status["reason"].as_str().unwrap().contains(reason), "{steering_status}");
        let output = fixture.daemon.ok(&["uplink", "show", "up"]).unwrap();
        assert!(output.contains("software: the device does not support flow rules"), "{output}");
    }
    fixture.daemon.wait_up("uplink", "up").unwrap();
    assert!(fixture.guest.namespace.reaches("10.77.1.200"));
    run(&["ip", "link", "delete", &device]).unwrap();
}
