//! Benchmark of frames sent through a team in LACP mode, compared with a bond of Open vSwitch with
//! DPDK: the same VM, wires and partner.

use anyhow::{Context, Result};
use suimon_rig::ovs::{self, OvsDpdk};
use suimon_rig::{Daemon, Rig, wait_until};

use crate::lacp_partner::LacpPartner;
use crate::outward::{LEARN_LIMIT, arriving, generator, set_bytes, uplinks, vm, wait_learned};
use crate::report::{Bar, Pair, Sample, Work};
use crate::vhost_user::{GUESTS, SWITCHING};
use crate::wires::{FAR_MAC, Wires};

/// Frame lengths in bytes without the check sequence.
const BYTES: [u16; 2] = [64, 1500];
const FLOWS: u16 = 64;
const LINKS: usize = 2;

/// Measures `pairs` pairs. Each start of a switch serves all frame lengths.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut benchmarks = BYTES.map(|bytes| {
        let title = format!(
            "From a VM out by two wires (veth, AF_XDP on both sides) with LACP, {bytes}-byte \
             frames, {FLOWS} flows, one switching CPU; Suimon: a team, `transport-ports`"
        );
        let peer = "Open vSwitch with DPDK: a bond, `balance-tcp`";
        Work::new(&format!("bond-{bytes}-byte"), &title, peer, "Mpps").with_bar(Bar::Ratio(1.5))
    });
    if !ovs::is_installed() {
        for work in &mut benchmarks {
            work.missing = Some("openvswitch-switch-dpdk is not installed".to_owned());
        }
        return Ok(benchmarks.into());
    }
    for _ in 0..pairs {
        let peer_samples = through_open_vswitch().context("through Open vSwitch")?;
        let suimon_samples = through_suimon().context("through Suimon")?;
        for (work, (peer, suimon)) in
            benchmarks.iter_mut().zip(peer_samples.into_iter().zip(suimon_samples))
        {
            work.push(Pair { peer, suimon });
        }
    }
    Ok(benchmarks.into())
}

fn through_open_vswitch() -> Result<Vec<Sample>> {
    let rig = Rig::new()?;
    let mut switch = OvsDpdk::start(&rig, SWITCHING, GUESTS)?;
    let wires = Wires::new(&rig, LINKS, Some(switch.namespace()))?;
    switch.add_bond(wires.near())?;
    rates(&rig, switch.sockets(), &wires, || {
        wait_until("address of the far end", LEARN_LIMIT, || {
            wires.announce(0)?;
            switch.knows(FAR_MAC)
        })
    })
}

fn through_suimon() -> Result<Vec<Sample>> {
    let rig = Rig::new()?;
    let wires = Wires::new(&rig, LINKS, None)?;
    let sockets = [rig.path("vh0.sock"), rig.path("vh1.sock")];
    let mut host = format!(
        "[host]\nworker_cpus = [{SWITCHING}]\n\
         [[switch]]\nname = \"wan\"\nkind = \"external\"\nuplink = \"both\"\n\
         [[team]]\nname = \"both\"\nmembers = [\"left\", \"right\"]\nmode = \"lacp\"\n\
         lacp_timer = \"fast\"\nalgorithm = \"transport-ports\"\n"
    );
    host.push_str(&uplinks(["left", "right"], wires.near(), "af_xdp"));
    host.push_str(&vm(&sockets, 1));
    let daemon = Daemon::start(&rig, &host)?;
    rates(&rig, sockets, &wires, || wait_learned(&daemon, &wires, "both", 0))
}

/// Returns a sample for each frame length of what the first NIC of a VM sends, once the switch has
/// learned the destination.
fn rates(
    rig: &Rig,
    sockets: [String; 2],
    wires: &Wires,
    wait_learned: impl FnOnce() -> Result<()>,
) -> Result<Vec<Sample>> {
    let partner = LacpPartner::start(wires);
    let mut testpmd = generator(rig, sockets, FLOWS, 1)?;
    partner.wait_in_use()?;
    wait_learned()?;
    let mut rate = |bytes: &u16| {
        set_bytes(&mut testpmd, *bytes)?;
        arriving(&mut testpmd, wires)
    };
    BYTES.iter().map(&mut rate).collect()
}
