//! Images are opened on a device that does not respond: only their own disks wait.

use std::fs;
use std::time::{Duration, Instant};

use serde_json::Value;
use suimon_rig::{BlockDevice, Daemon, Mounted, NbdClient, Rig, run, wait_until};

const BLOCK: [u8; 4096] = [7; 4096];
const PATIENCE: Duration = Duration::from_secs(120);
/// Time that a change which needs a store waits for it, once. One command takes about 10 ms of CPU
/// time, so load on the machine does not make it take as long.
const ONCE: Duration = Duration::from_secs(10);

/// Daemon with a disk in a file system on the block device, and a disk in a folder.
struct Host {
    daemon: Daemon,
    store: Mounted,
    device: BlockDevice,
    rig: Rig,
}

impl Host {
    fn start() -> Self {
        let rig = Rig::new().unwrap();
        let device = BlockDevice::new(&rig, 128 << 20).unwrap();
        run(&["mkfs.ext4", "-q", "-F", device.path()]).unwrap();
        let store = Mounted::device(device.path(), &rig.path("slow")).unwrap();
        fs::create_dir(rig.path("fast")).unwrap();
        let (slow, fast) = (store.path(), rig.path("fast"));
        let disk = |name: &str, store: &str| {
            let socket = rig.path(&format!("{name}.sock"));
            format!(
                "[[disk]]\nname = \"{name}\"\nstore = \"{store}\"\nformat = \"vhdx\"\n\
                 size_bytes = \"16 MiB\"\nnbd = {{ socket = \"{socket}\" }}\n"
            )
        };
        let toml = format!(
            "[[store]]\nname = \"slow\"\npath = \"{slow}\"\n[[store]]\nname = \"fast\"\n\
             path = \"{fast}\"\n{}{}",
            disk("bad", "slow"),
            disk("good", "fast")
        );
        let daemon = Daemon::start(&rig, &toml).unwrap();
        let host = Self { daemon, store, device, rig };
        host.client("bad").write(0, &BLOCK, true).unwrap();
        host
    }

    fn client(&self, disk: &str) -> NbdClient {
        NbdClient::connect(&self.rig.path(&format!("{disk}.sock")), disk).unwrap()
    }

    /// Stalls the device, after the kernel has dropped its caches of the file system.
    fn stall(&mut self) {
        run(&["sync"]).unwrap();
        fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
        self.device.stall();
    }

    fn disk(&self, disk: &str) -> Value {
        self.daemon.json(&["disk", "show", disk]).unwrap()
    }

    fn events(&self, id: u32) -> usize {
        let events = self.daemon.json(&["event", "list"]).unwrap();
        events.as_array().unwrap().iter().filter(|event| event["id"] == id).count()
    }

    /// Asserts that the other disk is served, can be changed and is listed while the device does
    /// not respond.
    fn assert_others_continue(&self, max_iops: &str) {
        let mut content = [0; 4096];
        let mut healthy = self.client("good");
        healthy.write(4096, &BLOCK, true).unwrap();
        healthy.read(4096, &mut content).unwrap();
        assert_eq!(content, BLOCK);
        let started = Instant::now();
        self.daemon.ok(&["disk", "set", "good", "--qos-max-iops", max_iops]).unwrap();
        let elapsed = started.elapsed();
        assert!(elapsed < ONCE, "the change waited for the other store: {elapsed:?}");
        self.daemon.ok(&["disk", "list"]).unwrap();
        self.daemon.ok(&["store", "list"]).unwrap();
        assert_eq!(self.disk("good")["state"], "ready");
    }

    fn assert_restored(&self) {
        wait_until("the disk", PATIENCE, || Ok(self.disk("bad")["state"] == "ready")).unwrap();
        let mut content = [0; 4096];
        self.client("bad").read(0, &mut content).unwrap();
        assert_eq!(content, BLOCK);
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // Resumes the device: while it is stalled, no process ends and nothing can be unmounted.
        self.device.resume();
    }
}

#[test]
fn a_daemon_starts_beside_a_device_that_does_not_answer() {
    let mut host = Host::start();
    host.daemon.kill();
    host.stall();
    host.daemon.restart(&host.rig).unwrap();
    host.assert_others_continue("1000");
    wait_until("the disk is stalled", PATIENCE, || Ok(host.disk("bad")["state"] == "stalled"))
        .unwrap();
    wait_until("an event", PATIENCE, || Ok(host.events(6118) == 1)).unwrap();
    host.assert_others_continue("2000");
    host.device.resume();
    host.assert_restored();
    assert_eq!(host.events(6118), 1);
    assert!(host.daemon.stop().unwrap().success());
}

#[test]
fn a_disk_on_a_device_that_does_not_answer_is_refused_and_the_host_is_as_before() {
    let mut host = Host::start();
    let copy = format!("{}/copy.vhdx", host.store.path());
    host.daemon.ok(&["disk", "convert", "bad", "copy.vhdx", "--format", "vhdx"]).unwrap();
    host.stall();
    let started = Instant::now();
    let arguments = ["disk", "add", "new", "--store", "slow", "--file", "copy.vhdx"];
    let output = host.daemon.cli(&[&arguments[..], &["--format", "vhdx"]].concat()).unwrap();
    assert!(started.elapsed() < 2 * ONCE, "it waited more than once: {:?}", started.elapsed());
    assert!(!output.is_ok() && output.stderr.contains("has not responded"), "{}", output.stderr);
    host.assert_others_continue("1000");
    host.device.resume();
    host.assert_restored();
    wait_until("the image added", PATIENCE, || {
        Ok(host.daemon.cli(&[&arguments[..], &["--format", "vhdx"]].concat())?.is_ok())
    })
    .unwrap();
    assert!(fs::exists(copy).unwrap());
    assert!(host.daemon.stop().unwrap().success());
}
