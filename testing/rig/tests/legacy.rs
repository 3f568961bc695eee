//! Guests without drivers for virtio: NICs and disks that QEMU emulates, on our switch and our
//! stores, through deaths of the daemon.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_rig::{Daemon, HostedGuest, HostedVms, LightGuest, Rig, iperf, until};

const GUEST: &str = "10.77.0.9";
const NETWORK_PREFIX: u8 = 24;
const MAC: &str = "52:54:00:77:00:09";
const DISK_BYTES: u64 = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(60);

/// A host with a VM that has what `nics` and `disks` name, and a light guest on its switch.
struct Site {
    vms: HostedVms,
    daemon: Daemon,
    peer: LightGuest,
    rig: Rig,
}

impl Site {
    fn new(nics: &str, disks: &str) -> Self {
        let rig = Rig::new().unwrap();
        let vms = HostedVms::of_machines(&rig).unwrap();
        let peer = LightGuest::new(&rig, "peer", 1).unwrap();
        let store = rig.path("store");
        fs::create_dir_all(&store).unwrap();
        let mut text = format!(
            "[host]\nvm_folder = \"{}\"\n[[switch]]\nname = \"lan\"\nkind = \"private\"\n\
             [[store]]\nname = \"s\"\npath = \"{store}\"\n\
             [[nic]]\nname = \"old\"\nswitch = \"lan\"\nbackend = \"legacy\"\nmac = \"{MAC}\"\n\
             vlan = 30\n",
            vms.folder()
        );
        for (name, controller) in [("ide", "ide"), ("sata", "sata")] {
            text += &format!(
                "[[disk]]\nname = \"{name}\"\nstore = \"s\"\nformat = \"vhdx\"\n\
                 size_bytes = {DISK_BYTES}\nserial = \"OF-{name}\"\ncontroller = \"{controller}\"\n"
            );
        }
        text += &peer.nic_toml("lan", "vlan = 30");
        text += &vms.table("old", &format!("nics = [{nics}]\ndisks = [{disks}]"));
        let daemon = Daemon::start(&rig, &text).unwrap();
        peer.bring_up().unwrap();
        Self { vms, daemon, peer, rig }
    }

    fn start(&self) -> HostedGuest {
        let mut guest = self.vms.start(&self.daemon, "old").unwrap();
        // What a bus has is found as soon as its driver is there.
        for module in ["e1000e", "sd_mod", "ata_piix", "ahci"] {
            guest.load(module, "").unwrap();
        }
        guest
    }

    fn connect(&self, guest: &mut HostedGuest) {
        let has_link = "ip link set eth0 up && [ \"$(cat /sys/class/net/eth0/carrier)\" = 1 ]";
        until("the guest's link", PATIENCE, || Ok(guest.run_any(has_link, PATIENCE)?.is_ok()))
            .unwrap();
        guest.address("eth0", &format!("{GUEST}/{NETWORK_PREFIX}")).unwrap();
        assert!(guest.reaches(&self.peer.address()).unwrap(), "{}", self.nic());
    }

    fn nic(&self) -> Value {
        self.daemon.json(&["nic", "show", "old"]).unwrap()
    }

    fn vm(&self) -> Value {
        self.daemon.json(&["vm", "show", "old"]).unwrap()
    }

    fn die_and_return(&mut self) {
        self.daemon.kill();
        self.daemon.restart(&self.rig).unwrap();
    }

    fn events(&self, id: u64) -> usize {
        let events = self.daemon.json(&["event", "list"]).unwrap();
        events.as_array().unwrap().iter().filter(|event| event["id"] == id).count()
    }
}

#[test]
fn a_guest_without_virtio_talks_through_the_switch_before_and_after_a_daemons_death() {
    let mut site = Site::new("\"old\"", "");
    let mut guest = site.start();
    let driver = guest.run("readlink /sys/class/net/eth0/device/driver").unwrap();
    assert!(driver.ends_with("/e1000e"), "{driver}");
    assert_eq!(guest.run("cat /sys/class/net/eth0/address").unwrap(), MAC);
    site.connect(&mut guest);
    let status = site.nic();
    assert_eq!((&status["condition"]["health"], &status["queue_pairs"]), (&"up".into(), &1.into()));

    // The peer's kernel hands over frames of 64 KB; towards the guest they are cut and summed.
    let _server = iperf::serve(&site.rig, &site.peer.namespace).unwrap();
    for direction in ["", "--reverse"] {
        let command =
            format!("iperf3 --client {} --time 2 --json {direction}", site.peer.address());
        let report = iperf::report(&guest.run(&command).unwrap()).unwrap();
        assert!(report.bits_per_second > 1_000_000.0, "{direction}: {report:?}");
    }
    let counters = site.nic()["counters"].clone();
    assert!(counters["software_segmented"].as_u64().unwrap() > 0, "{counters}");
    let dropped = counters["rx_dropped"].as_array().unwrap();
    assert!(dropped.iter().all(|of| of["reason"] != "malformed"), "{counters}");

    let before = site.vm();
    let died = Instant::now();
    site.die_and_return();
    // QEMU before 8.0 does not connect again: the NIC is pulled out and put in.
    until("the NIC to be back", PATIENCE, || Ok(site.nic()["condition"]["health"] == "up"))
        .unwrap();
    eprintln!("from the daemon's death until the NIC is back: {:?}", died.elapsed());
    assert_eq!(site.vm()["process"], before["process"]);
    site.connect(&mut guest);
    until("nothing to wait", PATIENCE, || Ok(site.vm()["waits_for_start"].is_null())).unwrap();
    site.daemon.ok(&["vm", "kill", "old"]).unwrap();
    until("the NIC to be down", PATIENCE, || Ok(site.nic()["condition"]["health"] == "down"))
        .unwrap();
}
