//! External and internal switches: a namespace behind an uplink, and the host behind its NIC.

use std::time::Duration;

use suimon_rig::{
    Daemon, HostDevice, Namespace, NamespaceGuest, Rig, Veth, iperf, nginx, run, run_any,
};

/// Deadline of every condition and command. The machine may be loaded.
const LIMIT: Duration = Duration::from_secs(120);

/// Switch whose uplink leads to a namespace, which represents the outside network.
struct UplinkSite {
    // Declared first, so that the daemon ends before the devices are removed.
    daemon: Daemon,
    guest: NamespaceGuest,
    world: Namespace,
    _wire: Option<Veth>,
}

impl UplinkSite {
    const ADDRESS: &'static str = "10.77.0.200";

    fn over_a_packet_socket(rig: &Rig) -> Self {
        let world = Namespace::new(rig, "world").unwrap();
        let guest = NamespaceGuest::new(rig, "guest", 1).unwrap();
        let (near, far) = (rig.device("up"), rig.device("far"));
        let wire = Veth::new(&near, &far, &world).unwrap();
        world.address(&far, &format!("{}/24", Self::ADDRESS)).unwrap();
        let daemon = Daemon::start(rig, &Self::host(&guest, &near, "af_packet")).unwrap();
        guest.bring_up().unwrap();
        Self { daemon, guest, world, _wire: Some(wire) }
    }

    fn over_a_tap(rig: &Rig) -> Self {
        let world = Namespace::new(rig, "world").unwrap();
        let guest = NamespaceGuest::new(rig, "guest", 1).unwrap();
        let device = rig.device("tap");
        let daemon = Daemon::start(rig, &Self::host(&guest, &device, "tap")).unwrap();
        guest.bring_up().unwrap();
        run(&["ip", "link", "set", &device, "netns", world.name()]).unwrap();
        world.address(&device, &format!("{}/24", Self::ADDRESS)).unwrap();
        Self { daemon, guest, world, _wire: None }
    }

    fn host(guest: &NamespaceGuest, device: &str, driver: &str) -> String {
        format!(
            "[[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"up\"\n\
             [[uplink]]\nname = \"up\"\ndevice = \"{device}\"\ndriver = \"{driver}\"\n{}",
            guest.nic_toml("wan", "")
        )
    }

    fn check(&self, rig: &Rig) {
        assert!(self.guest.namespace.reaches(Self::ADDRESS));
        let _web = nginx::serve(rig, &self.world, 64 << 20).unwrap();
        let url = format!("http://{}/file", Self::ADDRESS);
        let arguments =
            ["curl", "-sS", "--max-time", "300", "-o", "/dev/null", "-w", "%{size_download}", &url];
        let fetched = self.guest.namespace.run_any(&arguments, 3 * LIMIT).unwrap();
        assert_eq!(fetched.stdout, (64u64 << 20).to_string(), "{fetched:?}");
        let _server = iperf::serve(rig, &self.world).unwrap();
        for direction in [&[][..], &["--reverse"][..]] {
            let report =
                iperf::measure(&self.guest.namespace, Self::ADDRESS, 2, direction).unwrap();
            assert!(report.bits_per_second > 0.0, "{direction:?}: {report:?}");
        }
        assert_eq!(self.world.checksum_errors().unwrap(), 0);
        assert_eq!(self.guest.namespace.checksum_errors().unwrap(), 0);
        let status = self.daemon.json(&["uplink", "show", "up"]).unwrap();
        assert_eq!(status["switch"], "wan");
        assert!(status["counters"]["rx_bytes"].as_u64().unwrap() > 1 << 20, "{status}");
    }
}

#[test]
fn guests_reach_the_outside_through_a_packet_socket() {
    let rig = Rig::new().unwrap();
    let fixture = UplinkSite::over_a_packet_socket(&rig);
    fixture.check(&rig);
}

#[test]
fn guests_reach_the_outside_through_a_tap() {
    let rig = Rig::new().unwrap();
    let fixture = UplinkSite::over_a_tap(&rig);
    fixture.check(&rig);
}

#[test]
fn an_uplink_that_loses_its_carrier_is_reported_and_recovers() {
    let rig = Rig::new().unwrap();
    let fixture = UplinkSite::over_a_packet_socket(&rig);
    assert!(fixture.guest.namespace.reaches(UplinkSite::ADDRESS));
    let wire = fixture._wire.as_ref().unwrap();
    run(&["ip", "link", "set", wire.near(), "down"]).unwrap();
    suimon_rig::wait_until("uplink down", LIMIT, || {
        Ok(fixture.daemon.json(&["uplink", "show", "up"])?["condition"]["health"] != "up")
    })
    .unwrap();
    run(&["ip", "link", "set", wire.near(), "up"]).unwrap();
    fixture.daemon.wait_up("uplink", "up").unwrap();
    assert!(fixture.guest.namespace.reaches(UplinkSite::ADDRESS));
    // Events are recorded after the status changes.
    for id in [4004, 4005] {
        suimon_rig::wait_until(&format!("event {id}"), LIMIT, || {
            let events = fixture.daemon.json(&["event", "list"])?;
            Ok(events.as_array().is_some_and(|events| events.iter().any(|event| event["id"] == id)))
        })
        .unwrap();
    }
}

#[test]
fn an_uplink_takes_the_next_device_of_its_name() {
    let rig = Rig::new().unwrap();
    let fixture = UplinkSite::over_a_packet_socket(&rig);
    assert!(fixture.guest.namespace.reaches(UplinkSite::ADDRESS));
    let name = fixture._wire.as_ref().unwrap().near().to_owned();
    let (old, far) = (rig.device("old"), rig.device("far"));
    run(&["ip", "link", "set", &name, "down"]).unwrap();
    run(&["ip", "link", "set", &name, "name", &old]).unwrap();
    suimon_rig::wait_until("uplink failed", LIMIT, || {
        let condition = fixture.daemon.json(&["uplink", "show", "up"])?["condition"].clone();
        Ok(condition["reason"].as_str().is_some_and(|text| text.contains(&name)))
    })
    .unwrap();
    run(&["ip", "link", "set", &old, "up"]).unwrap();
    let _next = Veth::new(&name, &far, &fixture.world).unwrap();
    // Moves the address to the new device.
    let address = format!("{}/24", UplinkSite::ADDRESS);
    for line in fixture.world.run(&["ip", "-o", "-4", "address"]).unwrap().lines() {
        let device = line.split_whitespace().nth(1).unwrap();
        if line.contains(&address) {
            fixture.world.run(&["ip", "address", "del", &address, "dev", device]).unwrap();
        }
    }
    fixture.world.address(&far, &address).unwrap();
    fixture.daemon.wait_up("uplink", "up").unwrap();
    assert!(fixture.guest.namespace.reaches(UplinkSite::ADDRESS));
    let events = fixture.daemon.json(&["event", "list", "--id", "4006"]).unwrap();
    let text = events[0]["text"].as_str().unwrap_or_default().to_owned();
    assert!(text.contains(&format!("renamed to {old}")), "{events}");
    run(&["ip", "link", "delete", &old]).unwrap();
}

#[test]
fn the_host_is_on_its_internal_switch() {
    let rig = Rig::new().unwrap();
    let guest = NamespaceGuest::new(&rig, "guest", 1).unwrap();
    let host_nic = HostDevice::new(&rig);
    let device = host_nic.name();
    let host = format!(
        "[[switch]]\nname = \"inside\"\nkind = \"internal\"\nhost_device = \"{device}\"\n{}",
        guest.nic_toml("inside", "")
    );
    let daemon = Daemon::start(&rig, &host).unwrap();
    guest.bring_up().unwrap();
    host_nic.address("10.77.0.254", "10.77.0.1").unwrap();
    assert!(guest.namespace.reaches("10.77.0.254"));
    daemon.ok(&["nic", "delete", "guest"]).unwrap();
    daemon.ok(&["switch", "delete", "inside"]).unwrap();
    let output = run_any(&["ip", "link", "show", device], LIMIT).unwrap();
    assert!(!output.is_ok(), "the host's NIC stayed after its switch was deleted");
}
