//! Guests whose disks' store is full: writes to virtio disks are queued, and VMs with IDE and SATA
//! disks are paused. No guest gets an error.

use std::fs;
use std::time::Duration;

use anyhow::ensure;
use serde_json::Value;
use suimon_rig::{Daemon, GuestConsole, HostedVms, Mounted, Rig, run, wait_until};

const PATIENCE: Duration = Duration::from_secs(300);
const QUEUED_WITHIN: Duration = Duration::from_secs(60);
const MIB: usize = 1 << 20;
/// Number of 64 KiB blocks written to each disk. All of them fit into the store.
const BLOCKS: u64 = 64;
/// Disks: name, format, controller, and device in the guest.
const DISKS: [(&str, &str, &str, &str); 3] =
    [("v", "vhd", "virtio", "vda"), ("s", "raw", "sata", "sdb"), ("i", "vhdx", "ide", "sda")];

struct Site {
    /// Dropping this ends the VMs.
    _vms: HostedVms,
    daemon: Daemon,
    guest: GuestConsole,
    store: Mounted,
    rig: Rig,
}

impl Site {
    fn new() -> Self {
        let rig = Rig::new().unwrap();
        let vms = HostedVms::of_machines(&rig).unwrap();
        let store = Mounted::tmpfs("32m", &rig.path("store")).unwrap();
        let mut host = format!(
            "[host]\nvm_folder = \"{}\"\n[[store]]\nname = \"s\"\npath = \"{}\"\n",
            vms.folder(),
            store.path()
        );
        for (name, format, controller, _) in DISKS {
            host += &format!(
                "[[disk]]\nname = \"{name}\"\nstore = \"s\"\nformat = \"{format}\"\n\
                 kind = \"dynamic\"\nsize_bytes = \"64 MiB\"\ncontroller = \"{controller}\"\n"
            );
        }
        host += &vms.table("old", "disks = [\"v\", \"s\", \"i\"]");
        let daemon = Daemon::start(&rig, &host).unwrap();
        let mut guest = vms.start(&daemon, "old").unwrap();
        // The guest detects the devices of a bus when the driver is loaded.
        for module in ["virtio_blk", "sd_mod", "ata_piix", "ahci"] {
            guest.load(module, "").unwrap();
        }
        Self { _vms: vms, daemon, guest, store, rig }
    }

    fn ballast(&self) -> String {
        format!("{}/ballast", self.store.path())
    }

    /// Fills the store up to `remaining` free bytes.
    fn fill(&self, remaining: usize) {
        // The daemon's report may be outdated, so the file system is queried.
        let output = run(&["stat", "--file-system", "--format=%a %S", self.store.path()]).unwrap();
        let free: usize =
            output.split_whitespace().map(|number| number.parse::<usize>().unwrap()).product();
        let size = free.saturating_sub(remaining);
        fs::write(self.ballast(), vec![1; size]).unwrap();
    }

    fn free(&self) {
        fs::remove_file(self.ballast()).unwrap();
    }

    /// Starts to write a disk in the guest, which stores the exit code in a file.
    fn begin_writing(&mut self, device: &str, pattern: &str) {
        let command = format!(
            "rm -f /tmp/{device}; (sleep 2; yes {pattern} | dd of=/dev/{device} bs=64k \
             count={BLOCKS} iflag=fullblock oflag=direct conv=fsync 2>/tmp/{device}.log; \
             echo $? >/tmp/{device}) >/dev/null 2>&1 &"
        );
        self.guest.run(&command).unwrap();
    }

    fn end_writing(&mut self, device: &str) {
        let guest = &mut self.guest;
        let result = wait_until("the guest to have written", PATIENCE, || {
            Ok(guest.run_any(&format!("[ -s /tmp/{device} ]"), PATIENCE)?.is_ok())
        });
        let log = self.guest.run(&format!("cat /tmp/{device}.log")).unwrap();
        result.unwrap_or_else(|error| panic!("{error:#}: {log}"));
        assert_eq!(self.guest.run(&format!("cat /tmp/{device}")).unwrap(), "0", "{log}");
    }

    fn check(&mut self, device: &str, pattern: &str) {
        let bytes = BLOCKS * (64 << 10);
        let command = format!(
            "dd if=/dev/{device} bs=64k count={BLOCKS} iflag=direct 2>/dev/null >/tmp/found; \
             yes {pattern} | head -c {bytes} | cmp - /tmp/found && rm /tmp/found"
        );
        self.guest.run(&command).unwrap();
    }

    fn disk(&self, name: &str) -> Value {
        self.daemon.json(&["disk", "show", name]).unwrap()
    }

    fn vm(&self) -> Value {
        self.daemon.json(&["vm", "show", "old"]).unwrap()
    }

    fn wait_vm(&self, condition: &str, is: impl Fn(&Value) -> bool) {
        let mut status = Value::Null;
        let result = wait_until(condition, PATIENCE, || {
            status = self.vm();
            ensure!(status["state"] != "stopped", "the VM has ended");
            Ok(is(&status))
        });
        result.unwrap_or_else(|error| panic!("{error:#}: {status}"));
    }

    fn wait_paused_for_space(&self) {
        self.wait_vm("the VM to wait for space", |vm| {
            vm["state"] == "paused"
                && vm["reason"].as_str().is_some_and(|reason| reason.contains("store/s"))
        });
    }

    fn events(&self, id: u64) -> usize {
        let events = self.daemon.json(&["event", "list"]).unwrap();
        events.as_array().unwrap().iter().filter(|event| event["id"] == id).count()
    }
}

/// Writes to a virtio disk are queued, other requests succeed, and the writes complete when there
/// is space.
fn virtio(site: &mut Site, hold: Duration) {
    site.fill(2 * MIB);
    site.begin_writing("vda", "v");
    let mut status = Value::Null;
    wait_until("queued writes", PATIENCE, || {
        status = site.disk("v");
        Ok(status["full"]["queued_requests"].as_u64() > Some(0))
    })
    .unwrap_or_else(|error| panic!("{error:#}: {status}"));
    assert_eq!(status["state"], "full", "{status}");
    assert!(status["reason"].as_str().unwrap().contains("store s has been full"), "{status}");
    assert!(site.daemon.ok(&["disk", "list"]).unwrap().contains("full"));
    wait_until("an event", PATIENCE, || Ok(site.events(6150) > 0)).unwrap();
    std::thread::sleep(hold);
    // The guest runs, and can read and rewrite allocated blocks.
    let command = "dd if=/dev/vda bs=64k count=1 iflag=direct of=/tmp/block && \
                 dd if=/tmp/block bs=64k of=/dev/vda oflag=direct conv=notrunc && [ ! -e /tmp/vda ]";
    site.guest.run(command).unwrap();
    let flows = site.daemon.json(&["qos", "flows"]).unwrap();
    let flows = flows.as_array().unwrap();
    let flow = flows.iter().find(|flow| flow["disk"] == "v").unwrap();
    assert_eq!(flow["last_5_s"]["limited_by"][0]["factor"], "store-full", "{flow}");
    site.free();
    site.end_writing("vda");
    site.check("vda", "v");
    wait_until("space to be reported", PATIENCE, || Ok(site.disk("v")["state"] == "ready"))
        .unwrap();
    assert_eq!(site.disk("v")["counters"]["writes"]["errors"], 0);
}

/// A VM with an emulated disk is paused while the store is full, and continues when there is space.
fn emulated(site: &mut Site, disk: &str, device: &str, hold: Duration) {
    let before = (site.events(6154), site.events(6155));
    site.fill(2 * MIB);
    site.begin_writing(device, disk);
    site.wait_paused_for_space();
    std::thread::sleep(hold);
    site.wait_paused_for_space();
    assert!(site.events(6154) > before.0);
    site.free();
    site.end_writing(device);
    site.check(device, disk);
    // Reported after the VM has run for 10 s.
    wait_until("the VM to be reported as continued", PATIENCE, || Ok(site.events(6155) > before.1))
        .unwrap();
    site.wait_vm("the VM to run", |vm| vm["state"] == "running" && vm["reason"].is_null());
}

/// Checks that a VM paused by the user remains paused, even after a restart of the daemon.
fn check_user_pause(site: &mut Site, disk: &str, device: &str) {
    site.fill(0);
    // An unallocated range of the same disk.
    let write = format!(
        "rm -f /tmp/more; (sleep 2; dd if=/dev/zero of=/dev/{device} bs=64k count=16 seek=512 oflag=direct; \
         echo $? >/tmp/more) >/dev/null 2>&1 &"
    );
    site.guest.run(&write).unwrap();
    site.wait_paused_for_space();
    site.daemon.ok(&["vm", "pause", "old"]).unwrap();
    site.daemon.kill();
    site.free();
    site.daemon.restart(&site.rig).unwrap();
    site.wait_vm("the VM to be adopted", |vm| vm["state"] == "paused");
    std::thread::sleep(Duration::from_secs(12));
    assert_eq!(site.vm()["state"], "paused", "{disk}");
    site.daemon.ok(&["vm", "resume", "old"]).unwrap();
    let guest = &mut site.guest;
    wait_until("the guest to have written", PATIENCE, || {
        Ok(guest.run_any("[ -s /tmp/more ]", PATIENCE)?.is_ok())
    })
    .unwrap();
    assert_eq!(site.guest.run("cat /tmp/more").unwrap(), "0");
}

/// Checks that a VM with queued writes can be killed immediately.
fn ended(site: &mut Site) {
    site.fill(0);
    let write = "(sleep 2; dd if=/dev/zero of=/dev/vda bs=64k count=16 seek=512 oflag=direct) \
                 </dev/null >/tmp/last 2>&1 &";
    site.guest.run(write).unwrap();
    let queued = wait_until("queued writes", QUEUED_WITHIN, || {
        Ok(site.disk("v")["full"]["queued_requests"].as_u64() > Some(0))
    });
    if let Err(error) = queued {
        let log = site.guest.run("cat /tmp/last; dmesg | tail").unwrap();
        panic!("{error:#}: {}\n{}\n{log}", site.disk("v"), site.vm());
    }
    site.daemon.ok(&["vm", "kill", "old"]).unwrap();
    wait_until("no queued requests", PATIENCE, || {
        Ok(site.disk("v")["full"]["queued_requests"].as_u64().unwrap_or(0) == 0)
    })
    .unwrap();
    site.free();
}

fn guests_wait_for_space(hold: Duration) {
    let mut site = Site::new();
    virtio(&mut site, hold);
    for (disk, _, controller, device) in DISKS {
        if controller != "virtio" {
            emulated(&mut site, disk, device, hold);
            check_user_pause(&mut site, disk, device);
        }
    }
    let errors = site.guest.run("dmesg | grep -i 'i/o error' || true").unwrap();
    assert_eq!(errors, "", "{errors}");
    assert!(site.daemon.stop().unwrap().success());
    let vhdx = format!("{}/i.vhdx", site.store.path());
    run(&["qemu-img", "check", "-f", "vhdx", &vhdx]).unwrap();
    let vhd = format!("{}/v.vhd", site.store.path());
    run(&["qemu-img", "info", "-f", "vpc", &vhd]).unwrap();
}

fn a_vm_with_queued_writes_is_ended() {
    let mut site = Site::new();
    ended(&mut site);
    assert!(site.daemon.stop().unwrap().success());
}

mod full {
    use super::*;

    /// Holds the store full for longer than the 30 s after which a guest's kernel abandons an IDE
    /// or SATA request.
    #[test]
    fn guests_wait_for_space_for_minutes() {
        guests_wait_for_space(Duration::from_secs(300));
    }

    #[test]
    fn a_vm_with_queued_writes_is_ended() {
        super::a_vm_with_queued_writes_is_ended();
    }
}
