//! Benchmark of the CPU usage of a switch whose VMs are idle.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use suimon_rig::{Daemon, Process, Rig, Testpmd, TestpmdSpec, ovs};

use crate::cpu_times::CpuTimes;
use crate::report::{Pair, Sample, Work};
use crate::vhost_user::{GUESTS, SWITCHING, host_file};

const VMS: usize = 8;
/// Time after which all idle threads sleep.
const SETTLE: Duration = Duration::from_secs(2);
const WINDOW: Duration = Duration::from_secs(5);

/// Measures `pairs` pairs. Open vSwitch polls regardless of its VMs, so two VMs are sufficient
/// there.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let title = format!("CPU used while {VMS} VMs are idle (Open vSwitch: 2), vhost-user");
    let mut work =
        Work::new("idle-vms", &title, "Open vSwitch with DPDK", "% of a CPU").less_is_better();
    if !ovs::is_installed() {
        work.missing = Some("openvswitch-switch-dpdk is not installed".to_owned());
        return Ok(vec![work]);
    }
    for _ in 0..pairs {
        let peer = Sample::without_distance(open_vswitch()?);
        work.push(Pair { peer, suimon: Sample::without_distance(suimon()?) });
    }
    Ok(vec![work])
}

fn open_vswitch() -> Result<f64> {
    let rig = Rig::new()?;
    let mut switch = ovs::OvsDpdk::start(&rig, SWITCHING, GUESTS)?;
    let _vms = vms(&rig, &switch.sockets())?;
    used(switch.process())
}

fn suimon() -> Result<f64> {
    let rig = Rig::new()?;
    let sockets: Vec<String> = (0..VMS).map(|vm| rig.path(&format!("vh{vm}.sock"))).collect();
    let mut daemon = Daemon::start(&rig, &host_file(&sockets))?;
    let _vms = vms(&rig, &sockets)?;
    used(daemon.process())
}

/// Starts the VMs. Their drivers run and poll, but send no frames.
fn vms(rig: &Rig, sockets: &[String]) -> Result<Vec<Testpmd>> {
    let start = |(nth, pair): (usize, &[String])| {
        let macs = [0, 1].map(|port| format!("02:00:00:00:{nth:02x}:{port:02x}"));
        let mut spec = TestpmdSpec::new([pair[0].clone(), pair[1].clone()], macs);
        spec.listens = true;
        spec.cpus = [SWITCHING, GUESTS];
        Testpmd::start(rig, &spec)
    };
    sockets.chunks_exact(2).enumerate().map(start).collect()
}

/// Measures the CPU usage of a process in percent of a CPU.
fn used(process: &Process) -> Result<f64> {
    thread::sleep(SETTLE);
    let before = CpuTimes::read(process.id())?;
    thread::sleep(WINDOW);
    let used = CpuTimes::read(process.id())?.since(&before);
    Ok(used as f64 / WINDOW.as_nanos() as f64 * 100.0)
}
