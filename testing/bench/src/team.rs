//! Benchmark of the cost of a team of two uplinks on a frame's complete path, compared with one
//! uplink. The same daemon and VM use both in turn: the switch's uplink is changed while they run.

use anyhow::Result;

use crate::inward::Inward;
use crate::outward::{Outgoing, Outward, WayOut};
use crate::report::{Bar, Pair, Sample, Work};

/// Algorithms of teams without partner: one that ignores the frame, one that computes its flow, and
/// one that may also change a flow's member.
const ALGORITHMS: [&str; 3] = ["hyper-v-port", "transport-ports", "dynamic"];
const MODE: &str = "static";
const SENT: [Outgoing; 3] = [
    Outgoing { driver: "af_xdp", flows: 1, queues: 1 },
    Outgoing { driver: "af_xdp", flows: 64, queues: 1 },
    Outgoing { driver: "af_packet", flows: 64, queues: 1 },
];
const RECEIVED: Outgoing = Outgoing { driver: "af_xdp", flows: 64, queues: 1 };

/// Measures `pairs` pairs of each comparison.
pub(crate) fn measure(pairs: usize) -> Result<Vec<Work>> {
    let mut works = Vec::new();
    for of in SENT {
        let what = "The daemon's CPU time for a 64-byte frame from a VM to a wire's far end";
        let works_out = works_of("out", what, of);
        let mut outward = Outward::start(of)?;
        works.extend(compare(works_out, pairs, |way| {
            outward.leave_by(way)?;
            outward.ns_per_frame()
        })?);
    }
    let what = "The processor's work for a 64-byte frame from a wire's far end to a VM";
    let works_in = works_of("in", what, RECEIVED);
    let mut inward = Inward::start(RECEIVED)?;
    works.extend(compare(works_in, pairs, |way| inward.ns_per_frame(way))?);
    Ok(works)
}

fn works_of(direction: &str, what: &str, of: Outgoing) -> [Work; 3] {
    let Outgoing { driver, flows, .. } = of;
    ALGORITHMS.map(|algorithm| {
        let name = format!("team-{direction}-{driver}-{flows}-{algorithm}");
        let title = format!("{what} ({of}), by a team of two, `{MODE}`, `{algorithm}`");
        Work::new(&name, &title, "Suimon, one uplink", "ns")
            .less_is_better()
            .with_bar(Bar::Ratio(0.95))
    })
}

/// Compares the measurement of one uplink with each of the teams.
fn compare(
    mut works: [Work; 3],
    pairs: usize,
    mut sample: impl FnMut(WayOut) -> Result<Sample>,
) -> Result<[Work; 3]> {
    for _ in 0..pairs {
        let peer = sample(WayOut::Uplink)?;
        for (work, algorithm) in works.iter_mut().zip(ALGORITHMS) {
            work.push(Pair { peer, suimon: sample(WayOut::Team(MODE, algorithm))? });
        }
    }
    Ok(works)
}
