//! Guests without virtio drivers: emulated NICs and disks on Suimon's switch and stores, across
//! crashes of the daemon.

use crate::firmware;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::Value;
use suimon_rig::{Daemon, GuestConsole, HostedVms, NamespaceGuest, Rig, iperf, wait_until};

const GUEST: &str = "10.77.0.9";
const NETWORK_PREFIX: u8 = 24;
const MAC: &str = "52:54:00:77:00:09";
const DISK_BYTES: u64 = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// Host with a VM with these further keys, and a namespace guest on its switch.
struct Site {
    vms: HostedVms,
    daemon: Daemon,
    peer: NamespaceGuest,
    rig: Rig,
}

impl Site {
    fn new(keys: &str) -> Self {
        let rig = Rig::new().unwrap();
        let vms = HostedVms::of_machines(&rig).unwrap();
        let peer = NamespaceGuest::new(&rig, "peer", 1).unwrap();
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
        text += &vms.table("old", keys);
        let daemon = Daemon::start(&rig, &text).unwrap();
        peer.bring_up().unwrap();
        Self { vms, daemon, peer, rig }
    }

    fn start(&self) -> GuestConsole {
        let mut guest = self.vms.start(&self.daemon, "old").unwrap();
        // The guest detects the devices of a bus when the driver is loaded.
        for module in ["e1000e", "sd_mod", "ata_piix", "ahci"] {
            guest.load(module, "").unwrap();
        }
        guest
    }

    fn connect(&self, guest: &mut GuestConsole) {
        let has_link = "ip link set eth0 up && [ \"$(cat /sys/class/net/eth0/carrier)\" = 1 ]";
        wait_until("the guest's link", PATIENCE, || Ok(guest.run_any(has_link, PATIENCE)?.is_ok()))
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

    /// Waits until the daemon has adopted the VM, and asserts that it has the same process. NICs
    /// and disks may work earlier.
    fn wait_adopted(&self, process: &Value) {
        let mut status = Value::Null;
        let result = wait_until("the VM to be adopted", PATIENCE, || {
            status = self.vm();
            ensure!(status["state"] != "stopped", "the VM has ended");
            Ok(status["state"] == "running")
        });
        result.unwrap_or_else(|error| panic!("{error:#}: {status}"));
        assert_eq!(status["process"], *process);
    }

    fn kill_and_restart_daemon(&mut self) {
        self.daemon.kill();
        self.daemon.restart(&self.rig).unwrap();
    }

    /// Runs a command that must fail, and returns its error output.
    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.daemon.cli(arguments).unwrap();
        assert!(!output.is_ok(), "{arguments:?}: {}", output.stdout);
        output.stderr
    }

    /// Returns the texts of the events with this id about the VM.
    fn event_texts(&self, id: u64) -> String {
        let events = self.daemon.json(&["event", "list"]).unwrap();
        let of_kind = |event: &&Value| event["id"] == id && event["subject"] == "vm/old";
        let matching = events.as_array().unwrap().iter().filter(of_kind);
        matching.map(|event| event["text"].to_string()).collect::<Vec<_>>().join("\n")
    }
}

fn a_guest_without_virtio_uses_the_switch_before_and_after_a_kill_of_the_daemon() {
    let mut site = Site::new("nics = [\"old\"]");
    let mut guest = site.start();
    let driver = guest.run("readlink /sys/class/net/eth0/device/driver").unwrap();
    assert!(driver.ends_with("/e1000e"), "{driver}");
    assert_eq!(guest.run("cat /sys/class/net/eth0/address").unwrap(), MAC);
    site.connect(&mut guest);
    let status = site.nic();
    assert_eq!((&status["condition"]["health"], &status["queue_pairs"]), (&"up".into(), &1.into()));

    // The peer's kernel sends frames of 64 KB, which the switch must segment and complete for the
    // guest.
    let _server = iperf::serve(&site.rig, &site.peer.namespace).unwrap();
    // The transfer is limited by bytes, and its duration is not asserted. Up to 4 MB that the
    // sender's kernel still holds at the end are not reported as received.
    for direction in ["", "--reverse"] {
        let command =
            format!("iperf3 --client {} --bytes 8M --json {direction}", site.peer.address());
        let output = guest.run_any(&command, PATIENCE).unwrap();
        let report = iperf::report(&output.stdout).unwrap();
        let received_bytes = report.json["end"]["sum_received"]["bytes"].as_u64().unwrap();
        assert!(received_bytes >= 1 << 20, "{direction}: {report:?}");
    }
    let mut counters = Value::Null;
    let segmented = wait_until("frames segmented by software", PATIENCE, || {
        counters = site.nic()["counters"].clone();
        Ok(counters["software_segmented"].as_u64() > Some(0))
    });
    segmented.unwrap_or_else(|error| panic!("{error:#}: {counters}"));
    let dropped = counters["rx_dropped"].as_array().unwrap();
    assert!(dropped.iter().all(|entry| entry["reason"] != "malformed"), "{counters}");

    let before = site.vm();
    let died = Instant::now();
    site.kill_and_restart_daemon();
    // QEMU before 8.0 does not reconnect, so the daemon unplugs the NIC and plugs it in again.
    wait_until("the NIC to be up", PATIENCE, || Ok(site.nic()["condition"]["health"] == "up"))
        .unwrap();
    eprintln!("from the daemon's death until the NIC is back: {:?}", died.elapsed());
    site.wait_adopted(&before["process"]);
    wait_until("the event of the reconnected NIC", PATIENCE, || {
        Ok(site.event_texts(7020).contains("does not reconnect a legacy NIC"))
    })
    .unwrap();
    site.connect(&mut guest);
    wait_until("no change that waits for a start", PATIENCE, || {
        Ok(site.vm()["waits_for_start"].is_null())
    })
    .unwrap();
    site.daemon.ok(&["vm", "kill", "old"]).unwrap();
    wait_until("the NIC to be down", PATIENCE, || Ok(site.nic()["condition"]["health"] == "down"))
        .unwrap();
}

fn emulated_disks_keep_written_data_over_kills_of_the_daemon() {
    let mut site = Site::new("disks = [\"ide\", \"sata\"]");
    let mut guest = site.start();
    // The devices are named in the order in which the drivers were loaded.
    for (device, bus) in [("sda", "ata_piix"), ("sdb", "ahci")] {
        let size = guest.run(&format!("cat /sys/block/{device}/size")).unwrap();
        assert_eq!(size, (DISK_BYTES / 512).to_string());
        let device_path = guest.run(&format!("cd /sys/block/{device}/device && pwd -P")).unwrap();
        let slot = device_path.split('/').find(|part| part.starts_with("0000:")).unwrap();
        let driver = guest.run(&format!("readlink /sys/bus/pci/devices/{slot}/driver")).unwrap();
        assert!(driver.ends_with(bus), "{device}: {device_path}: {driver}");
    }
    only_its_vm_reaches(&site, "ide");
    let process = site.vm()["process"].clone();
    // Writes each block with its number to both disks; an error ends the loop.
    let writer = "(n=0; while [ ! -e /tmp/stop ]; do for d in sda sdb; do echo $n | \
                  dd of=/dev/$d bs=4096 seek=$n conv=sync,fsync 2>/dev/null || \
                  touch /tmp/failed /tmp/stop; done; n=$((n + 1)); echo $n >/tmp/new; \
                  mv /tmp/new /tmp/written; done; touch /tmp/ended) &";
    guest.run(writer).unwrap();
    wait_until("the guest to write", PATIENCE, || {
        Ok(guest.run_any("[ -s /tmp/written ]", PATIENCE)?.is_ok())
    })
    .unwrap();
    for _ in 0..3 {
        let written = guest.run("cat /tmp/written").unwrap();
        let died = Instant::now();
        site.kill_and_restart_daemon();
        wait_until("further writes of the guest", PATIENCE, || {
            Ok(guest.run("cat /tmp/written")? != written)
        })
        .unwrap();
        guest.run("[ ! -e /tmp/failed ]").unwrap();
        eprintln!("from the daemon's death to the guest's next write: {:?}", died.elapsed());
        site.wait_adopted(&process);
    }
    // Verifies all acknowledged blocks since the first, each once.
    let verify = "touch /tmp/stop; while [ ! -e /tmp/ended ]; do sleep 0.1; done; \
                  [ ! -e /tmp/failed ] || exit 1; m=$(cat /tmp/written); echo 3 >/proc/sys/vm/drop_caches; \
                  seq 0 $((m - 1)) >/tmp/all; for d in sda sdb; do dd if=/dev/$d bs=4096 count=$m \
                  2>/dev/null | tr -d '\\0' | cmp - /tmp/all || exit 1; done; echo $m";
    let output = guest.run_any(verify, PATIENCE).unwrap();
    assert!(output.is_ok(), "blocks that were written: {output:?}");
    eprintln!("blocks verified on each disk: {}", output.stdout);
    limits_hold(&site, &mut guest);
    check_start_and_stop(&site);
}

/// Asserts that the socket of an emulated disk is accessible to the daemon's user and the VM's
/// group only.
fn only_its_vm_reaches(site: &Site, disk: &str) {
    let socket = fs::metadata(format!("{}/old/d-{disk}", site.vms.folder())).unwrap();
    let group = site.vm()["user"].as_u64().unwrap();
    assert_eq!((socket.mode() & 0o777, u64::from(socket.gid()), socket.uid()), (0o660, group, 0));
}

/// Checks that a maximum applies to an emulated disk.
fn limits_hold(site: &Site, guest: &mut GuestConsole) {
    site.daemon.ok(&["disk", "set", "ide", "--qos-max-iops", "20"]).unwrap();
    let started_at = Instant::now();
    guest.run("dd if=/dev/zero of=/dev/sda bs=4096 count=100 oflag=direct").unwrap();
    let took = started_at.elapsed();
    // A lower bound, which load on the machine cannot violate. Requests of one second may be
    // dispatched immediately.
    assert!(took >= Duration::from_secs(3), "100 requests at 20 a second took {took:?}");
    let disk = site.daemon.json(&["disk", "show", "ide"]).unwrap();
    assert_eq!(disk["nbd"]["connections"][0]["transport"], "unix", "{disk}");
}

/// Checks that IDE disks cannot be hot-plugged or hot-unplugged.
fn check_start_and_stop(site: &Site) {
    let message = site.refusal(&["vm", "set", "old", "--disks", "sata"]);
    assert!(message.contains("suimon vm stop old"), "{message}");
    let message = site.refusal(&["disk", "set", "ide", "--controller", "virtio"]);
    assert!(message.contains("suimon vm stop old"), "{message}");
    let create = "disk create late --store s --format raw --size-bytes 1MiB --controller ide";
    site.daemon.ok(&create.split(' ').collect::<Vec<_>>()).unwrap();
    site.daemon.ok(&["vm", "set", "old", "--disks", "ide,sata,late"]).unwrap();
    wait_until("the event of the disk that cannot be hot-plugged", PATIENCE, || {
        Ok(site.event_texts(7020).contains("cannot be hot-plugged"))
    })
    .unwrap();
    // The event is recorded before the status changes.
    let mut status = Value::Null;
    let result = wait_until("the disk that needs a start in the status", PATIENCE, || {
        status = site.vm();
        Ok(status["waits_for_start"][0] == "disk/late")
    });
    result.unwrap_or_else(|error| panic!("{error:#}: {status}"));
    site.daemon.ok(&["vm", "set", "old", "--disks", "ide,sata"]).unwrap();
    site.daemon.ok(&["vm", "kill", "old"]).unwrap();
    site.daemon.ok(&["vm", "set", "old", "--disks", "sata"]).unwrap();
    let xml = site.daemon.ok(&["vm", "xml", "old"]).unwrap();
    assert!(xml.contains("bus='sata'") && !xml.contains("bus='ide'"), "{xml}");
}

#[test]
fn a_bios_boots_from_an_ide_disk_of_suimon() {
    let site = Site::new("nics = [\"old\"]");
    let mut bytes = firmware::boot_sector();
    bytes.resize(1 << 20, 0);
    fs::write(format!("{}/boot.raw", site.rig.path("store")), &bytes).unwrap();
    let create = "disk create boot --store s --format raw --controller ide";
    site.daemon.ok(&create.split(' ').collect::<Vec<_>>()).unwrap();
    let create = "vm create bare --memory-bytes 64MiB --disks boot";
    site.daemon.ok(&create.split(' ').collect::<Vec<_>>()).unwrap();
    site.daemon.ok(&["vm", "start", "bare"]).unwrap();
    let log = format!("{}/bare/console.log", site.vms.folder());
    let has_word =
        || fs::read_to_string(&log).is_ok_and(|content| content.contains(firmware::WORD));
    wait_until("greeting of the boot sector", PATIENCE, || Ok(has_word())).unwrap();
}

mod full {
    #[test]
    fn a_guest_without_virtio_uses_the_switch_before_and_after_a_kill_of_the_daemon() {
        super::a_guest_without_virtio_uses_the_switch_before_and_after_a_kill_of_the_daemon();
    }

    #[test]
    fn emulated_disks_keep_written_data_over_kills_of_the_daemon() {
        super::emulated_disks_keep_written_data_over_kills_of_the_daemon();
    }
}
