//! Setup: the machine with an adapter, and counters of its CPU time.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use suimon_rig::{IovMachine, IovSpec, Rig};

use super::path::{Direction, Path};
use crate::environment::Environment;

/// Time limit of one stream on a machine with an emulated CPU.
const STREAM_LIMIT: Duration = Duration::from_secs(300);
/// Clock tick in ns: `USER_HZ` is 100 on all architectures supported for the machine (proc(5)).
const NS_PER_TICK: u64 = 10_000_000;
/// Namespace guests with their addresses: one on the switch, one on a VF, and the peer of both on
/// another VF.
const GUESTS: [(&str, &str); 3] = [("blue", "10.77.0.3"), ("red", "10.77.0.7"), ("green", PEER)];
const PEER: &str = "10.77.0.8";
const HOST: &str = r#"
[[switch]]
name = "wan"
kind = "external"
uplink = "up"
iov = true
[[uplink]]
name = "up"
device = "eth0"
[[pf]]
name = "wan"
device = "eth0"
vfs = 3
[[nic]]
name = "light"
switch = "wan"
backend = "tap"
device = "light0"
netns = "blue"
mac = "52:54:00:00:00:03"
"#;

/// Machine with guests on the switch and on VFs.
pub(super) struct Testbed {
    machine: IovMachine,
    _rig: Rig,
}

/// Bytes and CPU time of one stream.
pub(super) struct Sample {
    /// Bytes of payload received.
    pub(super) bytes: u64,
    pub(super) bits_per_second: f64,
    /// Time of all workers by stage.
    pub(super) stages_ns: BTreeMap<String, u64>,
    /// CPU time of the whole machine, including that of both guests.
    pub(super) machine_cpu_ns: u64,
}

/// Counters since the machine's start.
struct Counters {
    /// Time of all workers by stage, without idle time.
    stages_ns: BTreeMap<String, u64>,
    /// CPU time of the whole machine.
    machine_ns: u64,
}

impl Testbed {
    /// Boots the machine and waits until the guests reach their peer.
    pub(super) fn set_up(environment: &Environment<'_>) -> Result<Self> {
        let rig = environment.create_rig()?;
        let spec = IovSpec { has_iommu: true, hosts_vms: false, adapters: 1 };
        let machine = IovMachine::start(&rig, spec)?;
        let mut testbed = Self { machine, _rig: rig };
        testbed.machine.start_daemon()?;
        testbed.machine.run("/usr/bin/ip link set eth0 up")?;
        for (guest, _) in GUESTS {
            testbed.machine.run(&format!("/usr/bin/ip netns add {guest}"))?;
        }
        for line in HOST.lines() {
            testbed.machine.run(&format!("echo '{line}' >>/tmp/host.toml"))?;
        }
        testbed.machine.suimon_well("apply -f /tmp/host.toml")?;
        let wait = "until [ \"$(cat /sys/class/net/eth0/carrier)\" = 1 ]; do usleep 100000; done";
        testbed.machine.run(wait)?;
        let devices = ["light0".to_owned(), testbed.vf_for("red", 1)?, testbed.vf_for("green", 2)?];
        for ((guest, address), device) in GUESTS.iter().zip(devices) {
            testbed.machine.run(&format!(
                "/usr/bin/ip -n {guest} addr add {address}/24 dev {device}; \
                 /usr/bin/ip -n {guest} link set {device} up"
            ))?;
        }
        testbed.machine.run("/usr/bin/ip netns exec green iperf3 -s -D")?;
        for (guest, _) in &GUESTS[..2] {
            let reach = format!(
                "for i in $(seq 30); do /usr/bin/ip netns exec {guest} ping -c 1 -W 1 {PEER} && \
                 exit 0; done; exit 1"
            );
            let reached = testbed.machine.run_any(&reach, Duration::from_secs(60))?;
            ensure!(reached.is_ok(), "{guest} cannot reach its peer: {}", reached.stdout);
        }
        Ok(testbed)
    }

    /// Moves a VF into the namespace of a guest. Returns the name of its network device.
    fn vf_for(&mut self, guest: &str, index: u16) -> Result<String> {
        let output = self.machine.suimon_well(&format!("vf show eth0 {index} --json"))?;
        let vf: Value = serde_json::from_str(&output)?;
        let device = vf["device"].as_str().context("the VF has no network device")?.to_owned();
        self.machine.run(&format!(
            "/usr/bin/ip link set eth0 vf {index} mac 52:54:00:00:01:0{index}; \
             /usr/bin/ip link set {device} netns {guest}"
        ))?;
        Ok(device)
    }

    /// Transfers `mib` MiB in one stream, and returns the bytes and CPU time.
    pub(super) fn measure(
        &mut self,
        (path, direction): (Path, Direction),
        mib: u64,
    ) -> Result<Sample> {
        let guest = match path {
            Path::Switch => "blue",
            Path::Vf => "red",
        };
        let reversed = match direction {
            Direction::Sends => "",
            Direction::Receives => "-R",
        };
        let before = self.counters()?;
        let stream =
            format!("/usr/bin/ip netns exec {guest} iperf3 -c {PEER} -n {mib}M -J {reversed}");
        let output = self.machine.run_any(&stream, STREAM_LIMIT)?;
        let after = self.counters()?;
        ensure!(output.is_ok(), "iperf3 of {guest}: {}", output.stdout);
        let report: Value = serde_json::from_str(&output.stdout)?;
        let end = &report["end"]["sum_received"];
        let bytes = end["bytes"].as_u64().context("iperf3 reported no bytes")?;
        ensure!(bytes > 0, "no data was transferred");
        let grown = |name: &String, ns: &u64| {
            let before_ns = before.stages_ns.get(name).copied().unwrap_or(0);
            (name.clone(), ns.saturating_sub(before_ns))
        };
        Ok(Sample {
            bytes,
            bits_per_second: end["bits_per_second"].as_f64().unwrap_or(0.0),
            stages_ns: after.stages_ns.iter().map(|(name, ns)| grown(name, ns)).collect(),
            machine_cpu_ns: after.machine_ns.saturating_sub(before.machine_ns),
        })
    }

    fn counters(&mut self) -> Result<Counters> {
        let output = self.machine.suimon_well("worker list --json")?;
        let processors: Value = serde_json::from_str(&output)?;
        let mut stages_ns = BTreeMap::new();
        for processor in processors.as_array().context("processors")? {
            let stages = processor["stages"].as_object().context("stages")?;
            for (name, ns) in stages.iter().filter(|(name, _)| *name != "idle_ns") {
                let name = name.trim_end_matches("_ns").to_owned();
                *stages_ns.entry(name).or_default() += ns.as_u64().context("ns")?;
            }
        }
        // Fields of `cpu` (proc_stat(5)): user, nice and system, without idle and iowait, then irq
        // and softirq.
        let output = self.machine.run("head -1 /proc/stat")?;
        let figures = output.split_whitespace().skip(1).map(str::parse::<u64>);
        let figures: Vec<u64> = figures.collect::<Result<_, _>>()?;
        let ticks: u64 = [0, 1, 2, 5, 6].iter().filter_map(|column| figures.get(*column)).sum();
        Ok(Counters { stages_ns, machine_ns: ticks * NS_PER_TICK })
    }
}
