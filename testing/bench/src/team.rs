//! Benchmark of the cost of a team of two uplinks on a frame's complete path, compared with one
//! uplink. The same daemon and VM use both in turn: the switch's uplink is changed while they run.

use anyhow::Result;

use crate::inward::Inward;
use crate::outward::{EgressPath, Outgoing, Outward};
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
    let mut benchmarks = Vec::new();
    for outgoing in SENT {
        let description = "The daemon's CPU time for a 64-byte frame from a VM to a wire's far end";
        let works_out = comparisons_of("out", description, outgoing);
        let mut outward = Outward::start(outgoing)?;
        benchmarks.extend(compare(works_out, pairs, |egress_path| {
            outward.set_egress_path(egress_path)?;
            outward.ns_per_frame()
        })?);
    }
    let description = "The processor's work for a 64-byte frame from a wire's far end to a VM";
    let works_in = comparisons_of("in", description, RECEIVED);
    let mut inward = Inward::start(RECEIVED)?;
    benchmarks.extend(compare(works_in, pairs, |egress_path| inward.ns_per_frame(egress_path))?);
    Ok(benchmarks)
}

fn comparisons_of(direction: &str, description: &str, outgoing: Outgoing) -> [Work; 3] {
    let Outgoing { driver, flows, .. } = outgoing;
    ALGORITHMS.map(|algorithm| {
        let name = format!("team-{direction}-{driver}-{flows}-{algorithm}");
        let title =
            format!("{description} ({outgoing}), by a team of two, `{MODE}`, `{algorithm}`");
        Work::new(&name, &title, "Suimon, one uplink", "ns")
            .less_is_better()
            .with_bar(Bar::Ratio(0.95))
    })
}

/// Compares the measurement of one uplink with each of the teams.
fn compare(
    mut benchmarks: [Work; 3],
    pairs: usize,
    mut sample: impl FnMut(EgressPath) -> Result<Sample>,
) -> Result<[Work; 3]> {
    for _ in 0..pairs {
        let peer = sample(EgressPath::Uplink)?;
        for (work, algorithm) in benchmarks.iter_mut().zip(ALGORITHMS) {
            work.push(Pair { peer, suimon: sample(EgressPath::Team(MODE, algorithm))? });
        }
    }
    Ok(benchmarks)
}
