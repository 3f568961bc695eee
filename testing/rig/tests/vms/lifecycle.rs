//! VMs that the daemon starts: real guests with NICs and disks of Suimon, controlled by the command
//! line, from start to end.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Daemon, GuestConsole, HostDevice, HostedVms, Rig, run, wait_until};

const HOST: &str = "10.78.0.254";
const GUEST: &str = "10.78.0.9";
const DISK_BYTES: u64 = 64 << 20;
const PATIENCE: Duration = Duration::from_secs(120);

/// Host with a VM, two NICs and two disks. The VM has the first of each.
struct Site {
    vms: HostedVms,
    daemon: Daemon,
    device: HostDevice,
    _rig: Rig,
}

impl Site {
    fn new() -> Self {
        Self::with("nics = [\"web\"]\ndisks = [\"web\"]\ncpus_max = 2")
    }

    fn with(keys: &str) -> Self {
        let rig = Rig::new().unwrap();
        let vms = HostedVms::new(&rig).unwrap();
        let device = HostDevice::new(&rig);
        let store = rig.path("store");
        fs::create_dir_all(&store).unwrap();
        let mut text = format!(
            "[host]\nvm_folder = \"{}\"\n[[switch]]\nname = \"lan\"\nkind = \"internal\"\n\
             host_device = \"{}\"\n[[store]]\nname = \"s\"\npath = \"{store}\"\n",
            vms.folder(),
            device.name()
        );
        for (name, number) in [("web", 1), ("more", 2)] {
            text += &format!(
                "[[nic]]\nname = \"{name}\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
                 mac = \"52:54:00:78:00:0{number}\"\n[[disk]]\nname = \"{name}\"\nstore = \"s\"\n\
                 format = \"vhdx\"\nsize_bytes = {DISK_BYTES}\nserial = \"DISK-{number}\"\n"
            );
        }
        text += &vms.table("web", keys);
        let daemon = Daemon::start(&rig, &text).unwrap();
        let site = Self { vms, daemon, device, _rig: rig };
        site.device.address(HOST, GUEST).unwrap();
        site
    }

    fn start(&self) -> GuestConsole {
        let mut guest = self.vms.start(&self.daemon, "web").unwrap();
        guest.load("virtio_blk", "").unwrap();
        guest
    }

    fn show(&self) -> Value {
        self.daemon.json(&["vm", "show", "web"]).unwrap()
    }

    fn wait_state(&self, state: &str) {
        wait_until(
            &format!("the VM to be {state}"),
            PATIENCE,
            || Ok(self.show()["state"] == state),
        )
        .unwrap();
    }

    /// Runs a command that must fail, and returns its error output.
    fn refusal(&self, arguments: &[&str]) -> String {
        let output = self.daemon.cli(arguments).unwrap();
        assert!(!output.is_ok(), "{arguments:?}: {}", output.stdout);
        output.stderr
    }

    fn events(&self, id: u64) -> Vec<Value> {
        let events = self.daemon.json(&["event", "list"]).unwrap();
        let of_kind = |event: &&Value| event["id"] == id && event["subject"] == "vm/web";
        events.as_array().unwrap().iter().filter(of_kind).cloned().collect()
    }
}

#[test]
fn a_guest_uses_its_nic_and_disk_turns_itself_off_and_finds_them_again() {
    let site = Site::new();
    let mut guest = site.start();
    let status = site.show();
    assert_eq!((&status["state"], &status["nics"][0]), (&"running".into(), &"web".into()));
    let process = status["process"].as_u64().unwrap();
    let of_process = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = |key: &str| of_process.lines().find(|line| line.starts_with(key)).unwrap();
    let user = status["user"].as_u64().unwrap().to_string();
    assert!(user != "0" && line("Uid:").split_whitespace().skip(1).all(|id| id == user));
    assert_eq!(line("CapEff:"), "CapEff:\t0000000000000000");
    assert_eq!((line("NoNewPrivs:"), line("Seccomp:")), ("NoNewPrivs:\t1", "Seccomp:\t2"));

    assert_eq!(guest.run("cat /sys/class/net/eth0/address").unwrap(), "52:54:00:78:00:01");
    assert_eq!(guest.run("cat /sys/block/vda/serial").unwrap(), "DISK-1");
    assert_eq!(guest.run("cat /sys/block/vda/size").unwrap(), (DISK_BYTES / 512).to_string());
    guest.address("eth0", &format!("{GUEST}/24")).unwrap();
    assert!(guest.reaches(HOST).unwrap());
    guest.run("echo kept | dd of=/dev/vda bs=512 conv=sync,fsync").unwrap();

    guest.shut_down_on_power_button().unwrap();
    site.daemon.ok(&["vm", "stop", "web"]).unwrap();
    assert_eq!(site.show()["state"], "stopped");
    assert!(!fs::exists(format!("/proc/{process}")).unwrap(), "the process still exists");
    let mut guest = site.start();
    assert_eq!(guest.run("head -c 4 /dev/vda").unwrap(), "kept");
    assert!(site.refusal(&["vm", "delete", "web"]).contains("suimon vm stop web"));
    site.daemon.ok(&["vm", "kill", "web"]).unwrap();
    site.daemon.ok(&["vm", "delete", "web"]).unwrap();
    assert!(!fs::exists(format!("{}/web", site.vms.folder())).unwrap(), "the folder still exists");
    let nic = site.daemon.json(&["nic", "show", "web"]).unwrap();
    assert_eq!(nic["condition"]["health"], "down");
}

#[test]
fn nics_disks_and_cpus_come_and_go_while_it_runs() {
    let mut site = Site::new();
    let mut guest = site.start();
    guest.run("ls /sys/class/net /sys/block").unwrap();
    site.daemon.ok(&["vm", "set", "web", "--nics", "web,more", "--disks", "web,more"]).unwrap();
    let present = "[ -e /sys/class/net/eth1 ] && [ -e /sys/block/vdb ]";
    wait_until("the devices in the guest", PATIENCE, || {
        Ok(guest.run_any(present, PATIENCE)?.is_ok())
    })
    .unwrap();
    assert_eq!(guest.run("cat /sys/class/net/eth1/address").unwrap(), "52:54:00:78:00:02");
    assert_eq!(guest.run("cat /sys/block/vdb/serial").unwrap(), "DISK-2");
    guest.address("eth1", &format!("{GUEST}/24")).unwrap();
    assert!(guest.reaches(HOST).unwrap());
    guest.run("dd if=/dev/zero of=/dev/vdb bs=64k count=16 conv=fsync").unwrap();

    site.daemon.ok(&["vm", "set", "web", "--cpus", "2"]).unwrap();
    let online = "echo 1 >/sys/devices/system/cpu/cpu1/online; nproc";
    wait_until("the guest to have two CPUs", PATIENCE, || {
        Ok(guest.run_any(online, PATIENCE)?.stdout.ends_with('2'))
    })
    .unwrap();

    site.daemon.ok(&["vm", "set", "web", "--nics", "web", "--disks", "web"]).unwrap();
    let absent = "[ ! -e /sys/class/net/eth1 ] && [ ! -e /sys/block/vdb ]";
    wait_until("the removal of the devices in the guest", PATIENCE, || {
        Ok(guest.run_any(absent, PATIENCE)?.is_ok())
    })
    .unwrap();
    wait_until("the events of the removed devices", PATIENCE, || Ok(site.events(7019).len() == 2))
        .unwrap();
    // The events are recorded before the status changes.
    let mut status = Value::Null;
    let followed = wait_until("the status without the devices", PATIENCE, || {
        status = site.show();
        Ok(["nics", "disks"].into_iter().all(|key| status[key] == status["config"][key]))
    });
    followed.unwrap_or_else(|error| panic!("{error:#}: {status}"));
    // QEMU closed the connections, not the daemon, unless the guest released the devices late on a
    // loaded machine.
    let qemu_log = fs::read_to_string(format!("{}/web/qemu.log", site.vms.folder())).unwrap();
    let is_late = site.daemon.process().log().contains("has not released");
    assert!(is_late || !qemu_log.contains("Failed to set msg fds"), "{qemu_log}");
    // Another VM can be created meanwhile.
    site.daemon.ok(&["vm", "create", "second", "--memory-bytes", "64 MiB"]).unwrap();
    site.daemon.ok(&["vm", "delete", "second"]).unwrap();
    // The NIC can be added again: nothing of the first time conflicts.
    site.daemon.ok(&["vm", "set", "web", "--nics", "web,more"]).unwrap();
    wait_until("the NIC in the guest", PATIENCE, || {
        Ok(guest.run_any("[ -e /sys/class/net/eth1 ]", PATIENCE)?.is_ok())
    })
    .unwrap();
}

fn it_is_paused_and_reset_and_its_console_is_used() {
    let site = Site::new();
    let mut guest = site.start();
    site.daemon.ok(&["vm", "pause", "web"]).unwrap();
    site.wait_state("paused");
    assert!(guest.run_any("true", Duration::from_secs(2)).is_err(), "a paused guest answers");
    assert!(site.refusal(&["vm", "stop", "web"]).contains("suimon vm resume web"));
    site.daemon.ok(&["vm", "resume", "web"]).unwrap();
    site.wait_state("running");
    // The console is in use by the rig.
    assert!(site.refusal(&["vm", "console", "web"]).contains("console"));
    drop(guest);
    site.daemon.ok(&["vm", "reset", "web"]).unwrap();
    let mut console = Command::new("timeout")
        .args(["600", &suimon_rig::program("suimon").unwrap()])
        .args(["--socket", site.daemon.socket(), "vm", "console", "web"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // The line remains in the guest's serial port until the console is read.
    let mut typed = console.stdin.take().unwrap();
    let mut lines = BufReader::new(console.stdout.take().unwrap()).lines();
    let ready = lines.by_ref().map(Result::unwrap).any(|line| line.contains("READY"));
    assert!(ready, "the guest that was reset prints that it takes commands");
    typed.write_all(b"7 uname -s\n").unwrap();
    let mut answer = lines.by_ref().map(Result::unwrap);
    let answer: Vec<_> = answer.by_ref().take_while(|line| !line.starts_with("END 7")).collect();
    assert!(answer.iter().any(|line| line.contains("Linux")), "{answer:?}");
    // The console ends with the VM, although its input is still open.
    site.daemon.ok(&["vm", "kill", "web"]).unwrap();
    wait_until("the console to end", PATIENCE, || Ok(console.try_wait()?.is_some())).unwrap();
    assert!(console.wait().unwrap().success());
    drop(typed);
    wait_until("the event of the reset", PATIENCE, || Ok(!site.events(7015).is_empty())).unwrap();
}

fn start_errors_are_reported_and_nothing_remains() {
    let site = Site::new();
    let folder = site.vms.folder().to_owned();
    let processes =
        || run(&["pgrep", "-fc", &format!("[g]uest=web.*{folder}")]).unwrap_or_default();
    for (key, value, expected) in [
        ("--kernel", "/nowhere/vmlinuz", "/nowhere/vmlinuz"),
        ("--memory-bytes", "8 TiB", "memory"),
        ("--accelerator", "kvm", "KVM"),
        ("--cdrom", "/nowhere/cd.iso", "/nowhere/cd.iso"),
    ] {
        if key == "--accelerator"
            && suimon_rig::accelerator().unwrap() == suimon_rig::Accelerator::Kvm
        {
            continue;
        }
        let before = site.show()["config"].clone();
        site.daemon.ok(&["vm", "set", "web", key, value]).unwrap();
        let message = site.refusal(&["vm", "start", "web"]);
        assert!(message.contains(expected), "{key}: {message}");
        assert_eq!(site.show()["state"], "stopped", "{key}");
        assert_ne!(processes().trim(), "1", "{key}: a process is left");
        let key = key.trim_start_matches('-').replace('-', "_");
        let patch = format!("{{\"{key}\": {}}}", before[&key]);
        let answer = site.daemon.http("PATCH", "/1.0/vms/web", Some(&patch)).unwrap();
        assert_eq!(answer.status, 202, "{}", answer.text);
    }
    let status = || site.show();
    wait_until("the VM's earlier configuration", PATIENCE, || {
        Ok(status()["config"]["cdrom"].is_null())
    })
    .unwrap();
    site.start();
    assert!(site.refusal(&["vm", "start", "web"]).contains("already running"));
    let process = site.show()["process"].to_string();
    run(&["kill", "-9", &process]).unwrap();
    site.wait_state("stopped");
    assert!(site.show()["reason"].to_string().contains("signal"), "{}", site.show());
    wait_until("the event of the end", PATIENCE, || Ok(!site.events(7012).is_empty())).unwrap();
    site.start();
}

/// A guest that panics restarts immediately, so the panic is only in its console's log.
fn a_command_fails_with_the_panic_of_the_guests_kernel() {
    let site = Site::new();
    let mut guest = site.start();
    let error = guest.run("echo c >/proc/sysrq-trigger").unwrap_err();
    assert!(format!("{error:#}").contains("Kernel panic - not syncing"), "{error:#}");
    let log = format!("{}/web/console.log", site.vms.folder());
    wait_until("the stack of calls in the log", PATIENCE, || {
        Ok(fs::read_to_string(&log)?.contains("Call Trace"))
    })
    .unwrap();
}

mod full {
    #[test]
    fn it_is_paused_and_reset_and_its_console_is_used() {
        super::it_is_paused_and_reset_and_its_console_is_used();
    }

    #[test]
    fn start_errors_are_reported_and_nothing_remains() {
        super::start_errors_are_reported_and_nothing_remains();
    }

    #[test]
    fn a_command_fails_with_the_panic_of_the_guests_kernel() {
        super::a_command_fails_with_the_panic_of_the_guests_kernel();
    }
}
