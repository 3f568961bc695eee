//! VM to VM with 64-byte frames over vhost-user, one switching CPU: testpmd's two
//! ports send each other what they receive, through Suimon or Open vSwitch.

use std::time::Duration;

use anyhow::Result;
use suimon_rig::{Daemon, Rig, Testpmd, TestpmdSpec, ovs};

use crate::report::{Pair, Work};

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
        return Ok(works);
    }
    for pair in 0..pairs {
        let peer = through_open_vswitch()?;
        let suimon = through_suimon()?;
        for (index, work) in works.iter_mut().enumerate() {
            let pair_rates = Pair { peer: peer[index], suimon: suimon[index] };
            eprintln!(
                "vhost-user, pair {} of {pairs}, {} frames: Open vSwitch {:.2}, Suimon {:.2} Mpps",
                pair + 1,
                BURSTS[index] * 32,
                pair_rates.peer,
                pair_rates.suimon
            );
            work.pairs.push(pair_rates);
        }
    }
    Ok(works)
}

fn through_open_vswitch() -> Result<[f64; 2]> {
    let rig = Rig::new()?;
    let switch = ovs::OvsDpdk::start(&rig, SWITCHING, GUESTS)?;
    rates(&rig, &switch.sockets())
}

fn through_suimon() -> Result<[f64; 2]> {
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
    rates(&rig, &sockets)
}

/// Millions of frames a second for each entry of [`BURSTS`].
fn rates(rig: &Rig, sockets: &[String; 2]) -> Result<[f64; 2]> {
    let mut measured = [0.0; 2];
    for (bursts, rate) in BURSTS.iter().zip(&mut measured) {
        let mut spec = TestpmdSpec::new(sockets.clone(), MACS.map(str::to_owned));
        spec.listens = true;
        spec.cpus = [SWITCHING, GUESTS];
        let mut testpmd = Testpmd::start(rig, &spec)?;
        testpmd.circulate(*bursts)?;
        testpmd.rate(WARM_UP)?;
        *rate = testpmd.rate(WINDOW)? / 1e6;
    }
    Ok(measured)
}
