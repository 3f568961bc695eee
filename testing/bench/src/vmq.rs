//! Benchmark of dynamic VMQ: its cost, and its reaction time to a changing load.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use suimon_rig::{LoadedHost, Rig};

use crate::outward::{Outgoing, Outward};
use crate::report::{Pair, Sample, Work};

const SENT: [Outgoing; 2] = [
    Outgoing { driver: "af_xdp", flows: 1, queues: 4 },
    Outgoing { driver: "af_xdp", flows: 64, queues: 4 },
];
/// Minimum number of rounds with and without load.
const ROUNDS_MIN: usize = 5;
const WORKERS: u16 = 4;
/// Duration of the load, after which all queues are placed.
const LOADED: Duration = Duration::from_secs(3);
/// "PMD Threads" of Open vSwitch's documentation (Documentation/topics/dpdk/pmd.rst), under "PMD
/// Automatic Load Balance": a thread counts as overloaded that is above the threshold "every 10
/// secs for 1 minute". It never packs queues.
const OVS_SPREAD_S: f64 = 60.0;
/// Promised time in seconds (SPECIFICATION.md).
const PACK_PROMISE_S: f64 = 10.0;

/// Measures `pairs` pairs of each comparison.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut benchmarks = Vec::new();
    for outgoing in SENT {
        benchmarks.push(cost(outgoing, pairs)?);
    }
    benchmarks.extend(reactions(pairs.max(ROUNDS_MIN))?);
    Ok(benchmarks)
}

/// Measures the cost of VMQ. Queue time is accounted with VMQ and without, so it favours neither.
fn cost(outgoing: Outgoing, pairs: usize) -> Result<Work> {
    let Outgoing { flows, queues, .. } = outgoing;
    let title = format!(
        "The daemon's CPU time for a 64-byte frame from a VM with {queues} queues to a wire's far \
         end ({outgoing}), with dynamic VMQ"
    );
    let peer = "Suimon, `vmq.enabled = false`";
    let mut work = Work::new(&format!("vmq-cost-{flows}"), &title, peer, "ns").less_is_better();
    let mut outward = Outward::start(outgoing)?;
    let mut sample = |enabled: &str| {
        outward.set_vmq(enabled)?;
        outward.ns_per_frame()
    };
    for _ in 0..pairs {
        let peer = sample("enabled=off")?;
        work.push(Pair { peer, suimon: sample("enabled=on")? });
    }
    Ok(work)
}

/// Measures reaction times. Each round has a new daemon, because one that packed wrongly waits
/// longer the next time.
fn reactions(rounds: usize) -> Result<[Work; 2]> {
    let new =
        |name: &str, title: &str, peer: &str| Work::new(name, title, peer, "s").less_is_better();
    let mut spread = new(
        "vmq-spread",
        "From a load step to the first queue on another processor, 4 light guests",
        "Open vSwitch's pmd-auto-lb: not sooner, by its \"PMD Threads\"",
    );
    let mut pack = new(
        "vmq-pack",
        "From the end of that load to all queues on one processor",
        "What is promised; Open vSwitch does not pack",
    );
    for _ in 0..rounds {
        let rig = Rig::new()?;
        let host = LoadedHost::new(&rig, WORKERS)?;
        let load = host.load(&rig, None)?;
        let spread_s = host.spread(&load)?.as_secs_f64();
        thread::sleep(LOADED);
        let last = host.end(load)?;
        let pack_s = host.pack(last)?.as_secs_f64();
        let pair = |peer, suimon| Pair {
            peer: Sample::without_distance(peer),
            suimon: Sample::without_distance(suimon),
        };
        spread.push(pair(OVS_SPREAD_S, spread_s));
        pack.push(pair(PACK_PROMISE_S, pack_s));
    }
    Ok([with_range(spread), with_range(pack)])
}

/// Adds the range of the times to the title; the table contains the range of the ratios only.
fn with_range(mut work: Work) -> Work {
    let times = || work.pairs.iter().map(|pair| pair.suimon.rate);
    let (min, max) = (times().fold(f64::MAX, f64::min), times().fold(0.0, f64::max));
    work.title = format!("{} ({min:.2} to {max:.2} s)", work.title);
    work
}
