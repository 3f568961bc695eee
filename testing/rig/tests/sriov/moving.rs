//! A VM with a virtual function is migrated from one node to another and back during TCP traffic:
//! two daemons in an emulated machine with two adapters on one network.
//!
//! QEMU emulates the machine with TCG, including the nested virtualization. The test verifies
//! function, not speed.
#![forbid(unsafe_code)]

use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use suimon_rig::{IovMachine, IovSpec, Rig, create_certificates, iperf, wait_until};

const NODES: [&str; 2] = ["one", "two"];
const LIGHT: &str = "10.77.0.3";
const NESTED: &str = "10.77.0.1";
/// Time limit for booting the nested VM, which takes half a minute on an idle host; it has its VF
/// afterwards.
const BOOT_LIMIT: Duration = Duration::from_secs(900);
const PATIENCE: Duration = Duration::from_secs(600);
/// Minimum number of bytes that the switch carries in each direction during memory copying.
const CARRIED_MIN: u64 = 20_000;

/// Host file of the first node's guests: a namespace guest and a VM.
const GUESTS: &str = r#"
[[nic]]
name = "light"
switch = "wan"
backend = "tap"
device = "light0"
netns = "blue"
mac = "52:54:00:00:00:03"
[[nic]]
name = "web"
switch = "wan"
backend = "vhost-user"
mac = "52:54:00:00:00:01"
iov_weight = 50
[[vm]]
name = "web"
memory_bytes = "256 MiB"
nics = ["web"]
accelerator = "kvm"
kernel = "/boot/vmlinuz"
initrd = "/boot/initrd"
command_line = "console=ttyS0 quiet panic=-1 random.trust_cpu=on no_timer_check rdinit=/nested"
"#;

/// Returns the host file of a node that the other node can reach, with a switch with `iov` on its
/// own adapter.
fn host(index: usize) -> String {
    let (name, other) = (NODES[index], NODES[1 - index]);
    let port = |index: usize| 8443 + index;
    let (own_port, far_port) = (port(index), port(1 - index));
    format!(
        r#"
[host]
name = "{name}"
vm_folder = "/run/{name}/vms"
[api]
listen = "127.0.0.1:{own_port}"
tls_certificate = "/tmp/{name}/server-cert.pem"
tls_key = "/tmp/{name}/server-key.pem"
token_file = "/tmp/{name}/token"
[[node]]
name = "{other}"
address = "127.0.0.1:{far_port}"
server_name = "localhost"
ca_certificate = "/tmp/{other}/ca-cert.pem"
token_file = "/tmp/{other}/token"
[[switch]]
name = "wan"
kind = "external"
uplink = "up"
iov = true
[[uplink]]
name = "up"
device = "eth{index}"
[[pf]]
name = "wan"
device = "eth{index}"
vfs = 2
"#
    )
}

/// Emulated machine, and the index of the node on which the VM runs.
struct Site<'a> {
    machine: IovMachine,
    at: usize,
    rig: &'a Rig,
}

impl<'a> Site<'a> {
    fn new(rig: &'a Rig) -> Result<Self> {
        let spec = IovSpec { has_iommu: true, hosts_vms: true, adapters: 2 };
        let machine = IovMachine::start(rig, spec)?;
        let mut site = Self { machine, at: 0, rig };
        site.machine.run(
            "/usr/bin/ip netns add blue; /usr/bin/ip netns add red; \
             /usr/bin/ip link set eth0 up; /usr/bin/ip link set eth1 up",
        )?;
        for node in NODES {
            site.write_secrets(node)?;
        }
        for (index, node) in NODES.iter().enumerate() {
            let guests = if index == 0 { GUESTS } else { "" };
            let file = format!("/tmp/{node}/host.toml");
            site.machine.write(&file, &format!("{}{guests}", host(index)))?;
            site.machine.start_daemon_of(node, &format!("--config {file}"))?;
        }
        site.machine.run(&format!(
            "/usr/bin/ip -n blue addr add {LIGHT}/24 dev light0; \
             /usr/bin/ip -n blue link set light0 up"
        ))?;
        // Changing the number of VFs resets the adapter; its link is then down for some seconds.
        site.machine.run(
            "for i in 0 1; do until [ \"$(cat /sys/class/net/eth$i/carrier)\" = 1 ]; do \
             usleep 100000; done; done",
        )?;
        Ok(site)
    }

    /// Writes certificates and token of a node to files that both daemons read.
    fn write_secrets(&mut self, node: &str) -> Result<()> {
        self.machine.run(&format!("mkdir /tmp/{node}"))?;
        let folder = create_certificates(&self.rig.file(node));
        for file in ["ca-cert.pem", "server-cert.pem", "server-key.pem"] {
            let text = fs::read_to_string(folder.join(file))?;
            self.machine.write(&format!("/tmp/{node}/{file}"), &text)?;
        }
        self.machine.write(&format!("/tmp/{node}/token"), &format!("a-token-of-node-{node}"))?;
        self.machine.run(&format!("chmod 600 /tmp/{node}/token /tmp/{node}/server-key.pem"))?;
        Ok(())
    }

    fn json(&mut self, index: usize, arguments: &str) -> Result<Value> {
        let output = self.machine.suimon_well_of(NODES[index], &format!("{arguments} --json"))?;
        serde_json::from_str(&output)
            .with_context(|| format!("`suimon {arguments}` printed {output}"))
    }

    /// Waits until the NIC's `iov` status at the VM's current node fulfils a condition, and returns
    /// it.
    fn wait_iov(
        &mut self,
        description: &str,
        limit: Duration,
        condition: impl Fn(&Value) -> bool,
    ) -> Result<Value> {
        let until = Instant::now() + limit;
        loop {
            let nic = self.json(self.at, "nic show web")?;
            if condition(&nic["iov"]) {
                return Ok(nic["iov"].clone());
            }
            if Instant::now() > until {
                let node = NODES[self.at];
                let log = self.machine.run(&format!(
                    "tail -5 /tmp/{node}.log; cat /run/{node}/vms/web/*.log | tail"
                ))?;
                bail!("not {description}: {}; {log}", nic["iov"]);
            }
            std::thread::sleep(Duration::from_millis(500));
        }
    }

    /// Waits until the VM uses a VF of its node's adapter.
    fn wait_vf(&mut self, limit: Duration) -> Result<()> {
        let iov = self.wait_iov("on a VF", limit, |iov| iov["path"] == "vf")?;
        let adapter = self.json(self.at, &format!("vf show eth{}", self.at))?;
        assert_eq!(iov["adapter"], adapter["address"], "it is the node's own adapter");
        println!("node {}: {iov}", NODES[self.at]);
        Ok(())
    }

    /// Waits until TCP has carried [`CARRIED_MIN`] further bytes in each direction.
    fn wait_flow(&mut self) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        let before = self.carried()?;
        loop {
            std::thread::sleep(Duration::from_secs(1));
            let bytes = self.carried()?;
            let is_enough = |(is, was): (u64, u64)| is.saturating_sub(was) >= CARRIED_MIN;
            if bytes.into_iter().zip(before).all(is_enough) {
                return Ok(());
            }
            ensure!(Instant::now() < until, "TCP does not continue: {before:?}, then {bytes:?}");
        }
    }

    /// Returns the bytes that the namespace guest's NIC has received and sent.
    fn carried(&mut self) -> Result<[u64; 2]> {
        let counters = self.json(0, "nic show light")?["counters"].take();
        let bytes = ["rx_bytes", "tx_bytes"].map(|key| counters[key].as_u64());
        Ok([bytes[0].context("rx_bytes")?, bytes[1].context("tx_bytes")?])
    }

    /// Migrates the VM to the other node, and checks that the switch carries its frames in both
    /// directions during memory copying.
    fn migrate_vm(&mut self) -> Result<()> {
        self.wait_flow()?;
        let (from, to, started) = (NODES[self.at], NODES[1 - self.at], Instant::now());
        self.machine.run(&format!(
            "rm -f /tmp/moved; (suimon --socket /run/{from}/suimon.sock vm migrate web --to {to} \
             >/tmp/moving 2>&1; echo $? >/tmp/moved) &"
        ))?;
        let mut samples: Vec<(u64, u64)> = Vec::new();
        while !self.machine.run_any("cat /tmp/moved", PATIENCE)?.is_ok() {
            ensure!(started.elapsed() < PATIENCE, "the migration does not end");
            // The queries use the same CPU as the VM.
            std::thread::sleep(Duration::from_secs(1));
            // The VM may have left this node already.
            let mut query = |arguments: &str| -> Result<Value> {
                let output = self.machine.suimon_of(from, arguments)?.stdout;
                Ok(serde_json::from_str(&output).unwrap_or_default())
            };
            let nic = query("nic show web --json")?;
            let vm = query("vm show web --json")?;
            // The NIC was queried before the VM, so the paths may have changed in between.
            if vm["migration"]["phase"] == "copying-memory" && nic["iov"]["path"] != "vf" {
                let count = |counter: &str| nic["counters"][counter].as_u64().unwrap_or(0);
                samples.push((count("rx_bytes"), count("tx_bytes")));
                let reason = nic["iov"]["reason"].as_str().unwrap_or_default();
                ensure!(reason.contains("is migrating to node"), "{reason}");
            }
        }
        let output = self.machine.run("cat /tmp/moving; exit $(cat /tmp/moved)")?;
        println!("to node {to} in {:?} {output}", started.elapsed());
        let (first, last) = samples
            .first()
            .zip(samples.last())
            .context("no sample was taken during memory copying")?;
        let (bytes_out, bytes_in) = (last.0 - first.0, last.1 - first.1);
        println!("meanwhile the switch carried {bytes_out} B from it and {bytes_in} B to it");
        // If copying takes little time, there are too few samples of the counters.
        if samples.len() > 2 && bytes_out.min(bytes_in) <= CARRIED_MIN {
            // The events show whether the guest was restarted.
            let events = self.machine.suimon_of(from, "event list")?.stdout;
            bail!("the synthetic path does not carry it: {samples:?}; {events}");
        }
        self.at = 1 - self.at;
        Ok(())
    }

    /// Waits until no VF of a node's adapter is in use.
    fn wait_no_vf_used(&mut self, index: usize) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        while self.json(index, &format!("vf show eth{index}"))?["vfs_in_use"] != 0 {
            ensure!(Instant::now() < until, "the VF is still in use");
            std::thread::sleep(Duration::from_secs(1));
        }
        Ok(())
    }
}

/// Nested VMs in an emulated machine take minutes.
mod full {
    #[test]
    fn a_vm_with_a_vf_migrates_there_and_back_while_tcp_continues() {
        suimon_rig::Rig::run(super::migrate_there_and_back);
    }
}

fn migrate_there_and_back(rig: &Rig) -> Result<()> {
    let mut site = Site::new(rig)?;
    site.machine.suimon_well_of("one", "vm start web")?;
    site.wait_vf(BOOT_LIMIT)?;
    // The other node detects KVM at its first check of a VM. That takes seconds in an emulated
    // machine, and a node waits 15 s for the other's response.
    wait_until("a check of the migration by the other node", PATIENCE, || {
        Ok(site.machine.suimon_of("one", "vm migrate web --to two --dry-run")?.is_ok())
    })?;
    let until = Instant::now() + PATIENCE;
    let ping = format!("/usr/bin/ip netns exec blue ping -c 1 -W 10 {NESTED}");
    while !site.machine.run_any(&ping, PATIENCE)?.is_ok() {
        ensure!(Instant::now() < until, "the VM is not reached over its VF");
    }
    // Blocks are small, so that each interval has several, and buffers are small, so that missing
    // data is noticed.
    site.machine.run(&format!(
        "(/usr/bin/ip netns exec blue iperf3 -c {NESTED} --bidir -t 3600 -i 0.5 -b 500K -l 2K \
         -w 16K -J >/tmp/report 2>&1; echo done >/tmp/end) &"
    ))?;
    site.migrate_vm()?;
    site.wait_vf(PATIENCE)?;
    site.wait_no_vf_used(0)?;

    // The VFs of the first node are now in use by others.
    let vf = site.json(0, "vf show eth0 0")?;
    let device = vf["device"].as_str().context("the VF has no device")?.to_owned();
    site.machine.run(&format!("/usr/bin/ip link set {device} netns red"))?;
    site.machine.suimon_well_of("one", "vf set eth0 1 mac=52:54:00:00:00:09")?;
    site.migrate_vm()?;
    site.wait_iov("without a VF", PATIENCE, |iov| {
        let reason = iov["reason"].as_str().unwrap_or_default();
        iov["path"] == "synthetic" && reason.contains("no VF for this NIC is free")
    })?;
    site.wait_no_vf_used(1)?;
    ensure!(!site.machine.run_any("cat /tmp/end", PATIENCE)?.is_ok(), "the connection was cut");
    site.machine.run("killall iperf3; while [ ! -e /tmp/end ]; do usleep 100000; done")?;
    let text = site.machine.run("cat /tmp/report")?;
    let report = iperf::report_until_ended(&text)?;
    let pause = report.longest_pause()?;
    println!("longest pause {pause:?}");
    // The VM gets a VF again when one becomes free.
    site.machine.run(&format!("/usr/bin/ip -n red link set {device} netns 1 name free0"))?;
    site.wait_vf(PATIENCE)?;
    for node in NODES {
        let output = site.machine.suimon_well_of(node, "host show")?;
        ensure!(!output.contains("denied system calls"), "{output}");
    }
    Ok(())
}
