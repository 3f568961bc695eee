//! A VM outlives its daemon: the daemon is killed repeatedly while the guest writes to its disk and
//! sends over its NIC, and no data of either is lost. `SUIMON_VM_DEATHS` sets the number of kills.

use std::fs;
use std::time::{Duration, Instant};

use anyhow::ensure;
use serde_json::Value;
use suimon_rig::{Daemon, GuestConsole, HostedVms, Process, Rig, run, wait_until};

const HOST: &str = "10.74.0.254";
const GUEST: &str = "10.74.0.9";
const PATIENCE: Duration = Duration::from_secs(120);
/// Number of kills of the daemon, unless `SUIMON_VM_DEATHS` is set.
const KILLS: usize = 50;
/// Number of blocks that the guest writes in turn.
const BLOCKS: u64 = 1024;

/// Host with a VM that has a NIC reachable from the host, and a disk.
struct Site {
    daemon: Daemon,
    vms: HostedVms,
    device: String,
    rig: Rig,
}

impl Drop for Site {
    /// Removes the host's NIC on the switch, which outlives the daemon.
    fn drop(&mut self) {
        let _ = run(&["ip", "link", "delete", &self.device]);
    }
}

impl Site {
    fn new() -> Self {
        let rig = Rig::new().unwrap();
        let vms = HostedVms::new(&rig).unwrap();
        let (device, store) = (rig.device("v"), rig.path("store"));
        fs::create_dir_all(&store).unwrap();
        let text = format!(
            "[host]\nvm_folder = \"{}\"\n[[switch]]\nname = \"lan\"\nkind = \"internal\"\n\
             host_device = \"{device}\"\n[[store]]\nname = \"s\"\npath = \"{store}\"\n\
             [[nic]]\nname = \"web\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
             [[disk]]\nname = \"web\"\nstore = \"s\"\nformat = \"vhdx\"\nsize_bytes = \"64 MiB\"\n{}",
            vms.folder(),
            vms.table("web", "nics = [\"web\"]\ndisks = [\"web\"]")
        );
        let daemon = Daemon::start(&rig, &text).unwrap();
        let site = Self { daemon, vms, device, rig };
        // Addresses and routes of single hosts, so that no network of the machine is hidden.
        run(&["ip", "address", "add", &format!("{HOST}/32"), "dev", &site.device]).unwrap();
        run(&["ip", "route", "add", &format!("{GUEST}/32"), "dev", &site.device]).unwrap();
        site
    }

    fn show(&self) -> Value {
        self.daemon.json(&["vm", "show", "web"]).unwrap()
    }

    /// Waits until the daemon has adopted the VM, and asserts that it has the same process. NICs
    /// and disks work earlier: a separate thread of the daemon connects to QEMU's monitor, which
    /// QEMU serves in the thread that reconnects its devices.
    fn wait_adopted(&self, process: &Value) {
        let mut status = Value::Null;
        let result = wait_until("the VM to be adopted", PATIENCE, || {
            status = self.show();
            ensure!(status["state"] != "stopped", "the VM has ended");
            Ok(status["state"] == "running")
        });
        result.unwrap_or_else(|error| panic!("{error:#}: {status}"));
        assert_eq!(status["process"], *process);
    }

    /// Returns the number of bytes that the host has received from the guest.
    fn received(&self) -> u64 {
        let path = format!("/sys/class/net/{}/statistics/rx_bytes", self.device);
        fs::read_to_string(path).unwrap().trim().parse().unwrap()
    }
}

/// Makes the guest write increasing numbers to blocks in turn, until the test stops it or an error
/// occurs.
fn begin_writing(guest: &mut GuestConsole) {
    let writer = format!(
        "(n=0; while [ ! -e /tmp/stop ]; do echo $n | dd of=/dev/vda bs=4096 seek=$((n % {BLOCKS})) \
         conv=sync,fsync 2>/dev/null || {{ touch /tmp/failed; break; }}; n=$((n + 1)); \
         echo $n >/tmp/new; mv /tmp/new /tmp/written; done; touch /tmp/ended) &"
    );
    guest.run(&writer).unwrap();
    wait_until("the guest to write", PATIENCE, || Ok(written(guest) > 0)).unwrap();
}

fn written(guest: &mut GuestConsole) -> u64 {
    let output = guest.run_any("cat /tmp/written", PATIENCE).unwrap().stdout;
    output.trim().parse().unwrap_or(0)
}

/// Stops the writes, and asserts that each block contains the last number written to it. Returns
/// the number of writes.
fn verify(guest: &mut GuestConsole) -> u64 {
    guest.run("touch /tmp/stop").unwrap();
    wait_until("the guest to have ended", PATIENCE, || {
        Ok(guest.run_any("[ -e /tmp/ended ]", PATIENCE)?.is_ok())
    })
    .unwrap();
    guest.run("[ ! -e /tmp/failed ]").unwrap();
    let count = written(guest);
    // Drops the guest's page cache, so that the disk is read.
    let read = format!(
        "echo 3 >/proc/sys/vm/drop_caches; dd if=/dev/vda bs=4096 count={BLOCKS} 2>/dev/null | \
         tr -s '\\0' '\\n'"
    );
    let output = guest.run(&read).unwrap();
    let blocks: Vec<u64> = output.lines().filter_map(|line| line.trim().parse().ok()).collect();
    let last = |block: u64| block + (count - 1 - block) / BLOCKS * BLOCKS;
    let expected: Vec<u64> = (0..BLOCKS.min(count)).map(last).collect();
    assert_eq!(blocks, expected, "{count} blocks were written");
    count
}

mod full {
    #[test]
    fn a_guest_writes_and_sends_while_its_daemons_are_killed() {
        let kills = std::env::var("SUIMON_VM_DEATHS");
        super::kill_repeatedly(kills.map_or(super::KILLS, |text| text.parse().unwrap()));
    }
}

fn kill_repeatedly(kills: usize) {
    let mut site = Site::new();
    let mut guest = site.vms.start(&site.daemon, "web").unwrap();
    guest.load("virtio_blk", "").unwrap();
    guest.address("eth0", &format!("{GUEST}/24")).unwrap();
    assert!(guest.reaches(HOST).unwrap());
    let process = site.show()["process"].clone();
    let mut server =
        Process::start(&site.rig, "iperf3", &["iperf3", "-s", "-1", "-B", HOST]).unwrap();
    wait_until("iperf3 to listen", PATIENCE, || {
        server.check_running()?;
        Ok(run(&["ss", "-ltn"])?.contains(&format!("{HOST}:5201")))
    })
    .unwrap();
    let sender = format!("(iperf3 -c {HOST} -t 86400 -b 2M; touch /tmp/cut) >/tmp/iperf3 2>&1 &");
    guest.run(&sender).unwrap();
    begin_writing(&mut guest);
    let before = site.received();
    wait_until("the guest to send", PATIENCE, || Ok(site.received() > before + 1_000_000)).unwrap();

    let (mut nic, mut disk) = (Vec::new(), Vec::new());
    for _ in 0..kills {
        let count = written(&mut guest);
        site.daemon.kill();
        let (died, received) = (Instant::now(), site.received());
        site.daemon.restart(&site.rig).unwrap();
        // More bytes than a retransmitted segment, so the stream continues.
        wait_until("further bytes of the guest", PATIENCE, || {
            Ok(site.received() > received + 100_000)
        })
        .unwrap();
        nic.push(died.elapsed());
        wait_until("further writes of the guest", PATIENCE, || Ok(written(&mut guest) > count + 1))
            .unwrap();
        disk.push(died.elapsed());
        site.wait_adopted(&process);
    }
    let count = verify(&mut guest);
    let cut = guest.run_any("[ -e /tmp/cut ]", PATIENCE).unwrap();
    assert!(!cut.is_ok(), "the connection broke: {}", guest.run("cat /tmp/iperf3").unwrap());
    site.wait_adopted(&process);
    for (device, pauses) in [("NIC", &mut nic), ("disk", &mut disk)] {
        pauses.sort_unstable();
        let (median, longest) = (pauses[pauses.len() / 2], pauses[pauses.len() - 1]);
        eprintln!("{device}: from a kill to further data: median {median:?}, longest {longest:?}");
    }
    eprintln!("{kills} kills, {count} writes, all blocks have the last contents");

    // A daemon that is stopped orderly does not end the VM either.
    site.daemon.stop().unwrap();
    site.daemon.restart(&site.rig).unwrap();
    site.wait_adopted(&process);
    assert!(guest.reaches(HOST).unwrap());
}
