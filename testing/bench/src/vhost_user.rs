//! Benchmark of VM to VM over vhost-user with one switching CPU: testpmd's two ports send received
//! frames back to each other, through Suimon or Open vSwitch.

use std::time::Duration;

use anyhow::Result;
use suimon_rig::{Daemon, Rig, Testpmd, TestpmdSpec, ovs};

use crate::report::{Bar, Pair, Sample, Work, needs_measurement};

/// CPU of the switch and CPU of the VMs.
pub(crate) const SWITCHING: u16 = 0;
pub(crate) const GUESTS: u16 = 1;
const WARM_UP: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_secs(4);

pub(crate) const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];

/// Length and number of the circulating frames.
#[derive(Clone, Copy, Debug)]
struct Frames {
    /// Length in bytes without the check sequence.
    bytes: u16,
    /// Bursts of 32 frames from each port.
    bursts: u32,
}

/// The length with the largest share of copying is measured once: the frames in flight fit a cache.
const FRAMES: [Frames; 3] = [
    Frames { bytes: 64, bursts: 1 },
    Frames { bytes: 64, bursts: 8 },
    Frames { bytes: 1500, bursts: 8 },
];

/// Measures `pairs` pairs for each kind of frames.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    FRAMES.iter().map(|frames| measure_with(*frames, pairs)).collect()
}

fn measure_with(frames: Frames, pairs: usize) -> Result<Work> {
    let Frames { bytes, bursts } = frames;
    let under_way = bursts * 32;
    let mut work = Work::new(
        &format!("vhost-user-{bytes}-byte-{under_way}"),
        &format!(
            "VM to VM, {bytes}-byte frames, vhost-user, one switching CPU, {under_way} frames of \
             each VM under way, both directions together"
        ),
        "Open vSwitch with DPDK",
        "Mpps",
    )
    .with_bar(Bar::Ratio(1.5));
    if !ovs::is_installed() {
        work.missing = Some("openvswitch-switch-dpdk is not installed".to_owned());
    }
    while needs_measurement(&work, pairs) {
        let peer = through_open_vswitch(frames)?;
        work.push(Pair { peer, suimon: through_suimon(frames)? });
    }
    Ok(work)
}

fn through_open_vswitch(frames: Frames) -> Result<Sample> {
    let rig = Rig::new()?;
    let switch = ovs::OvsDpdk::start(&rig, SWITCHING, GUESTS)?;
    rate(&rig, &switch.sockets(), frames)
}

fn through_suimon(frames: Frames) -> Result<Sample> {
    let rig = Rig::new()?;
    let sockets = [rig.path("vh0.sock"), rig.path("vh1.sock")];
    let _daemon = Daemon::start(&rig, &host_file(&sockets))?;
    rate(&rig, &sockets, frames)
}

/// Returns the configuration of a host with a NIC for each of these sockets, on which the VMs
/// listen.
pub(crate) fn host_file(sockets: &[String]) -> String {
    let mut host = format!(
        "[host]\nworker_cpus = [{SWITCHING}]\n[[switch]]\nname = \"lan\"\nkind = \"private\"\n"
    );
    for (index, socket) in sockets.iter().enumerate() {
        host.push_str(&format!(
            "[[nic]]\nname = \"vm{index}\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
             socket = \"{socket}\"\nmode = \"client\"\n"
        ));
    }
    host
}

/// Measures forwarding, in millions of frames per second. The distance of the CPUs is measured
/// while testpmd runs but does not forward.
fn rate(rig: &Rig, sockets: &[String; 2], frames: Frames) -> Result<Sample> {
    let mut spec = TestpmdSpec::new(sockets.clone(), MACS.map(str::to_owned));
    spec.listens = true;
    spec.cpus = [SWITCHING, GUESTS];
    spec.extra = vec![format!("--txpkts={}", frames.bytes)];
    let mut testpmd = Testpmd::start(rig, &spec)?;
    Sample::take([SWITCHING, GUESTS], || {
        testpmd.circulate(frames.bursts)?;
        testpmd.rate(WARM_UP)?;
        let rate = testpmd.rate(WINDOW)? / 1e6;
        testpmd.stop()?;
        Ok(rate)
    })
}
