//! VM to VM with 64-byte frames over vhost-user, one switching CPU: testpmd's two
//! ports send each other what they receive, through Suimon or Open vSwitch.

use std::time::Duration;

use anyhow::Result;
use suimon_rig::{Daemon, Rig, Testpmd, TestpmdSpec, ovs};

use crate::report::{Pair, Sample, Work, is_wanted};

/// The CPU that switches and the CPU that plays the VMs.
const SWITCHING: u16 = 0;
const GUESTS: u16 = 1;
/// Frames of each port in circulation, in bursts of 32.
const BURSTS: [u32; 2] = [1, 8];
const WARM_UP: Duration = Duration::from_secs(1);
const WINDOW: Duration = Duration::from_secs(4);

const MACS: [&str; 2] = ["02:00:00:00:00:01", "02:00:00:00:00:02"];

/// Runs `pairs` pairs; one work for each number of frames in circulation.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut works: Vec<Work> = BURSTS
        .iter()
        .map(|bursts| Work {
            name: format!("vhost-user-64-byte-{}", bursts * 32),
            title: format!(
                "VM to VM, 64-byte frames, vhost-user, one switching CPU, {} frames of each VM \
                 under way, both directions together",
                bursts * 32
            ),
            peer: "Open vSwitch with DPDK".to_owned(),
            unit: "Mpps",
            pairs: Vec::new(),
            missing: None,
        })
        .collect();
    if !ovs::is_installed() {
        for work in &mut works {
            work.missing = Some("openvswitch-switch-dpdk is not installed".to_owned());
        }
    }
    for (bursts, work) in BURSTS.iter().zip(&mut works) {
        while is_wanted(work, pairs) {
            let peer = through_open_vswitch(*bursts)?;
            let pair = Pair { peer, suimon: through_suimon(*bursts)? };
            work.pairs.push(pair);
            eprintln!(
                "vhost-user, {} frames, pair {}: Open vSwitch {}, Suimon {} Mpps",
                bursts * 32,
                work.pairs.len(),
                pair.peer,
                pair.suimon
            );
        }
    }
    Ok(works)
}

fn through_open_vswitch(bursts: u32) -> Result<Sample> {
    let rig = Rig::new()?;
    let switch = ovs::OvsDpdk::start(&rig, SWITCHING, GUESTS)?;
    rate(&rig, &switch.sockets(), bursts)
}

fn through_suimon(bursts: u32) -> Result<Sample> {
    let rig = Rig::new()?;
    let sockets = [rig.path("vh0.sock"), rig.path("vh1.sock")];
    let mut host = format!(
        "[host]\nprocessors = [{SWITCHING}]\n[[switch]]\nname = \"lan\"\nkind = \"private\"\n"
    );
    for (index, socket) in sockets.iter().enumerate() {
        host.push_str(&format!(
            "[[nic]]\nname = \"vm{index}\"\nswitch = \"lan\"\nbackend = \"vhost-user\"\n\
             socket = \"{socket}\"\nmode = \"client\"\n"
        ));
    }
    let _daemon = Daemon::start(&rig, &host)?;
    rate(&rig, &sockets, bursts)
}

/// Millions of frames a second. The CPUs' distance is taken while testpmd is up
/// but does not forward.
fn rate(rig: &Rig, sockets: &[String; 2], bursts: u32) -> Result<Sample> {
    let mut spec = TestpmdSpec::new(sockets.clone(), MACS.map(str::to_owned));
    spec.listens = true;
    spec.cpus = [SWITCHING, GUESTS];
    let mut testpmd = Testpmd::start(rig, &spec)?;
    Sample::take([SWITCHING, GUESTS], || {
        testpmd.circulate(bursts)?;
        testpmd.rate(WARM_UP)?;
        let rate = testpmd.rate(WINDOW)? / 1e6;
        testpmd.stop()?;
        Ok(rate)
    })
}
