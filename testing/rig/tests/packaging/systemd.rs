//! The units of `dist` under a running systemd: the permissions that they leave the daemon and the
//! launcher, the separate control groups of VMs, which outlive the units, and the restored CPU
//! settings.

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::Value;
use suimon_rig::{Rig, ServiceHost, wait_until};

const DAEMON: &str = "suimond.service";
const LAUNCHER: &str = "suimon-launcher.service";
const LAB: &str = "suimon-lab.service";
const PATIENCE: Duration = Duration::from_secs(180);

/// Host file with a VM that has a NIC and a disk, and is always executed by TCG.
const VM: &str = r#"
[[switch]]
name = "lan"
kind = "internal"
host_device = "lan0"
[[nic]]
name = "web"
switch = "lan"
backend = "vhost-user"
mac = "52:54:00:78:00:01"
[[store]]
name = "s"
path = "/srv/store"
[[disk]]
name = "web"
store = "s"
format = "vhdx"
size_bytes = "64 MiB"
[[vm]]
name = "web"
memory_bytes = "256 MiB"
kernel = "/srv/vmlinuz"
initrd = "/srv/initrd"
command_line = "quiet panic=-1 random.trust_cpu=on no_timer_check console=ttyS0 loglevel=1 line=ttyS0"
accelerator = "tcg"
nics = ["web"]
disks = ["web"]
"#;

/// Drop-in of an administrator that permits a store in `/srv/store`.
const STORES: &str = "[Service]\nReadWritePaths=/srv/store\n";

fn json(host: &ServiceHost, arguments: &[&str]) -> Value {
    let output = host.run(&[&["suimon", "--json"], arguments].concat()).unwrap();
    serde_json::from_str(&output).unwrap()
}

fn systemctl(host: &ServiceHost, arguments: &[&str]) {
    host.run(&[&["systemctl"], arguments].concat()).unwrap();
}

/// Waits until a daemon other than `before` responds. Returns its process id.
fn wait_for_another(host: &ServiceHost, before: &str) -> String {
    wait_until("another daemon", PATIENCE, || {
        let has_changed = ![before, "0"].contains(&host.property(DAEMON, "MainPID")?.as_str());
        Ok(has_changed && host.run_any(&["suimon", "host", "show"])?.is_ok())
    })
    .unwrap();
    host.property(DAEMON, "MainPID").unwrap()
}

/// Waits until the VM runs, and returns its process id.
fn process(host: &ServiceHost) -> u64 {
    wait_until("the VM to be reported as running", PATIENCE, || {
        Ok(json(host, &["vm", "show", "web"])["state"] == "running")
    })
    .unwrap();
    json(host, &["vm", "show", "web"])["process"].as_u64().unwrap()
}

/// Returns the control group of a process, relative to the launcher's unit.
fn group_of(host: &ServiceHost, process: &str) -> String {
    let groups = host.run(&["cat", &format!("/proc/{process}/cgroup")]).unwrap();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::")).unwrap();
    group.rsplit_once(LAUNCHER).unwrap().1.to_owned()
}

/// Waits until the journal contains these texts of the daemon. journald stores output with a delay.
fn wait_logged(host: &ServiceHost, texts: &[&str]) {
    let mut journal = String::new();
    let logged = wait_until("the daemon's messages in the journal", PATIENCE, || {
        journal = host.journal(DAEMON)?;
        Ok(texts.iter().all(|text| journal.contains(*text)))
    });
    logged.unwrap_or_else(|error| panic!("{error:#}: {journal}"));
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let rig = Rig::new().unwrap();
    let host = ServiceHost::boot(&rig, "").unwrap();
    for name in ["power.conf", "stores.conf"] {
        host.install_drop_in(name).unwrap();
    }
    // The manual pages are part of the package and checked by its test.
    let arguments = ["systemd-analyze", "verify", "--man=no", DAEMON, LAUNCHER, LAB];
    let output = host.run_any(&arguments).unwrap();
    assert!(output.is_ok() && output.stderr.is_empty(), "{output:?}");
    // The exposure level ranges from 0 (no permissions) to 10 (unrestricted unit).
    for (unit, limit) in [(DAEMON, 4.0), (LAUNCHER, 5.0), (LAB, 9.0)] {
        let output = host.run(&["systemd-analyze", "security", "--no-pager", unit]).unwrap();
        let level = output.lines().find_map(|line| line.split_once("exposure level for ")).unwrap();
        let level: f32 = level.1.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert!(level <= limit, "{unit}: {level}");
    }
}

#[test]
fn a_refused_host_file_is_not_tried_again() {
    let rig = Rig::new().unwrap();
    let host = ServiceHost::boot(&rig, "[[switch]]\nname = \"lan\"\nkind = \"odd\"\n").unwrap();
    assert!(!host.run_any(&["systemctl", "start", DAEMON]).unwrap().is_ok());
    assert_eq!(host.property(DAEMON, "ActiveState").unwrap(), "failed");
    assert_eq!(host.property(DAEMON, "ExecMainStatus").unwrap(), "3");
    wait_logged(&host, &["/etc/suimon/host.toml:3"]);

    // If the unit does not permit writes to the store, the disk reports that, and everything else
    // works.
    fs::write(host.file("/etc/suimon/host.toml"), VM).unwrap();
    systemctl(&host, &["start", DAEMON]);
    wait_logged(&host, &["Read-only file system"]);
    let disk = json(&host, &["disk", "show", "web"]);
    assert_eq!(disk["state"], "failed", "{disk}");
    assert_eq!(host.property(DAEMON, "NRestarts").unwrap(), "0");

    host.drop_in(DAEMON, "stores.conf", STORES).unwrap();
    systemctl(&host, &["restart", DAEMON]);
    let state = || json(&host, &["disk", "show", "web"])["state"].clone();
    wait_until("the disk works", PATIENCE, || Ok(state() == "ready")).unwrap();
}

/// The missing directory is a mount point that is created later, as for a device that is attached
/// after the boot.
#[test]
fn a_missing_directory_of_a_store_does_not_stop_the_unit_and_is_used_once_mounted() {
    let rig = Rig::new().unwrap();
    let host = ServiceHost::boot(&rig, &VM.replace("/srv/store", "/srv/later/store")).unwrap();
    // With `-` before the path, as in the package's example.
    host.drop_in(DAEMON, "stores.conf", &STORES.replace("/srv/store", "-/srv/later")).unwrap();
    systemctl(&host, &["start", DAEMON]);
    assert_eq!(json(&host, &["switch", "show", "lan"])["condition"]["health"], "up");
    assert_eq!(json(&host, &["disk", "show", "web"])["state"], "failed");

    host.run(&["mkdir", "/srv/later"]).unwrap();
    host.run(&["mount", "-t", "tmpfs", "tmpfs", "/srv/later"]).unwrap();
    host.run(&["mkdir", "/srv/later/store"]).unwrap();
    wait_until("the disk works", PATIENCE, || {
        Ok(json(&host, &["disk", "show", "web"])["state"] == "ready")
    })
    .unwrap();
    assert_eq!(host.property(DAEMON, "NRestarts").unwrap(), "0");
}

fn a_vm_has_a_control_group_and_outlives_both_units() {
    let rig = Rig::new().unwrap();
    let host = ServiceHost::boot(&rig, VM).unwrap();
    host.drop_in(DAEMON, "stores.conf", STORES).unwrap();
    systemctl(&host, &["start", DAEMON]);
    let output = host.run(&["suimon", "host", "show"]).unwrap();
    assert!(output.contains("confined  full"), "{output}");
    host.run(&["suimon", "vm", "start", "web"]).unwrap();
    let vm = process(&host);
    assert_eq!(group_of(&host, &vm.to_string()), "/suimon/web");
    let launcher = host.property(LAUNCHER, "MainPID").unwrap();
    assert_eq!(group_of(&host, &launcher), "");
    let mut guest = host.guest("web").unwrap();
    guest.load("virtio_blk", "").unwrap();
    guest.run("echo kept | dd of=/dev/vda bs=512 conv=sync,fsync").unwrap();
    host.run(&["ip", "address", "add", "10.78.0.254/24", "dev", "lan0"]).unwrap();
    guest.address("eth0", "10.78.0.9/24").unwrap();

    let mut daemon = host.property(DAEMON, "MainPID").unwrap();
    for arguments in [["restart", DAEMON].as_slice(), &["kill", "-s", "KILL", DAEMON]] {
        systemctl(&host, arguments);
        daemon = wait_for_another(&host, &daemon);
        assert_eq!(process(&host), vm);
        assert!(guest.reaches("10.78.0.254").unwrap());
        assert_eq!(
            guest
                .run("dd if=/dev/vda bs=512 count=1 iflag=direct 2>/dev/null | head -c 4")
                .unwrap(),
            "kept"
        );
    }
    // Only the launcher's main process: plain `kill` signals all processes of the unit, including
    // VMs.
    let kill = ["kill", "--kill-whom=main", "-s", "KILL", LAUNCHER];
    for arguments in
        [["restart", LAUNCHER].as_slice(), &["stop", LAUNCHER], &["start", LAUNCHER], &kill]
    {
        systemctl(&host, arguments);
        assert_eq!(process(&host), vm);
    }
    let message = "adopted a running VM";
    wait_until("the next launcher", PATIENCE, || {
        Ok(host.journal(LAUNCHER)?.matches(message).count() == 3)
    })
    .unwrap();
    // The daemon uses the current launcher.
    host.run(&["suimon", "vm", "kill", "web"]).unwrap();
    wait_until("the removal of the control group", PATIENCE, || {
        let group = host.property(LAUNCHER, "ControlGroup")?;
        let group = format!("/sys/fs/cgroup{group}/suimon/web");
        Ok(!host.run_any(&["test", "-d", &group])?.is_ok())
    })
    .unwrap();
    host.run(&["suimon", "vm", "start", "web"]).unwrap();
    assert_eq!(group_of(&host, &process(&host).to_string()), "/suimon/web");
    let journal = host.journal(DAEMON).unwrap();
    assert!(
        !journal.contains("which is not in its allow list, and the kernel denied it"),
        "{journal}"
    );
}

/// Simulated sysfs of two CPUs with `acpi-cpufreq`, mounted over the machine's for systemd and the
/// daemon.
struct Cpus(PathBuf);

impl Cpus {
    fn in_place_of_the_machines(host: &ServiceHost) -> Self {
        let cpus = Self(host.file("/srv/cpu"));
        cpus.put("online", "0-1");
        cpus.put("cpufreq/boost", "0");
        for cpu in 0..2 {
            let files = [
                ("affected_cpus", cpu.to_string()),
                ("scaling_driver", "acpi-cpufreq".to_owned()),
                ("scaling_available_governors", "ondemand performance".to_owned()),
                ("scaling_governor", "ondemand".to_owned()),
                ("cpuinfo_min_freq", "1500000".to_owned()),
                ("cpuinfo_max_freq", "3400000".to_owned()),
                ("scaling_min_freq", "1500000".to_owned()),
                ("scaling_max_freq", "3400000".to_owned()),
            ];
            for (file, text) in files {
                cpus.put(&format!("cpufreq/policy{cpu}/{file}"), &text);
            }
        }
        host.run(&["mount", "--bind", "/srv/cpu", "/sys/devices/system/cpu"]).unwrap();
        cpus
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn settings(&self) -> [String; 3] {
        ["policy0/scaling_governor", "boost", "policy1/scaling_min_freq"].map(|file| {
            fs::read_to_string(self.0.join("cpufreq").join(file)).unwrap().trim().to_owned()
        })
    }
}

const BEFORE: [&str; 3] = ["ondemand", "0", "1500000"];
const HIGH: [&str; 3] = ["performance", "1", "3400000"];

#[test]
fn a_power_plan_is_put_back_after_a_daemon_that_was_killed() {
    let rig = Rig::new().unwrap();
    let host = ServiceHost::boot(&rig, "[power]\nplan = \"high-performance\"\n").unwrap();
    let cpus = Cpus::in_place_of_the_machines(&host);
    host.install_drop_in("power.conf").unwrap();
    // Prevents a restarted daemon from applying the plan again.
    host.drop_in(DAEMON, "once.conf", "[Service]\nRestart=no\n").unwrap();
    for arguments in [["stop", DAEMON].as_slice(), &["kill", "-s", "KILL", DAEMON]] {
        systemctl(&host, &["start", DAEMON]);
        wait_until("the plan", PATIENCE, || Ok(cpus.settings() == HIGH)).unwrap();
        assert_eq!(json(&host, &["power", "show"])["effect"], "full");
        systemctl(&host, arguments);
        wait_until("the restored settings", PATIENCE, || Ok(cpus.settings() == BEFORE)).unwrap();
        wait_until("the unit to end", PATIENCE, || {
            let state = host.property(DAEMON, "ActiveState")?;
            Ok(["inactive", "failed"].contains(&state.as_str()))
        })
        .unwrap();
    }
    // After an orderly stop nothing remains to be restored; after a kill the unit restores all
    // settings.
    wait_logged(&host, &["CPU settings restored: 0", "CPU settings restored: 5"]);
}

mod full {
    #[test]
    fn a_vm_has_a_control_group_and_outlives_both_units() {
        super::a_vm_has_a_control_group_and_outlives_both_units();
    }
}
