//! External switches whose uplink's frames come and go through AF_XDP sockets.

use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Daemon, LightGuest, Namespace, Rig, Veth, iperf, nginx, run, until};

const WORLD: &str = "10.77.0.200";

/// A guest, a switch whose uplink is one end of a wire, and the world at the other.
struct Outside {
    // Ends the daemon before the devices go.
    daemon: Daemon,
    guest: LightGuest,
    world: Namespace,
    wire: Veth,
}

impl Outside {
    fn new(rig: &Rig, mtu: u16) -> Self {
        let world = Namespace::new(rig, "world").unwrap();
        let guest = LightGuest::new(rig, "guest", 1).unwrap();
        let (near, far) = (rig.device("up"), rig.device("far"));
        let wire = Veth::new(&near, &far, &world).unwrap();
        world.address(&far, &format!("{WORLD}/24")).unwrap();
        world.run(&["ip", "link", "set", &far, "mtu", &mtu.to_string()]).unwrap();
        // A wire has checksums in its frames and tags too; a pair of veth leaves both
        // beside them, where no XDP program sees them.
        world.ethtool(&far, &["tx", "off"]).unwrap();
        world.ethtool(&far, &["txvlan", "off"]).unwrap();
        let host = format!(
            "[[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"up\"\n\
             [[uplink]]\nname = \"up\"\ndevice = \"{near}\"\ndriver = \"af_xdp\"\nmtu = {mtu}\n{}",
            guest.nic_toml("wan", &format!("mtu = {mtu}"))
        );
        let daemon = Daemon::start(rig, &host).unwrap();
        guest.bring_up().unwrap();
        Self { daemon, guest, world, wire }
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
        let words =
            ["curl", "-sS", "--max-time", "30", "-o", "/dev/null", "-w", "%{size_download}", &url];
        assert_eq!(self.guest.namespace.run(&words).unwrap(), (64u64 << 20).to_string());
        let _server = iperf::serve(rig, &self.world).unwrap();
        for direction in [&[][..], &["--reverse"][..]] {
            let report = iperf::measure(&self.guest.namespace, WORLD, 2, direction).unwrap();
            assert!(report.bits_per_second > 1e8, "{direction:?}: {report:?}");
        }
        assert_eq!(self.world.checksum_errors().unwrap(), 0);
        assert_eq!(self.guest.namespace.checksum_errors().unwrap(), 0);
        assert!(self.uplink()["counters"]["rx_bytes"].as_u64().unwrap() > 1 << 20);
    }
}

#[test]
fn guests_reach_the_outside_through_af_xdp() {
    let rig = Rig::new().unwrap();
    let outside = Outside::new(&rig, 1500);
    outside.check(&rig);
    let mode = &outside.uplink()["af_xdp"];
    assert_eq!((&mode["hook"], &mode["zero_copy"]), (&"driver".into(), &false.into()), "{mode}");
    assert_eq!((&mode["chunk_bytes"], &mode["multi_buffer"]), (&2048.into(), &false.into()));
    let shown = outside.daemon.ok(&["uplink", "show", "up"]).unwrap();
    assert!(shown.contains("driver, copy, chunks of 2048 bytes"), "{shown}");
}

#[test]
fn frames_of_9000_bytes_pass_af_xdp_in_several_chunks() {
    let rig = Rig::new().unwrap();
    let outside = Outside::new(&rig, 9000);
    outside.check(&rig);
    let words = ["ping", "-n", "-q", "-c", "5", "-i", "0.2", "-M", "do", "-s", "8972", WORLD];
    let pinged = outside.guest.namespace.run_any(&words, Duration::from_secs(10)).unwrap();
    assert!(pinged.is_ok(), "{pinged:?}");
    assert_eq!(outside.uplink()["af_xdp"]["multi_buffer"], true);
}

#[test]
fn a_killed_daemon_leaves_no_program_and_the_next_one_goes_on() {
    let rig = Rig::new().unwrap();
    let mut outside = Outside::new(&rig, 1500);
    assert!(outside.guest.namespace.reaches(WORLD));
    assert!(outside.has_program());
    outside.daemon.kill();
    assert!(!outside.has_program());
    outside.daemon.restart(&rig).unwrap();
    outside.daemon.wait_up("uplink", "up").unwrap();
    assert!(outside.has_program());
    assert!(outside.guest.namespace.reaches(WORLD));
}

#[test]
fn the_driver_changes_and_a_deleted_device_comes_back() {
    let rig = Rig::new().unwrap();
    let outside = Outside::new(&rig, 1500);
    assert!(outside.guest.namespace.reaches(WORLD));
    for (driver, is_xdp) in [("af_packet", false), ("af_xdp", true)] {
        outside.daemon.ok(&["uplink", "set", "up", "--driver", driver]).unwrap();
        outside.daemon.wait_up("uplink", "up").unwrap();
        assert_eq!(
            (outside.has_program(), outside.uplink()["af_xdp"].is_object()),
            (is_xdp, is_xdp)
        );
        assert!(outside.guest.namespace.reaches(WORLD), "{driver}");
    }
    let near = outside.wire.near();
    run(&["ip", "link", "delete", near]).unwrap();
    until("the uplink to be told missing", Duration::from_secs(10), || {
        Ok(outside.daemon.json(&["uplink", "show", "up"])?["condition"]["health"] == "failed")
    })
    .unwrap();
    let _again = Veth::new(near, "far0", &outside.world).unwrap();
    outside.world.address("far0", &format!("{WORLD}/24")).unwrap();
    outside.world.ethtool("far0", &["tx", "off"]).unwrap();
    outside.daemon.wait_up("uplink", "up").unwrap();
    // The new device has another address.
    outside.guest.namespace.run(&["ip", "neighbour", "flush", "dev", LightGuest::DEVICE]).unwrap();
    assert!(outside.guest.namespace.reaches(WORLD));
}

#[test]
fn a_device_with_more_queues_is_refused_with_what_to_do() {
    let rig = Rig::new().unwrap();
    let mut outside = Outside::new(&rig, 1500);
    let device = rig.device("q");
    let queues = ["numtxqueues", "2", "numrxqueues", "2"];
    run(&[&["ip", "link", "add", &device][..], &queues, &["type", "veth"]].concat()).unwrap();
    let host = format!(
        "[[switch]]\nname = \"s\"\nkind = \"external\"\nuplink = \"more\"\n\
         [[uplink]]\nname = \"more\"\ndevice = \"{device}\"\ndriver = \"af_xdp\"\n"
    );
    let refused = outside.daemon.apply(&host, &[]).unwrap();
    assert!(!refused.is_ok() && refused.stderr.contains("queues = 2"), "{refused:?}");
    run(&["ip", "link", "delete", &device]).unwrap();
}
