//! QEMU's guest agent in a real guest: its information, shutdown through it, and
//! file-system-consistent snapshots with it.

use std::fs;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{
    Daemon, GuestConsole, HostedVms, Rig, run, system_program, wait_for_value, wait_until,
};

const GUEST: &str = "10.79.0.9/24";
const PATIENCE: Duration = Duration::from_secs(120);

/// Command that starts the agent on its port, after creating the program with which the agent turns
/// the guest off.
const START_AGENT: &str = "mkdir -p /sbin /var/log; \
    printf '#!/bin/sh\\npoweroff -f\\n' >/sbin/shutdown; chmod +x /sbin/shutdown; \
    port=$(grep -lx org.qemu.guest_agent.0 /sys/class/virtio-ports/*/name); \
    qemu-ga -m virtio-serial -p /dev/$(basename $(dirname $port)) -t /tmp -f /tmp/agent.pid \
    -l /tmp/agent.log >/dev/null 2>&1 &";

/// Host with a VM that has a NIC and a disk, and in which the agent can be started.
struct Site {
    daemon: Daemon,
    vms: HostedVms,
    rig: Rig,
}

impl Site {
    fn new() -> Self {
        let rig = Rig::new().unwrap();
        let programs = ["qemu-ga", "mkfs.ext4"].map(|name| system_program(name).unwrap());
        let vms = HostedVms::with(&rig, &programs).unwrap();
        let store = rig.path("store");
        fs::create_dir_all(&store).unwrap();
        let text = format!(
            "[host]\nvm_folder = \"{}\"\n[[switch]]\nname = \"lan\"\nkind = \"private\"\n\
             [[store]]\nname = \"s\"\npath = \"{store}\"\n[[nic]]\nname = \"web\"\n\
             switch = \"lan\"\nbackend = \"vhost-user\"\nmac = \"52:54:00:79:00:01\"\n\
             [[disk]]\nname = \"web\"\nstore = \"s\"\nformat = \"vhdx\"\nsize_bytes = 67108864\n\
             nbd = {{ socket = \"{}\" }}\n{}",
            vms.folder(),
            rig.path("nbd.sock"),
            vms.table("web", "nics = [\"web\"]\ndisks = [\"web\"]")
        );
        let daemon = Daemon::start(&rig, &text).unwrap();
        Self { daemon, vms, rig }
    }

    fn show(&self) -> Value {
        self.daemon.json(&["vm", "show", "web"]).unwrap()
    }

    /// Runs a command that must fail, and returns its error output.
    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.daemon.cli(arguments).unwrap();
        assert!(!output.is_ok(), "{arguments:?}: {}", output.stdout);
        output.stderr
    }

    /// Returns the information of the guest agent. The daemon waits up to 3 s for a reply, which a
    /// guest with little CPU time may exceed several times.
    fn guest_info(&self) -> Value {
        wait_for_value("a reply of the agent", PATIENCE, || {
            self.daemon.json(&["vm", "guest", "web"]).map(Some)
        })
        .unwrap()
    }

    /// Starts a guest with an agent and an ext4 file system of its disk at `/mnt`.
    fn start(&self) -> GuestConsole {
        let mut guest = self.vms.start(&self.daemon, "web").unwrap();
        guest.load("virtio_blk", "").unwrap();
        assert_eq!(self.show()["agent"], false);
        assert!(self.refusal(&["vm", "guest", "web"]).contains("qemu-guest-agent"));
        guest.load("virtio_console", "").unwrap();
        guest.run(START_AGENT).unwrap();
        wait_until("the agent to be detected", PATIENCE, || Ok(self.show()["agent"] == true))
            .unwrap();
        guest.run("mkfs.ext4 -q /dev/vda && mkdir /mnt && mount -t ext4 /dev/vda /mnt").unwrap();
        guest
    }
}

/// Returns the output of `dumpe2fs` about the file system in a file.
fn file_system(raw: &str) -> String {
    run(&["dumpe2fs", "-h", raw]).unwrap()
}

fn an_agent_reports_its_guest_and_shuts_it_down() {
    let site = Site::new();
    let mut guest = site.start();
    guest.address("eth0", GUEST).unwrap();
    guest.run("hostname web-guest").unwrap();
    let guest_info = site.guest_info();
    assert_eq!(guest_info["host_name"], "web-guest");
    assert_eq!(guest_info["kernel"], guest.run("uname -r").unwrap());
    let interfaces = guest_info["interfaces"].as_array().unwrap();
    let nic = interfaces.iter().find(|interface| interface["name"] == "eth0").unwrap();
    assert_eq!(nic["mac"], "52:54:00:79:00:01");
    assert!(nic["addresses"].as_array().unwrap().contains(&GUEST.into()), "{nic}");
    let output = wait_for_value("a reply of the agent", PATIENCE, || {
        site.daemon.ok(&["vm", "guest", "web"]).map(Some)
    })
    .unwrap();
    assert!(output.contains("web-guest") && output.contains(GUEST), "{output}");

    // Without modules for its power button, this guest can be turned off by its agent only.
    site.daemon.ok(&["vm", "stop", "web", "--by", "agent", "--seconds", "200"]).unwrap();
    assert_eq!(site.show()["state"], "stopped");
    assert_eq!(site.show()["reason"], Value::Null, "an intended stop has no reason");
}

fn a_guest_that_is_frozen_writes_nothing_until_it_is_thawed() {
    let mut site = Site::new();
    let mut guest = site.start();
    let write = |guest: &mut GuestConsole| {
        guest
            .run("rm -f /tmp/done; (echo x >/mnt/new; sync; touch /tmp/done) >/dev/null &")
            .unwrap();
    };
    let wrote =
        |guest: &mut GuestConsole| guest.run_any("[ -e /tmp/done ]", PATIENCE).unwrap().is_ok();
    site.daemon.ok(&["vm", "freeze", "web", "--seconds", "600"]).unwrap();
    assert!(site.show()["frozen_s"].as_u64().unwrap() > 500);
    assert_eq!(site.guest_info()["frozen"], true);
    write(&mut guest);
    std::thread::sleep(Duration::from_secs(2));
    assert!(!wrote(&mut guest), "a guest that is frozen has written");
    site.daemon.ok(&["vm", "thaw", "web"]).unwrap();
    wait_until("the guest to write", PATIENCE, || Ok(wrote(&mut guest))).unwrap();

    // The daemon is killed before it thaws the guest: the next daemon does.
    site.daemon.ok(&["vm", "freeze", "web", "--seconds", "600"]).unwrap();
    write(&mut guest);
    site.daemon.kill();
    std::thread::sleep(Duration::from_secs(1));
    assert!(!wrote(&mut guest));
    site.daemon.restart(&site.rig).unwrap();
    wait_until("the guest to write", PATIENCE, || Ok(wrote(&mut guest))).unwrap();
    wait_until("the thawed state to be reported", PATIENCE, || {
        Ok(site.show()["frozen_s"].is_null())
    })
    .unwrap();

    // The guest is thawed when the time limit has expired.
    site.daemon.ok(&["vm", "freeze", "web", "--seconds", "1"]).unwrap();
    write(&mut guest);
    wait_until("the guest to write", PATIENCE, || Ok(wrote(&mut guest))).unwrap();
}

fn a_snapshot_of_a_guest_that_was_frozen_needs_no_recovery() {
    let site = Site::new();
    let mut guest = site.start();
    // A mounted file system is marked as needing recovery.
    guest.run("sync").unwrap();
    let raw = site.rig.path("raw");
    let uri = format!("nbd+unix:///web?socket={}", site.rig.path("nbd.sock"));
    run(&["nbdcopy", &uri, &raw]).unwrap();
    assert!(file_system(&raw).contains("needs_recovery"), "{}", file_system(&raw));
    // The data is in the guest's page cache, and not yet on the disk.
    guest.run("sync; echo kept >/mnt/file").unwrap();
    site.daemon.ok(&["disk", "snapshot", "web", "second.vhdx", "--freeze"]).unwrap();
    assert!(site.show()["frozen_s"].is_null());
    let snapshot = site.rig.path("store/web.vhdx");
    run(&["qemu-img", "convert", "-U", "-f", "vhdx", "-O", "raw", &snapshot, &raw]).unwrap();
    let frozen = file_system(&raw);
    assert!(!frozen.contains("needs_recovery"), "{frozen}");
    assert_eq!(run(&["debugfs", "-R", "cat /file", &raw]).unwrap().trim(), "kept");
    run(&["e2fsck", "-fn", &raw]).unwrap();
    // The guest continues with the new file.
    guest.run("echo more >/mnt/more; sync").unwrap();
    let error = site.refusal(&["disk", "snapshot", "web", "third.vhdx", "--freeze", "--no-wait"]);
    assert!(error.contains("cannot be used with"), "{error}");
    site.daemon.ok(&["vm", "kill", "web"]).unwrap();
    let error = site.refusal(&["disk", "snapshot", "web", "third.vhdx", "--freeze"]);
    assert!(error.contains("no running VM uses the disk"), "{error}");
}

mod full {
    #[test]
    fn a_snapshot_of_a_guest_that_was_frozen_needs_no_recovery() {
        super::a_snapshot_of_a_guest_that_was_frozen_needs_no_recovery();
    }

    #[test]
    fn a_guest_that_is_frozen_writes_nothing_until_it_is_thawed() {
        super::a_guest_that_is_frozen_writes_nothing_until_it_is_thawed();
    }

    #[test]
    fn an_agent_reports_its_guest_and_shuts_it_down() {
        super::an_agent_reports_its_guest_and_shuts_it_down();
    }
}
